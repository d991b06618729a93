"""Findings: observations about the data, each with a severity, a measured number and a remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from jigsaw_crl.base.text import few, number

Severity = Literal["info", "warning", "error"]
# A dataclass with this as `__pydantic_config__` can be part of a file: see `base.documents`.
CLOSED: Mapping[str, Any] = {"extra": "forbid", "allow_inf_nan": False}


@dataclass(frozen=True)
class Finding:
    """One observation about a client's data.

    Parameters
    ----------
    check : str
        Short name of the check, for instance ``"weak-intervention"``.
    severity : {"info", "warning", "error"}
        An error means that the regime or client is not used.
    message : str
        What was observed, in a sentence.
    remedy : str
        What the user can do.
    value, threshold : float or None
        The measured number and the threshold it was compared with.
    client, regime : str or None
        Where it was observed.
    """

    __pydantic_config__: ClassVar = CLOSED

    check: str
    severity: Severity
    message: str
    remedy: str
    value: float | None = None
    threshold: float | None = None
    client: str | None = None
    regime: str | None = None

    def to_document(self) -> dict[str, str | float | None]:
        """The finding as plain JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        place = "/".join(p for p in (self.client, self.regime) if p)
        where = f"{place}: " if place else ""
        threshold = "" if self.threshold is None else f", threshold {number(self.threshold)}"
        value = "" if self.value is None else f" ({number(self.value)}{threshold})"
        return f"{self.severity}: {where}{self.message}{value}. {self.remedy}"


def most_severe_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings, then information; otherwise in the given order."""
    return sorted(findings, key=lambda f: ("error", "warning", "info").index(f.severity))


@dataclass(frozen=True)
class ReadingNote:
    """Something that recovery could not use or not tell, and the measurement that decided so.

    Nothing is stated about the label (with "mean-only": about its ancestors), or about the client
    if it is None. With "off-target" the regime was read all the same, and `other` is the label that
    it acts on too; with "excess-spread" rows count for fewer; with "nonlinear-response" the label
    was read without linearity, and with "no-shift" that was not possible.
    """

    label: str | None
    check: str
    value: float
    threshold: float
    other: str = ""


def spelling_notes(names: Mapping[str, str], client: str) -> list[Finding]:
    """A note on the labels of a client that others spell otherwise; none if there are none."""
    if not names:
        return []
    said = f"other clients spell {len(names)} of its labels otherwise"
    taken = few(f"{x!r} is taken as {y!r}" for x, y in names.items())
    remedy = "Nothing to do if they mean the same; otherwise [rename] one of them."
    return [Finding("label-spelling", "info", f"{said}: {taken}", remedy, client=client)]
