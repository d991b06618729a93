"""The command `jigsaw`."""

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit: 0 success, 2 bad input, 1 a defect, 130 interrupted."""
    try:
        # Here, so that an interrupt during the import is quiet too.
        from jigsaw_crl.cli.app import main as run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()
