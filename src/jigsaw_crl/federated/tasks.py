"""Names that coordinator and sites agree on."""

from __future__ import annotations

__all__ = ["ANSWER", "ROUND", "TASK"]

TASK = "fragment"
"""The one task there is."""
ROUND = "round"
"""Key of the round's name in what is sent to a site."""
ANSWER = "answer"
"""Key of the answer in what a site sends back."""
