"""A further site in a result: the same order as a recovery of all, and a result like any other."""

import pytest

import jigsaw_crl as jc

from ..assembly.strategies import assert_same


def clients(kind):
    world = jc.simulate.setting("A", 0)
    return world.clients() if kind == "exact" else world.clients(n_samples=2000, seed=4)


@pytest.fixture(
    scope="module", params=[("exact", "null-cone"), ("rows", "null-cone"), ("rows", "paper")]
)
def grown(request):
    """A result of all sites but one, the result of all, and the last site."""
    kind, method = request.param
    *first, last = clients(kind)
    return jc.recover(first, method=method), jc.recover([*first, last], method=method), last


def test_a_fragment_can_be_added_to_a_result_that_was_read_back(grown, tmp_path):
    part, whole, last = grown
    method = "paper" if part.order.mode == "paper" else "null-cone"
    shared = jc.Fragment.from_json(jc.recover_fragment(last, method).to_json())
    again = jc.load_result(part.save(tmp_path / "part")).add(shared)
    assert_same(again.order, whole.order)
    kept = jc.load_result(again.save(tmp_path / "whole"))
    assert_same(kept.order, whole.order)
    assert kept.provenance["added"] == [last.name]
    assert kept.provenance["n_samples"][last.name] == last.n_samples
    page = again.report(tmp_path / "report.html").read_text()
    assert last.name in page


def test_the_proposal_is_that_of_its_order_and_does_not_outlive_it(tmp_path):
    *first, last = clients("exact")
    proposed = jc.recover(first).with_proposal(size=3)
    kept = jc.load_result(proposed.save(tmp_path / "out"))
    assert kept.proposal == jc.next_client(proposed.order, size=3)
    assert proposed.add(last).proposal is None
    assert jc.recover(first, method="paper").with_proposal().proposal is None


def test_what_cannot_be_added_is_refused_in_one_line():
    *first, last = clients("exact")
    result = jc.recover(first)
    with pytest.raises(jc.InputError, match=r"'client-1': the result has this .* replace=True"):
        result.add(first[0])
    with pytest.raises(jc.InputError, match="no client 'client-5' to replace"):
        result.add(last, replace=True)
    with pytest.raises(jc.InputError, match="no client 'client-5' to remove"):
        result.remove("client-5")
    with pytest.raises(jc.InputError, match="no client would be left"):
        result.remove(*(c.name for c in first))
    with pytest.raises(jc.InputError, match="no client is given"):
        result.add()
    with pytest.raises(jc.InputError, match="not str"):
        result.add("client-9")  # type: ignore[arg-type]
    with pytest.raises(jc.InputError, match="confounding: options belong to"):
        result.add(jc.recover_fragment(last), confounding="none")


@pytest.mark.parametrize("kind", ["exact", "rows"])
def test_without_a_site_the_result_is_that_of_the_others(kind, tmp_path):
    first, *others = clients(kind)
    whole = jc.recover([first, *others])
    kept = whole.remove(first.name)
    assert_same(kept.order, jc.recover(others).order)
    assert {f.client for f in kept.diagnostics} <= {None, *(c.name for c in others)}
    assert kept.provenance["removed"] == [first.name]
    assert first.name not in kept.provenance["n_samples"]
    assert_same(jc.load_result(kept.save(tmp_path / "kept")).order, kept.order)
    assert_same(kept.add(first).order, whole.order)


@pytest.mark.slow
def test_corrected_data_take_the_place_of_the_earlier_ones(tmp_path, told):
    world = jc.simulate.setting("A", 0)
    wrong = world.client(0, n_samples=2_000, seed=9)
    *others, last = [world.client(k, n_samples=2_000, seed=4) for k in (1, 2, 3, 0)]
    result, right = jc.recover([*others, wrong]), jc.recover([*others, last])
    again = result.add(last, replace=True)
    assert_same(again.order, right.order)
    assert "removed" not in again.provenance
    assert again.fragments[last.name].basis is not None
    folder = result.save(tmp_path / "result")
    path = jc.save_fragment(jc.recover_fragment(last), tmp_path / "new.json")
    assert "--replace" in told("assemble", path, "--into", folder, code=2)
    told("assemble", path, "--into", folder, "--replace")
    assert_same(jc.load_result(folder).order, right.order)
    told("assemble", "--into", folder, "--remove", last.name)
    assert_same(jc.load_result(folder).order, jc.recover(others).order)
    for wrong in (["--into", folder, "--remove", "lab-9"], [path, "--replace"], ["--into", folder]):
        told("assemble", *wrong, code=2)


def test_the_command_can_leave_the_first_result_alone(tmp_path, told):
    *first, last = clients("exact")
    folder = jc.recover(first).save(tmp_path / "result")
    before = (folder / "result.json").read_bytes()
    path = jc.save_fragment(jc.recover_fragment(last), tmp_path / "new.json")
    command = ["assemble", "--into", folder, path, "--out", tmp_path / "larger"]
    assert "cannot be changed with --into" in told(*command, "--seed", "3", code=2)
    told(*command)
    assert (folder / "result.json").read_bytes() == before
    assert last.name in jc.load_result(tmp_path / "larger").fragments


def test_an_order_on_other_fragments_is_refused():
    worlds = (jc.simulate.random_world(6, 3, 0.8, seed) for seed in (1, 77))
    result, other = (jc.recover(world.clients()) for world in worlds)
    with pytest.raises(jc.InputError, match="fragments"):
        jc.Result(other.fragments, result.order)
