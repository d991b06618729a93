"""A result says the same before and after it is saved: verdicts, reasons and the next client."""

from __future__ import annotations

from itertools import permutations

import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly import check_certificate

# Rows per regime (None: exact moments), the method, and the seed of the world.
WORLDS = [
    (None, "null-cone", 0),
    (1_000, "null-cone", 3),
    (1_000, "null-cone", 4),
    (2_000, "paper", 0),
]


@pytest.fixture(scope="module", params=WORLDS, ids=lambda w: f"{w[1]}-{w[0] or 'exact'}-{w[2]}")
def both(request, tmp_path_factory) -> tuple[jc.Result, jc.Result]:
    """A result, and the same one read from its folder."""
    n_samples, method, seed = request.param
    world = jc.simulate.random_world(9, 5, 0.6, seed)
    result = jc.recover(world.clients(n_samples=n_samples, seed=seed), method=method)
    return result, jc.load_result(result.save(tmp_path_factory.mktemp("result")))


def test_every_verdict_probability_and_certificate_is_read_back(both):
    result, again = both
    assert result.order.labels == again.order.labels
    for a, d in permutations(result.order.labels, 2):
        assert again.order.verdict(a, d) is result.order.verdict(a, d)
        assert again.order.probability(a, d) == result.order.probability(a, d)
        before, after = result.order.explain(a, d), again.order.explain(a, d)
        assert after == before
        assert str(after) == str(before)


@pytest.mark.parametrize("size", [3, 5])
def test_the_next_client_is_the_same_after_reading(both, size, tmp_path):
    result, again = both
    proposal = jc.next_client(result.order, size=size)
    assert jc.next_client(again.order, size=size) == proposal
    if result.order.mode == "paper":
        assert result.with_proposal().proposal is None
    else:
        proposed = result.with_proposal(size)
        assert jc.load_result(proposed.save(tmp_path / "out")).proposal == proposal


def test_a_result_without_a_proposal_says_how_to_get_one(both, tmp_path):
    result, _ = both
    page = result.report(tmp_path / "page.html").read_text()
    assert ("jigsaw design DIR --size" in page) == (result.order.mode != "paper")


def test_every_certificate_can_be_checked_with_the_fragments_as_sent(both):
    result, _ = both
    again = jc.assemble(result.order.fragments, **result.options)
    for a, d in permutations(result.order.labels, 2):
        assert check_certificate(result.order.explain(a, d), again) == ""


def test_an_order_on_other_fragments_is_refused():
    worlds = (jc.simulate.random_world(6, 3, 0.8, seed) for seed in (1, 77))
    result, other = (jc.recover(world.clients()) for world in worlds)
    with pytest.raises(jc.InputError, match="fragments"):
        jc.Result(other.fragments, result.order)
