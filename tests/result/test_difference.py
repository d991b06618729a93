"""What changed between two results, and because of which sites."""

import json

import jigsaw_crl as jc
from jigsaw_crl.result.difference import difference


def test_a_site_that_joins_or_leaves_is_the_reason():
    first, *others = jc.simulate.setting("A", 0).clients()
    part, whole = jc.recover(others), jc.recover([first, *others])
    grown, shrunk = difference(part, whole), difference(whole, part)
    assert (grown.joined, grown.left, grown.changed) == ((first.name,), (), ())
    assert (shrunk.joined, shrunk.left) == ((), (first.name,))
    assert grown.of("verdict")
    for change in grown.of("verdict"):
        pair = (change.ancestor, change.descendant)
        assert change.before.says == str(part.order.verdict(*pair))
        assert change.after.says == str(whole.order.verdict(*pair)) != change.before.says
        assert change.because == ((first.name,) if set(pair) <= set(first.labels) else ())
    back = {(c.ancestor, c.descendant, c.after, c.before) for c in shrunk.of("verdict")}
    assert back == {(c.ancestor, c.descendant, c.before, c.after) for c in grown.of("verdict")}


def test_corrected_data_and_knowledge_are_reasons_and_equal_results_have_none(tmp_path, told):
    world = jc.simulate.random_world(5, 3, 0.9, seed=9, intervention="hard")
    clients = world.clients(n_samples=400, seed=1)
    old = jc.recover(clients, interventions="hard")
    corrected = world.client(0, n_samples=4_000, seed=2)
    new = old.add(corrected, replace=True, interventions="hard")
    found = difference(old, new)
    assert found.changed == (corrected.name,)
    assert found.of("total effect")
    assert all(set(e.because) <= {corrected.name} for e in found.changes)
    for edge in found.of("direct edge"):
        for said, graph in ((edge.before, old.graph), (edge.after, new.graph)):
            known = graph.get_edge_data(edge.ancestor, edge.descendant) or {"verdict": "none"}
            assert (known["verdict"] == "direct") == (said is not None)
            assert said is None or said.number == known["weight"]
    assert difference(old, old).summary.startswith("the clients are the same: 0 verdicts")
    known = jc.recover(clients, interventions="hard",
                       knowledge=jc.Knowledge([[world.order.topological()[0]]]))  # fmt: skip
    assert difference(old, known).knowledge
    folders = [r.save(tmp_path / name) for r, name in ((old, "old"), (new, "new"))]
    assert json.loads(told("diff", *folders, "--json"))["changed"] == [corrected.name]
    assert f"{corrected.name} changed" in told("diff", *folders)


def test_effects_that_are_zero_are_no_news_and_turned_labels_no_change_of_an_effect():
    hard = jc.simulate.Intervention("hard", shift=1.0)
    world = jc.simulate.random_world(6, 4, 0.8, seed=3, intervention=hard)
    *others, last = world.clients(n_samples=3_000)
    part = jc.recover(others, interventions="hard")
    whole = part.add(last, interventions="hard")
    found = difference(part, whole)
    came = [e for e in found.of("total effect") if e.before is None]
    at = whole.effects.set_index(["cause", "effect"])
    assert all(
        at.low[e.ancestor, e.descendant] * at.high[e.ancestor, e.descendant] > 0 for e in came
    )
    # A sensor that falls when a label is raised says that its direction is the other one.
    label = max(others[0].labels, key=lambda x: int((part.effects.cause == x).sum()))
    turned = []
    for client in others:
        if label in client.labels:
            feature = client.features[0]
            rise = client.interventions[label][0].mean[0] - client.control.mean[0]
            if rise < 0:
                client = client.with_sensors(up={label: feature})
        turned.append(client)
    other = difference(part, jc.recover(turned, interventions="hard"))
    both = [x for x in other.of("total effect") if x.before and x.after]
    assert all(abs(abs(x.before.number) - abs(x.after.number)) > 0.01 for x in both)


def test_a_result_that_goes_on_tells_what_is_new_first_and_in_its_report(tmp_path, told):
    first, *others = jc.simulate.setting("A", 0).clients(n_samples=5_000)
    folder, sent = tmp_path / "result", tmp_path / "new.json"
    jc.recover(others).save(folder)
    sent.write_text(jc.recover_fragment(first).to_json())
    said = told("assemble", sent, "--into", folder)
    assert said.startswith(f"Since last time: {first.name} joined: ")
    page = (folder / "report.html").read_text()
    assert 'id="since">Since last time: ' in page
    said = told("assemble", "--into", folder, "--remove", first.name)
    assert said.startswith(f"Since last time: {first.name} left: ")
