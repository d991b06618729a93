"""Regimes without a covariance: too few rows, or all rows the same. Each is left out on its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.labels import normal_label
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.moments.checks import varies
from jigsaw_crl.moments.regime import Moments

__all__ = ["large_enough", "without_rows"]

# A covariance needs two rows.
FEWEST_ROWS = 2


def large_enough(
    interventions: Mapping[str, Sequence[Moments]], client: str
) -> tuple[dict[str, list[Moments]], list[Finding]]:
    """The regimes that have a covariance, and a finding for each of the others.

    All are kept if none has one: the client as a whole is then refused, with the reason.
    """
    kept: dict[str, list[Moments]] = {}
    findings = []
    for label, regimes in interventions.items():
        why = ""
        for m in regimes:
            fault = _fault(m)
            if not fault:
                kept.setdefault(label, []).append(m)
            why = fault or why
        if why:
            several = label in kept
            findings.append(
                Finding(
                    "unusable-regime",
                    "warning" if several else "error",
                    f"{'a strength of the label' if several else 'the regime'} has {why}",
                    "Take more rows, or remove these.",
                    client=client,
                    regime=normal_label(label),
                )
            )
    return (kept, findings) if kept else ({k: list(v) for k, v in interventions.items()}, [])


def without_rows(regimes: Iterable[str], client: str) -> list[Finding]:
    """A finding for each regime of which no row is left."""
    return [
        Finding(
            "unusable-regime",
            "error",
            "every row of the regime has a missing value",
            "Take more rows, or leave out the columns in which they are missing.",
            client=client,
            regime=normal_label(regime),
        )
        for regime in regimes
    ]


def _fault(m: Moments) -> str:
    if m.n is not None and m.n < FEWEST_ROWS:
        within = f" in {len(m.batches)} batches" if len(m.batches) > 1 else ""
        return f"{pluralise(m.rows or 0, 'row')}{within}, too few for a covariance"
    return "" if varies(m.mean, m.covariance).any() else "the same values in all rows"
