"""Labels and clients that were not used, and why."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from jigsaw_crl.base.findings import Finding

__all__ = ["LeftOut", "left_out"]


@dataclass(frozen=True)
class LeftOut:
    """A label of one client, or a whole client, that was not used.

    Parameters
    ----------
    client : str
    label : str or None
        None where the whole client was left out.
    check : str
        The check that excluded it, for instance ``"several-targets"``.
    because : str
        The message of the finding.

    Examples
    --------
    >>> from jigsaw_crl.result.left_out import LeftOut
    >>> print(LeftOut("lab-1", "pump", "several-targets", "the regime moves more than one node"))
    pump of lab-1, because the regime moves more than one node
    """

    client: str
    label: str | None
    check: str
    because: str

    def __str__(self) -> str:
        what = f"client {self.client}" if self.label is None else f"{self.label} of {self.client}"
        return f"{what}, because {self.because}"


def left_out(findings: Iterable[Finding], used: Container[str]) -> list[LeftOut]:
    """Labels and clients that errors among the findings exclude.

    Parameters
    ----------
    findings : iterable of Finding
    used : container of str
        Names of the clients that are used, at least in part.
    """
    out: dict[tuple[str, str | None], LeftOut] = {}
    for f in findings:
        if f.severity != "error" or f.client is None:
            continue
        if f.client in used and f.regime is None:
            continue
        label = f.regime if f.client in used else None
        known = out.get((f.client, label))
        # An error about the client itself explains better why all of it is left out.
        if known is None or (label is None and f.regime is None):
            out[f.client, label] = LeftOut(f.client, label, f.check, f.message)
    return list(out.values())
