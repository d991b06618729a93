"""Errors a user can act on: one line that says what is wrong, where, and what to do."""

from __future__ import annotations

__all__ = ["InputError", "JigsawError"]


class JigsawError(Exception):
    """Base of every error this package raises on purpose.

    The message is always a single line.

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
    """The input cannot be used; the message names the place and the remedy.

    Parameters
    ----------
    what : str
        What is wrong, without a closing full stop.
    remedy : str
        What the user can do about it.
    client, regime, path : str, optional
        Where it is wrong.

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
        text = f"{head}: {what}. {remedy}" if head else f"{what}. {remedy}"
        super().__init__(" ".join(text.split()))

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments need help to cross a process boundary.
        return _rebuild, (self.what, self.remedy, self.client, self.regime, self.path)


def _rebuild(
    what: str, remedy: str, client: str | None, regime: str | None, path: object | None
) -> InputError:
    return InputError(what, remedy, client=client, regime=regime, path=path)
