"""What leaves a site: the fields of a fragment, and how far they are rounded.

What decides is the difference of two log Bayes factors of a pair. Where it is small, so that it
could go either way, its sampling error is about 1: it is half the square of a statistic whose error
is 1. So all factors are rounded to a sixteenth. Steps that grow with a factor would be too coarse:
large factors of one pair share their error, and their difference does not have it. Numbers of rows
are rounded to two digits, and the numbers of findings to three.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.fragment.file import FragmentDocument
from jigsaw_crl.fragment.fragment import Fragment

FIELDS = {name: field.description or "" for name, field in FragmentDocument.model_fields.items()}
"""Every field of a fragment and what it says. A fragment with any other field is refused."""


def check_rows(fragment: Fragment, min_rows: int) -> None:
    """Refuse a fragment with a regime of fewer rows than `min_rows`.

    A fragment of exact moments does not say how many rows it comes from: it is refused too, unless
    one row is enough.
    """
    if min_rows <= 1:
        return
    if fragment.n_samples is None:
        raise InputError(
            f"it is not known whether every regime has {min_rows} rows",
            "Make the fragment from rows, or from moments with their number of rows.",
            client=fragment.client,
        )
    regime, rows = min(fragment.n_samples.items(), key=lambda item: item[1])
    if rows < min_rows:
        raise InputError(
            f"the regime has {pluralise(rows, 'row')}, at least {min_rows} are needed",
            "Take more rows, or leave the regime out.",
            client=fragment.client,
            regime=regime,
        )


# The digits that are kept of numbers other than log Bayes factors.
_ROW_DIGITS, _FINDING_DIGITS = 2, 3
# Findings of reading a table that speak of rows and regimes alone.
_ROWS_LEFT_OUT = ("incomplete-rows", "trimmed-rows", "unusable-regime")


def rounded(fragment: Fragment) -> Fragment:
    """The fragment with numbers rounded to what their sampling error justifies.

    This makes it harder to learn about one row from two fragments, not impossible.

    Examples
    --------
    >>> from jigsaw_crl.federated.disclosure import rounded
    >>> import jigsaw_crl as jc
    >>> client = jc.simulate.setting("A", 0).client(0, n_samples=1234)
    >>> rounded(jc.recover_fragment(client)).n_samples["control"]
    1200
    """
    sizes = fragment.n_samples
    findings = (
        replace(f, value=_digits(f.value), threshold=_digits(f.threshold))
        for f in fragment.findings
    )
    return replace(
        fragment,
        bayes=None if fragment.bayes is None else fragment.bayes.coarse(),
        soft=None if fragment.soft is None else fragment.soft.coarse(),
        n_samples=None
        if sizes is None
        else {name: max(int(float(f"{n:.{_ROW_DIGITS}g}")), 1) for name, n in sizes.items()},
        findings=tuple(findings),
    )


def with_rows_left_out(fragment: Fragment, noticed: Iterable[Finding]) -> Fragment:
    """The fragment with the numbers of rows that reading left out, which name no columns."""
    told = tuple(f for f in noticed if f.check in _ROWS_LEFT_OUT)
    return replace(fragment, findings=(*told, *fragment.findings))


def _digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_FINDING_DIGITS}g}")


def shown(fragment: Fragment) -> str:
    """Each field of the fragment, what it says, and its whole content in one line.

    Lines that begin with `#` explain; the others are what the file holds.
    """
    text = fragment.to_json()
    lines = [f"# {len(text.encode())} bytes would leave this site; this is all of them."]
    for name, value in json.loads(text).items():
        lines.append(f"# {name}: {FIELDS[name]}")
        lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines)
