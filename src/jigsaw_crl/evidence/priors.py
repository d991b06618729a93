"""Constants of the evidence model, each with its reason."""

from __future__ import annotations

import math

# Sizes of an effect on c, in units of the length of c: plain effects and weak ones. A third scale
# is not in the table of a client: an effect that is too small to see, whose factor is 1.
STRONG, WEAK = 0.5, 0.08

# Prior log-odds against each relation of a pair: most pairs are unrelated.
PAIR_COST = 1.0
# Inside a district the data say nothing about ancestry, so the prior remains: the probability of
# one direction against the other direction and neither.
IN_DISTRICT = 1.0 / (2.0 + math.exp(PAIR_COST))
# Share of a client's pairs that lie in one district, before its data: one of four relations. It is
# then estimated from all pairs of the client, and this prior counts as so many pairs.
OPEN_SHARE, OPEN_PAIRS = 0.25, 10.0
# Share of the pairs that a hidden cause joins, whatever else relates them, where a hard
# intervention tells effects from hidden causes.
HIDDEN_SHARE = 0.3
# Share of the pairs of one district whose hidden cause reaches the second label weakly, so that
# the first one looks like its ancestor.
ONE_WEAK = 0.08
# That is a property of the label, the same in all its pairs: the share of such labels before the
# data, and the number of pairs that this counts as.
WEAK_LABELS, WEAK_PAIRS = 0.1, 2.0

# Probability that what a client says about a pair is worth nothing, however sure it is: a wrong
# label on a regime, a copied file, a system that is not linear, a lie. This bounds one client's
# log factor of a pair by log 10,000 = 9.2; beyond that, its own model error is more probable than
# what it says.
MODEL_ERROR = 1e-4

# Probability that a target with ancestors shows a single direction, for what one client says on
# its own. The assembly estimates it from all clients.
MISSED = 0.1
