"""All roads to a result give one table of pairs and the same findings."""

from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly import conclusion as road
from jigsaw_crl.assembly import explanation
from jigsaw_crl.assembly.evidence import Evidence
from jigsaw_crl.assembly.explanation import check_certificate
from jigsaw_crl.cli.app import run
from jigsaw_crl.federated.answer import make_answer
from jigsaw_crl.federated.round import Gathering
from jigsaw_crl.federated.settings import CoordinatorSettings, SiteSettings
from jigsaw_crl.result import folder
from jigsaw_crl.truth.simulate import Intervention

from .assembly import test_meanings as meanings

pytestmark = pytest.mark.slow


def findings(result):
    return Counter((str(f), f.value, f.threshold) for f in result.diagnostics)


def assert_same_result(one, other):
    assert one.order.to_frame().equals(other.order.to_frame())
    assert one.order.notes == other.order.notes
    assert one.order.client_weights == other.order.client_weights
    assert one.effects.equals(other.effects)
    assert findings(one) == findings(other)
    for a, d in permutations(one.order.labels, 2):
        certificate = one.order.explain(a, d)
        assert str(certificate) == str(other.order.explain(a, d))
        # A round asks for a number of witnesses, which is another option.
        if one.order.options == other.order.options:
            assert check_certificate(certificate, other.order) == ""


# -- the roads ------------------------------------------------------------------------------------
def added(fragments, seed):
    """One site first, the others one by one in another order."""
    order = np.random.default_rng(seed).permutation(len(fragments)).tolist()
    first = fragments[order[0]]
    concluded = road.conclude([first])
    result = jc.Result({first.client: first}, concluded.order, concluded.findings)
    for k in order[1:]:
        result = result.add(fragments[k])
    return result


def from_files(fragments, root):
    paths = [jc.save_fragment(f, root / f"{f.client}.json") for f in fragments]
    assert run(["assemble", *map(str, paths), "--out", str(root / "out")]) == 0
    return jc.load_result(root / "out")


def by_round(fragments, root):
    names = tuple(f.client for f in fragments)
    settings = CoordinatorSettings(
        sites=names, results=root / "rounds", most_bytes=10_000_000, witnesses=1
    )
    gathering = Gathering.open(settings, "first")
    for fragment in fragments:
        path = root / f"{fragment.client}.sent.json"
        path.write_text(fragment.to_json())
        answer = make_answer(SiteSettings(fragment=path), fragment.client, "first")
        standing = gathering.receive(fragment.client, answer)
        assert standing.state == "received", standing
    return gathering.finish(1)


# -- the studies ----------------------------------------------------------------------------------
def clean():
    return jc.simulate.random_world(8, 5, 0.5, 11).clients(2_000)


def many():
    return jc.simulate.random_world(8, 8, 0.8, 15).clients(2_000)


def hard():
    world = jc.simulate.random_world(8, 5, 0.7, 12, intervention=Intervention("hard", shift=1.0))
    return [c.with_interventions("hard") for c in world.clients(2_000)]


def not_hard():
    """Soft interventions that every site calls hard."""
    world = jc.simulate.random_world(8, 5, 0.8, 13)
    return [c.with_interventions("hard") for c in world.clients(5_000)]


def nonlinear():
    world = jc.simulate.random_world(12, 8, 0.6, 5)
    return world.clients(10_000, departures=["nonlinear-system=0.5"])


def mislabelled():
    return meanings.mislabelled()[1]


def copied(fragments):
    largest = max(fragments, key=lambda fragment: len(fragment.labels))
    return [*fragments, *(replace(largest, client=f"copy-{k}", findings=()) for k in range(3))]


def lying(fragments):
    b = fragments[0].bayes
    return [replace(fragments[0], bayes=replace(b, ancestor=-b.ancestor)), *fragments[1:]]


