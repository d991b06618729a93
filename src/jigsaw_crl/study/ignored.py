"""What is said of columns that are not used as features: findings, and in Python a warning."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.study.columns import BOOLEAN, ON_REQUEST, ROW_INDEX, quoted
from jigsaw_crl.study.row_order import RISING

__all__ = ["constant_columns", "ignored_columns", "warn_of_ignored"]

# Ignored columns that a warning names.
MOST_WARNED = 4


def _not_a_feature(why: str) -> str:
    return f" is {why}, so it is not used as a feature"


# What to do if a column that is not used is a measurement after all.
_THEN = {BOOLEAN: "encode it as 0 and 1", RISING: "shuffle the rows"}


def ignored_columns(ignored: Mapping[str, str], client: str) -> list[Finding]:
    """A finding for each column that is not used, with the reason; none for those on request."""
    return [
        Finding(
            "ignored-column",
            "info",
            f"the column {column!r}{_not_a_feature(why)}",
            "Nothing to do, unless it is a measurement; then "
            f"{_THEN.get(why, 'encode it as numbers')}.",
            client=client,
        )
        for column, why in ignored.items()
        if why != ON_REQUEST
    ]


def warn_of_ignored(findings: Sequence[Finding], *, stacklevel: int) -> None:
    """Warn of ignored columns and regimes, for readers that do not return findings."""
    found = [f for f in findings if f.check in ("ignored-column", "unusable-regime")]
    found = [f for f in found if not f.message.endswith(_not_a_feature(ROW_INDEX))]
    if not found:
        return
    said: dict[str, list[str]] = {}
    for f in found[:MOST_WARNED]:
        said.setdefault(f.remedy, []).append(f.message)
    text = " ".join(f"{'; '.join(messages)}. {remedy}" for remedy, messages in said.items())
    more = f" And {len(found) - MOST_WARNED} more." if len(found) > MOST_WARNED else ""
    warnings.warn(
        f"client {found[0].client!r}: {text}{more} (ignore=[…] names columns that need no warning)",
        stacklevel=stacklevel + 1,
    )


def constant_columns(constant: Sequence[str], client: str) -> list[Finding]:
    """A finding about columns with one value in all rows, if there are any."""
    if not constant:
        return []
    return [
        Finding(
            "constant-column",
            "info",
            f"dropped {quoted(constant)}: constant over all regimes",
            "Nothing to do, unless it should vary; then check the sensor.",
            value=float(len(constant)),
            client=client,
        )
    ]
