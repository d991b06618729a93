"""The command `jigsaw`."""

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit: 0 success, 2 bad input, 1 a defect, 130 interrupted."""
    import gc

    # Modules live until the end: to search them for garbage, now and at the exit, is a sixth of
    # what `jigsaw --help` takes.
    gc.disable()
    from jigsaw_crl.cli.app import main as run

    gc.freeze()
    gc.enable()
    run()
