"""Constants of the evidence model, each with its reason."""

from __future__ import annotations

import math

__all__ = [
    "FIXED",
    "IN_DISTRICT",
    "LEANS",
    "MISSED",
    "OPEN",
    "PAIR_COST",
    "SCALES",
    "STRONG",
    "WEAK",
]

# Sizes of an effect on unit-scaled lines, which lie in [0, 1]: plain effects and weak ones.
STRONG, WEAK = 0.5, 0.05
SCALES = (STRONG, WEAK)

# Prior log-odds against each relation of a pair: most pairs are unrelated.
PAIR_COST = 1.0
# Inside a district the data say nothing about ancestry, so the prior remains: the probability of
# one direction against the other direction and neither.
IN_DISTRICT = 1.0 / (2.0 + math.exp(PAIR_COST))
# Prior of the four relations of a pair at one client (unrelated, either direction, same district):
# three fix ancestry, and one leaves it open.
FIXED, OPEN = 0.75, 0.25

# A target with an ancestor moves two directions. If only one is seen, the other was missed with
# this probability; the visible line then leans towards the target's ancestors. Being missed is a
# property of the target, so the doubt is applied once after pooling, not per client.
MISSED = 0.1
# How far such a line leans, as a share of the largest lean that could be missed: about half of it,
# or a small part.
LEANS = (0.5, 0.125)
