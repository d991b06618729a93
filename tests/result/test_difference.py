"""What changed between two results, and because of which sites."""

from __future__ import annotations

import json

import jigsaw_crl as jc
from jigsaw_crl.cli import app as cli
from jigsaw_crl.result.difference import difference


def test_a_site_that_joins_or_leaves_is_the_reason():
    first, *others = jc.simulate.setting("A", 0).clients()
    part, whole = jc.recover(others), jc.recover([first, *others])
    grown, shrunk = difference(part, whole), difference(whole, part)
    assert (grown.joined, grown.left, grown.changed) == ((first.name,), (), ())
    assert (shrunk.joined, shrunk.left) == ((), (first.name,))
    assert grown.verdicts
    for change in grown.verdicts:
        pair = (change.ancestor, change.descendant)
        assert change.before == str(part.order.verdict(*pair))
        assert change.after == str(whole.order.verdict(*pair)) != change.before
        assert change.because == ((first.name,) if set(pair) <= set(first.labels) else ())
    back = {(c.ancestor, c.descendant, c.after, c.before) for c in shrunk.verdicts}
    assert back == {(c.ancestor, c.descendant, c.before, c.after) for c in grown.verdicts}


def test_corrected_data_and_knowledge_are_reasons_and_equal_results_have_none(tmp_path, capsys):
    world = jc.simulate.random_world(5, 3, 0.9, seed=4, intervention="hard")
    clients = world.clients(n_samples=400, seed=1)
    old = jc.recover(clients, interventions="hard")
    corrected = world.client(0, n_samples=4_000, seed=2)
    new = old.add(corrected, replace=True, interventions="hard")
    found = difference(old, new)
    assert found.changed == (corrected.name,)
    assert found.effects
    assert all(set(e.because) <= {corrected.name} for e in found.effects)
    assert difference(old, old).summary.startswith("the sites are the same: 0 verdicts")
    known = jc.recover(clients, interventions="hard",
                       knowledge=jc.Knowledge([[world.order.topological()[0]]]))  # fmt: skip
    assert difference(old, known).knowledge
    folders = [str(r.save(tmp_path / name)) for r, name in ((old, "old"), (new, "new"))]
    assert cli.run(["diff", *folders, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed"] == [corrected.name]
    assert cli.run(["diff", *folders]) == 0
    assert f"{corrected.name} changed" in capsys.readouterr().out
