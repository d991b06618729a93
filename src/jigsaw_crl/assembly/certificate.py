"""The certificate of a verdict (see `explanation` for how it is made)."""

from __future__ import annotations

from dataclasses import dataclass

from jigsaw_crl.assembly.verdict import Verdict

__all__ = ["Certificate"]


@dataclass(frozen=True)
class Certificate:
    """Why the verdict on a pair is what it is."""

    ancestor: str
    descendant: str
    verdict: Verdict
    reason: str

    def __str__(self) -> str:
        return f"{self.ancestor} -> {self.descendant}: {self.verdict} ({self.reason})"
