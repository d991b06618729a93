"""A common cause that a client lacks makes its effects look related there: counted once."""

import numpy as np

from jigsaw_crl import Verdict, assemble

from .clients import weighs


def weighing(name, labels, odds):
    """Log factors (ancestor, district) of some pairs; all other pairs look unrelated."""
    p = len(labels)
    ancestor, district = np.full((2, p, p), -3.0), np.full((p, p), -5.0)
    ancestor[1] = -1.5
    for pair, (yes, inside) in odds.items():
        i, j = (labels.index(x) for x in pair)
        ancestor[:, i, j] = yes
        district[i, j] = district[j, i] = inside
    return weighs(name, labels, ancestor, district)


def test_clients_without_the_cause_cannot_outvote_those_that_have_it():
    # At clients without h, i looks like an ancestor of j, and a district explains that nearly as
    # well; clients with h see nothing between i and j.
    without = [weighing(f"w{k}", "ijmn", {"ij": (6.0, 5.0), "mn": (9.0, -9.0)}) for k in range(4)]
    sees = {"hi": (9.0, -9.0), "hj": (9.0, -9.0), "mn": (9.0, -9.0)}
    both = [weighing(f"b{k}", "hijmn", {**sees, "ij": (-0.5, -3.0)}) for k in range(2)]
    order = assemble([*without, *both])
    assert order.verdict("h", "i") is Verdict.ANCESTOR
    assert order.verdict("h", "j") is Verdict.ANCESTOR
    assert order.verdict("m", "n") is Verdict.ANCESTOR
    assert order.verdict("i", "j") is not Verdict.ANCESTOR


def test_the_same_evidence_is_believed_where_no_common_cause_is_hidden():
    sees = [weighing(f"w{k}", "ijmn", {"ij": (6.0, 5.0), "mn": (9.0, -9.0)}) for k in range(4)]
    assert assemble(sees).verdict("i", "j") is Verdict.ANCESTOR


def test_a_cause_may_be_above_a_label_that_no_client_has_beside_it():
    # h → m → i and h → j, each from another client; others have i and j, and no h.
    without = [weighing(f"w{k}", "ij", {"ij": (6.0, 5.0)}) for k in range(4)]
    parts = [weighing(x, x, {x: (9.0, -9.0)}) for x in ("hm", "mi", "hj")]
    assert assemble([*without, *parts]).verdict("i", "j") is not Verdict.ANCESTOR
    assert assemble([*without, *parts[:2]]).verdict("i", "j") is Verdict.ANCESTOR


def test_a_label_below_which_hidden_causes_look_like_ancestry_is_believed_less_in_all_its_pairs():
    # At clients without h every other effect of h looks like an ancestor of the weak effect w;
    # where h is, nothing is between them. Only one pair of "v" looks so.
    effects, odds = "abcde", (6.0, 4.5)
    sees = {f"h{x}": (9.0, -9.0) for x in (*effects, "w", "v")}
    both = [weighing(f"b{k}", "h" + effects + "wv", sees) for k in range(2)]

    def doubted(pairs):
        said = dict.fromkeys(pairs, odds)
        without = [weighing(f"w{k}", effects + "wv", said) for k in range(4)]
        order = assemble([*without, *both])
        return float(order.table.evidence[order.indices("a", "w")])

    assert doubted([f"{x}w" for x in effects]) < doubted(["aw", "bv"]) - 0.7
