"""What the user knows is in the order, with what follows from it, and certificates say so."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from jigsaw_crl import InputError, Knowledge, Verdict, assemble, next_client
from jigsaw_crl.assembly.conclusion import conclude
from jigsaw_crl.assembly.explanation import check_certificate
from jigsaw_crl.assembly.order import Options
from jigsaw_crl.base.order import refuted, transitive_closure

from .clients import lab, noisy, perfect, small_world
from .strategies import LABELS, labs, true_labs

CONTRADICTED = "knowledge-contradicted"


@st.composite
def knowledge(draw):
    """Anything about four labels that does not contradict itself."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pairs = [pair for pair in permutations(LABELS, 2) if rng.random() < 0.3]
    cut = rng.integers(len(pairs) + 1)
    tiers = [[x for x in LABELS if rng.random() < 0.4]] if rng.random() < 0.3 else []
    tiers += [[x for x in LABELS if tiers and x not in tiers[0]]]
    try:
        return Knowledge(tiers, pairs[:cut], pairs[cut:])
    except InputError:
        assume(False)
        raise


def follows(known, labels):
    yes, no = known.facts(labels)
    above = transitive_closure(yes)
    return above, refuted(above, no)


@given(labs(), knowledge())
# No client weighs anything about these labels.
@example([lab("lab-1", "ac", one_of=[("c", "a")])], Knowledge(ancestor=["a -> c"]))
def test_it_is_in_the_order_whatever_the_data_say_and_certificates_hold(fragments, known):
    order, again = (conclude(fragments, options=Options(knowledge=known)).order for _ in range(2))
    yes, no = follows(known, order.labels)
    assert (order.verdicts[yes] == 1).all()
    assert (order.verdicts[no] == 0).all()
    assert order.decoded[yes].all()
    assert not order.decoded[no & ~np.eye(len(no), dtype=bool)].any()
    np.testing.assert_allclose(order.probabilities[yes], 1.0)
    np.testing.assert_allclose(order.probabilities[no], 0.0, atol=1e-12)
    for sampled in order.sample(3):
        assert sampled[yes].all()
        assert not sampled[no].any()
    for pair in permutations(order.labels, 2):
        assert check_certificate(order.explain(*pair), again) == ""


@given(true_labs(), knowledge())
def test_exact_facts_are_those_of_a_client_that_states_the_same(fragments, known):
    here = sorted({label for piece in fragments for label in piece.labels})
    yes, no = known.facts(here)
    pairs = [[(here[a], here[d]) for a, d in np.argwhere(said).tolist()] for said in (yes, no)]
    stated = [*fragments, lab("you", here, yes=pairs[0], no=pairs[1])]
    order = conclude(fragments, options=Options(knowledge=known)).order
    expected = assemble(stated)
    assume(expected.mode == "exact")
    assert order.mode == "exact"
    np.testing.assert_array_equal(order.verdicts, expected.verdicts)


def test_the_certificate_says_who_said_it_and_who_does_not():
    labs = [lab("lab-1", "abc", yes=[("a", "b")]), lab("lab-2", "bc", no=[("b", "c")])]
    order = assemble(labs, knowledge=Knowledge(ancestor=["a -> c"]))
    assert "a is an ancestor of c: you said so" in str(order.explain("a", "c"))
    order = assemble(labs, knowledge=Knowledge(ancestor=["b -> c"]))
    assert order.mode == "evidence"
    assert "you say yes; lab-2 says no" in order.notes[0]
    assert "b is an ancestor of c: you said so; lab-2 says no" in str(order.explain("b", "c"))
    forged = order.explain("b", "c")
    assert check_certificate(forged, labs) != ""


def test_designs_ask_nothing_about_what_is_known():
    labs = [lab("lab-1", "ac", yes=[("a", "c")]), lab("lab-2", "bc", yes=[("b", "c")])]
    for known, asked in ((["a -> b"], ("a", "b")), (["a -> b", "b -> a"], ())):
        order = assemble(labs, knowledge=Knowledge(not_ancestor=known))
        assert next_client(order, size=2).labels == asked


@pytest.mark.parametrize("sampled", [False, True])
def test_data_that_decide_the_opposite_are_named(sampled):
    world = small_world(0)
    fragments = noisy(world, 0.02) if sampled else perfect(world)
    right, wrong = [], []
    for a, d in sorted(assemble(fragments).pairs()):
        for known, found in (([(a, d)], right), ([(d, a)], wrong)):
            said = Knowledge(ancestor=known)
            concluded = conclude(fragments, options=Options(knowledge=said))
            assert concluded.order.verdict(*known[0]) is Verdict.ANCESTOR
            found += [f.message for f in concluded.findings if f.check == CONTRADICTED]
            if found is wrong:
                assert f"'{d}' is an ancestor of '{a}'" in found[-1]
        if len(wrong) == 2:
            break
    assert not right
    assert len(wrong) == 2


def test_names_types_and_methods_are_checked():
    labs = [lab("lab-1", "ab")]
    with pytest.raises(InputError, match="no client has: 'x'"):
        assemble(labs, knowledge=Knowledge(ancestor=["a -> x"]))
    with pytest.raises(InputError, match="knowledge is a dict"):
        assemble(labs, knowledge={"ancestor": ["a -> b"]})
    with pytest.raises(InputError, match="knowledge belongs to the null-cone method"):
        assemble(labs, method="paper", knowledge=Knowledge(ancestor=["a -> b"]))
