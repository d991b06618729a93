"""A lock that another run holds."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from jigsaw_crl.base.files import locked


@contextmanager
def held_elsewhere(path):
    """Another thread holds the lock of a file or folder for the length of the block."""
    with ThreadPoolExecutor(1) as thread:
        lock = locked(path)
        thread.submit(lock.__enter__).result()
        try:
            yield
        finally:
            thread.submit(lock.__exit__, None, None, None).result()