@pytest.mark.parametrize(
    ("study", "shows"),
    [
        (clean, {"lonely-labels", "unseen-pairs"}),
        (hard, set()),
        (not_hard, {"not-hard"}),
        (nonlinear, {"not-linear", "unclear-regime"}),
        (mislabelled, {"label-differs"}),
    ],
)
def test_recovering_adding_assembling_and_a_round_give_one_table(study, shows, tmp_path):
    clients = study()
    whole = jc.recover(clients)
    assert shows <= {f.check for f in whole.diagnostics}
    assert bool(whole.order.pairs()) == (study is not nonlinear)
    assert whole.effects.empty == (study not in (hard, not_hard))
    sent = list(whole.order.fragments)
    for name, fragment in whole.fragments.items():
        (own,) = (f for f in sent if f.client == name)
        assert own.evidence is fragment.evidence or np.array_equal(
            own.evidence, fragment.evidence, equal_nan=True
        )
    for result in (added(sent, 0), added(sent, 1), from_files(sent, tmp_path)):
        assert_same_result(whole, result)
    assert_same_result(whole, by_round(sent, tmp_path))
    grown = jc.recover(clients[1:]).add(clients[0])
    assert_same_result(whole, grown)


@pytest.mark.parametrize(
    ("study", "change", "note"),
    [(clean, copied, "count as one client"), (many, lying, "contradicts the other clients")],
)
def test_changed_fragments_give_one_table_by_every_road(study, change, note, tmp_path):
    given = change(list(jc.recover(study()).order.fragments))
    results = [added(given, 0), added(given, 1), from_files(given, tmp_path)]
    assert any(note in said for said in results[0].order.notes)
    for result in results[1:]:
        assert_same_result(results[0], result)
    assert_same_result(results[0], by_round(given, tmp_path))


def test_a_site_more_does_not_undo_what_is_withheld():
    clients = nonlinear()
    whole, seven = jc.recover(clients), jc.recover(clients[:-1])
    assert not whole.order.pairs()
    assert not seven.add(clients[-1]).order.pairs()
    assert any(f.check == "not-linear" and f.client is None for f in whole.diagnostics)


def test_copies_count_once_in_effects():
    world = jc.simulate.random_world(6, 3, 0.9, 14, intervention=Intervention("hard", shift=1.0))
    sent = list(jc.recover(world.clients(1_000), interventions="hard").order.fragments)
    once, often = jc.assemble(sent), jc.assemble(copied(sent))
    known = once.effects.known
    np.testing.assert_array_equal(once.effects.error[known], often.effects.error[known])
    np.testing.assert_array_equal(once.effects.sites, often.effects.sites)


def test_a_recovery_with_its_proposal_and_its_files_computes_everything_once(monkeypatch, tmp_path):
    counts: Counter = Counter()

    def counted(module, name, key=None):
        original = getattr(module, name)

        def wrapper(*args, **kwargs):
            counts[key(*args) if key else name] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, wrapper)

    counted(road, "read_fragments")
    counted(explanation, "explain", lambda _, a, d: ("certificate", a, d))
    pooled = Evidence.pooled.func

    def pool(self):
        # Single directions are set aside under the same use.
        use, says = self.use, tuple(int(c.says.sum()) for c in self.claims)
        key = use.weights.tobytes(), use.rate, use.soft, use.withheld, says
        counts["pooled", key] += 1
        return pooled(self)

    monkeypatch.setattr(Evidence.pooled, "func", pool)
    result = jc.recover(jc.simulate.random_world(14, 5, 0.6, 3).clients(2_000)).with_proposal()
    assert not any(key[0] == "certificate" for key in counts)
    while_writing: list[Counter] = []
    write = folder.write_text

    def written(path, text):
        while_writing.append(counts.copy())
        return write(path, text)

    monkeypatch.setattr(folder, "write_text", written)
    result.save(tmp_path / "out")
    assert len(while_writing) == 6
    assert while_writing[0] == counts
    assert counts["read_fragments"] == 1
    assert {counts[k] for k in counts if k[0] in ("certificate", "pooled")} == {1}
    assert sum(key[0] == "pooled" for key in counts) <= 2
    assert sum(key[0] == "certificate" for key in counts) == 14 * 13
