"""The command `jigsaw`."""

import gc

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit: 0 success, 2 bad input, 1 a defect, 130 interrupted."""
    # Collecting garbage among modules, which are never freed, takes a sixth of `jigsaw --help`; so
    # the import waits until collection is off.
    gc.disable()
    try:
        from jigsaw_crl.cli.app import main as run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    gc.freeze()
    gc.enable()
    run()
