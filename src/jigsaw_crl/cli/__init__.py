"""The command `jigsaw`."""

from jigsaw_crl.cli.app import main

__all__ = ["main"]
