"""What a result that goes on from another says, in a real browser: knowledge, news, proposals."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc
from jigsaw_crl.result.difference import difference

from .studies import contested_result
from .test_browser import ask, certificate_on, explained, violations, wait_for_answer

pytestmark = pytest.mark.slow

SIZES = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def grown():
    """A study that another client joined, with knowledge, a covariate and a regime left out."""
    world = jc.simulate.random_world(6, 5, 0.6, seed=4)
    north, south, *others, last = world.clients(1_000)
    control, regimes = world.rows(0, 1_000)
    rng = np.random.default_rng(0)
    # Later regimes were recorded in warmer weather, to which all sensors respond.
    table = pd.concat(
        pd.DataFrame(rows).add_prefix("x").assign(ambient=k + rng.normal(size=1_000), regime=label)
        for k, (label, rows) in enumerate({"control": control, **regimes}.items())
    )
    north = jc.Client.from_table(table, name=north.name, covariates=["ambient"])
    control, regimes = world.rows(1, 1_000)
    copy, original = list(regimes)[:2]
    regimes[copy] = regimes[original]
    south = jc.Client.from_samples(south.name, observational=control, interventions=regimes)
    clients = [north, south, *others]
    (a, d), (e, f) = sorted(jc.recover(clients).order.pairs())[:2]
    known = jc.Knowledge(ancestor=[(a, d)], not_ancestor=[(e, f)])
    earlier = jc.recover(clients, knowledge=known)
    later = earlier.add(last)
    proposal = jc.next_client(later.order, cost={"z2": 3}, cannot=["z1"])
    news = {"since": difference(earlier, later).news}
    return replace(later, proposal=proposal, provenance={**later.provenance, **news})


def test_the_news_and_what_was_left_out_stand_at_the_top(visit, grown):
    page = visit(grown)
    assert page.locator("#since").inner_text() == grown.provenance["since"]
    assert grown.provenance["since"].startswith("Since last time: client-5 joined")
    (part,) = grown.left_out
    assert str(part) in page.locator("#left-out").inner_text()
    assert page.locator(".summary strong").first.inner_text() == grown.summary
    assert page.locator("#last").inner_text() == grown.summary
    boxes = [note.bounding_box() for note in page.locator(".summary > .note").all()]
    assert all(a["y"] + a["height"] < b["y"] for a, b in pairwise(boxes))


def test_what_you_said_is_named_as_the_source(visit, grown, folder, told):
    page = visit(grown)
    known = grown.order.options.knowledge
    for a, d in (*known.ancestor, *known.not_ancestor):
        ask(page, a, d)
        said = certificate_on(page)
        assert "you said so" in said
        assert said == explained(told, folder(grown), a, d)
    cards = page.locator("#findings .finding strong").all_inner_texts()
    assert {"knowledge-contradicted", "covariate-differs"} <= set(cards)


def test_the_next_client_has_a_kind_a_cost_and_pairs_to_ask_about(visit, grown):
    page = visit(grown)
    told, proposal = page.locator("#next").inner_text(), grown.proposal
    assert proposal.kinds in told
    assert proposal.kinds.startswith("Make the interventions on ")
    assert "per unit of cost" in told
    assert page.locator("#next .want").all_inner_texts() == list(proposal.labels)
    assert "z1" not in proposal.labels
    page.locator("#next .pair").first.click()
    a, d = proposal.settles[0]
    wait_for_answer(page, a, d)


@pytest.mark.parametrize(("width", "scheme"), SIZES)
@pytest.mark.parametrize("name", ["grown", "contested"])
def test_news_are_readable_at_every_width_and_theme(visit, grown, name, width, scheme):
    result = grown if name == "grown" else contested_result()
    page = visit(result, width=width, scheme=scheme, bypass_csp=True)
    a, d = next(iter(result.order.contested or grown.order.options.knowledge.ancestor))
    ask(page, a, d)
    certificate_on(page)
    assert not violations(page, ("minor", "moderate", "serious", "critical"))
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for text in page.locator(".summary .note, #next p, #findings p, #why-body .badge").all():
        assert text.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
