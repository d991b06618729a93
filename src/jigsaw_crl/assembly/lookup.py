"""What to say of a label that is not in an order."""

from __future__ import annotations

from collections.abc import Sequence

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import did_you_mean, few
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["unknown_label"]


def unknown_label(
    label: object, labels: Sequence[str], fragments: Sequence[Fragment]
) -> InputError:
    """The error for a label that no client has, or that was left out, with the reason."""
    refused = [
        f"{piece.client}: {finding.message}"
        for piece in fragments
        for finding in piece.findings
        if finding.severity == "error" and finding.regime == label
    ]
    known = f"The order knows {few(labels)}."
    if refused:
        why = "; ".join(refused)[:300]
        return InputError(f"the label {label!r} was left out ({why})", known)
    return InputError(
        f"no client has the label {label!r}", f"{known} {did_you_mean(label, labels)}".strip()
    )
