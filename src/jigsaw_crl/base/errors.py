"""Errors a user can act on: one line that says what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")


class JigsawError(Exception):
    """Base class of the errors that this package raises on purpose; the message is one line.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> try:
    ...     jc.read_study("no-such-folder")
    ... except jc.JigsawError as error:
    ...     print(error)
    file 'no-such-folder': there is no such file. Check the path.
    """


class InputError(JigsawError, ValueError):
    """The input cannot be used; the message says where, why, and what to do.

    Parameters
    ----------
    what : str
        What is wrong, without a closing full stop.
    remedy : str
        What the user can do about it.
    client, regime, path : str, optional
        Where the problem is.

    Examples
    --------
    >>> from jigsaw_crl.base.errors import InputError
    >>> str(InputError("3 values are not finite", "Drop or impute them.", client="lab-1"))
    "client 'lab-1': 3 values are not finite. Drop or impute them."
    """

    def __init__(
        self,
        what: str,
        remedy: str,
        *,
        client: str | None = None,
        regime: str | None = None,
        path: object | None = None,
    ) -> None:
        self.what = what
        self.remedy = remedy
        self.client = client
        self.regime = regime
        self.path = path
        where = [
            f"{name} {str(value)!r}"
            for name, value in (("file", path), ("client", client), ("regime", regime))
            if value is not None
        ]
        head = ", ".join(where)
        said = f"{what} {remedy}" if what.endswith("?") else f"{what}. {remedy}"
        text = f"{head}: {said}" if head else said
        super().__init__(" ".join(text.split()))

    def located(
        self, *, client: str | None = None, regime: str | None = None, path: object | None = None
    ) -> InputError:
        """The same error with a more precise place; what is None here is kept."""
        return InputError(
            self.what,
            self.remedy,
            client=self.client if client is None else client,
            regime=self.regime if regime is None else regime,
            path=self.path if path is None else path,
        )

    def __reduce__(self) -> tuple[object, ...]:
        # By default exceptions are rebuilt from positional arguments alone.
        build = partial(type(self), client=self.client, regime=self.regime, path=self.path)
        return build, (self.what, self.remedy)


def choose(name: str, known: Mapping[str, T], what: str) -> T:
    """The value of a known name; for any other name an `InputError` that lists the choices."""
    if name not in known:
        raise InputError(f"there is no {what} {name!r}", f"Choose one of {', '.join(known)}.")
    return known[name]


def import_optional(module: str, what: str, extra: str) -> Any:
    """A module of the optional dependency `what`; an `InputError` names the `extra` to install."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(
            f"{what} is not installed", f"Run pip install '.[{extra}]' in a clone of jigsaw-crl."
        ) from None
