"""Every verdict can be recomputed from its certificate and the fragments alone."""

from dataclasses import replace
from itertools import permutations, product

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl import Verdict, assemble
from jigsaw_crl.assembly.entailment import Fact
from jigsaw_crl.assembly.explanation import check_certificate

from .clients import lab, noisy, perfect, small_world
from .strategies import labs


def follows(step, known, order):
    """Does a step follow from its premises, by the definition of its rule?"""
    fact = step.fact
    if step.rule == "chain":
        graph = nx.DiGraph([(f.subject, f.object) for f in known if f.holds])
        return fact.holds and nx.has_path(graph, fact.subject, fact.object)
    if step.rule == "excluded":
        above = {fact.subject} | {f.subject for f in known if f.holds and f.object == fact.subject}
        below = {fact.object} | {f.object for f in known if f.holds and f.subject == fact.object}
        return not fact.holds and any(
            u == v or Fact(u, v, False) in known or Fact(v, u, True) in known
            for u, v in product(above, below)
        )
    if step.rule == "one-of":
        (client,) = (f for f in order.fragments if f.client == step.client)
        assert (frozenset(step.about), fact.object) in client.statements.one_of
        return fact.holds and all(
            c == fact.subject or {Fact(c, fact.object, False), Fact(fact.subject, c, True)} & known
            for c in step.about
        )
    return not known and (step.rule != "stated" or len(step.supporting) > 0)


def check_all(order):
    again, rules = assemble(order.fragments, method=order.options.method), set()
    for a, d in permutations(order.labels, 2):
        certificate = order.explain(a, d)
        assert check_certificate(certificate, again) == "", str(certificate)
        assert certificate.verdict is order.verdict(a, d)
        assert str(certificate).startswith((f"{a} is", "Whether"))
        rules |= {step.rule for step in certificate.steps}
        for number, step in enumerate(certificate.steps):
            assert all(i < number for i in step.because)
            known = {certificate.steps[i].fact for i in step.because}
            assert follows(step, known, order), str(certificate)
        if certificate.steps:
            holds = certificate.verdict is Verdict.ANCESTOR
            assert certificate.steps[-1].fact == Fact(a, d, holds)
    return rules


@given(labs=labs(), method=st.sampled_from(["null-cone", "paper"]))
def test_every_certificate_that_explain_gives_is_accepted(labs, method):
    order = assemble(labs, method=method)
    check_all(order)
    a, d = order.labels[:2]
    assert check_certificate(order.explain(a, d), labs) == ""


def test_every_certificate_of_exact_results_checks():
    rules: set[str] = set()
    for seed in range(6):
        world = small_world(seed, n_latent=20, n_clients=4)
        rules |= check_all(assemble(perfect(world)))
    assert rules >= {"stated", "chain", "excluded", "one-of"}


@pytest.mark.parametrize("make", [perfect, lambda world: noisy(world, 0.1)])
def test_a_forged_certificate_is_rejected(make):
    order = assemble(make(small_world(1)))
    a, d = sorted(order.pairs())[0]
    certificate = order.explain(a, d)
    first, last = certificate.steps[0], certificate.steps[-1]
    false = {
        "verdict": Verdict.UNDETERMINED,
        "descendant": next(x for x in order.labels if x not in (a, d)),
        "probability": 0.999_9,
        "effect": {"kind": "total effect", "total": 0.8},
        "rests_on": "nobody",
    }
    forged = [replace(certificate, **{name: value}) for name, value in false.items()]
    forged += [
        replace(certificate, steps=(replace(first, supporting=("nobody",)),)),
        replace(certificate, steps=(*certificate.steps[:-1], replace(last, rule="excluded"))),
        replace(certificate, steps=(replace(first, because=(0,)),)),
    ]
    assert all(check_certificate(one, order) != "" for one in forged)
    assert check_certificate(forged[2], order.fragments) == "the fragments give another probability"


def test_the_reason_of_an_undetermined_pair_names_the_clients():
    first = lab("lab-1", "ab", yes=[("a", "b")], no=[("b", "a")])
    order = assemble([first, lab("lab-2", "cd"), lab("lab-5", "cd")])
    assert order.explain("a", "c").reason == "no client saw both"
    reason = "hidden causes join the two at every client that has both (lab-2, lab-5)"
    text = f"Whether c is an ancestor of d is undetermined: {reason}."
    assert str(order.explain("c", "d")) == text
