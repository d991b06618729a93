"""Files that are no fragments, and malformed result folders.

What else is refused in a fragment is in tests/fragment/test_file.py.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

import jigsaw_crl as jc

Document = dict[str, Any]


@pytest.fixture(scope="module")
def pieces():
    world = jc.simulate.setting("A", 0)
    return [jc.recover_fragment(c) for c in world.clients(n_samples=5000, seed=3)]


def _set(key, value):
    return lambda d: {**d, key: value}


def _inside(key, inner, change):
    return lambda d: {**d, key: {**d[key], inner: change(d[key][inner])}}


@pytest.fixture
def folder(pieces, tmp_path):
    result = jc.Result({p.client: p for p in pieces}, jc.assemble(pieces))
    return result.save(tmp_path / "result")


RESULTS: dict[str, tuple[Callable[[Document], Any], tuple[str, ...]]] = {
    "a malformed fragment": (_set("fragments", [{"format": "mine"}]), ("fragment",)),
    "no fragments": (_set("fragments", []), ("hold together",)),
    "a verdict of 7": (
        _inside("order", "verdicts", lambda m: [[7] * len(m)] * len(m)),
        ("order.verdicts.0.0", "less than or equal to 1", "jigsaw recover"),
    ),
    "half a character": (_set("provenance", {"study": ["\ud800"]}), ("'provenance'", "codec")),
    "a missing row": (_inside("order", "decoded", lambda m: m[:-1]), ("hold together",)),
    "a proposal of nothing known": (_set("proposal", {"labels": ["zz"]}), ("proposal",)),
    "thousands of labels without a matrix": (
        _inside("order", "labels", lambda _: [f"x{i}" for i in range(4000)]),
        ("one row and column per label",),
    ),
    "other labels": (_inside("order", "labels", lambda x: [*x[:-1], "zz"]), ("labels",)),
}


@pytest.mark.parametrize("case", RESULTS)
def test_a_malformed_result_is_refused(case, folder, refused):
    spoil, says = RESULTS[case]
    path = folder / "result.json"
    path.write_text(json.dumps(spoil(json.loads(path.read_text()))))
    refused(["explain", folder, "z1", "z2"], "result.json", *says)


# Entries of the provenance, as text: the coordinator of a round can write anything there.
PROVENANCE = {
    "a number beyond 64 bits": ('{"x": 1e999}', "out of range"),
    "hundreds of lists in each other": (f'{{"x": {"[" * 500}1{"]" * 500}}}', "levels"),
    "versions that are a number": ('{"versions": 3}', "'versions'"),
    "numbers of rows that are a text": (
        '{"n_samples": {"client-1": "many"}}',
        "n_samples.client-1",
    ),
    "files that are a text": ('{"fragments": "x"}', "'fragments'"),
    "signatures that are a list": ('{"signatures": []}', "'signatures'"),
    "added clients that are a number": ('{"added": 3}', "'added'"),
    "a study that is an object": ('{"study": {}}', "'study'"),
}


@pytest.mark.parametrize("case", PROVENANCE)
@pytest.mark.parametrize("command", ["verify", "report"])
def test_a_result_with_a_provenance_that_cannot_be_used_is_refused(command, case, folder, refused):
    text, says = PROVENANCE[case]
    path = folder / "result.json"
    document = {**json.loads(path.read_text()), "provenance": "HERE"}
    path.write_text(json.dumps(document).replace('"HERE"', text))
    refused([command, folder], "result.json", "'provenance'", says)


def test_a_result_that_is_not_json_is_refused(folder, refused):
    for text in ("{", '{"format": ' + "9" * 5000 + "}", "[" * 100_000):
        (folder / "result.json").write_text(text)
        refused(["report", folder, "-o", folder / "r.html"], "result.json", "JSON")


ARGUMENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "no such fragment": ("assemble HERE/none.json", ("none.json", "no such file")),
    "a folder as a fragment": ("assemble RESULT", ("result",)),
    "no result in the folder": ("explain HERE a b", ("result.json",)),
    "no such folder": ("design HERE/none --size 3", ("none", "no such folder")),
    "an unknown label": ("explain RESULT pump z2", ("'pump'", "z1")),
    "a label and itself": ("explain RESULT z1 z1", ("'z1'",)),
    "a design of one label": ("design RESULT --size 1", ("--size",)),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_that_do_not_fit_the_files_are_refused(case, folder, tmp_path, refused):
    command, says = ARGUMENTS[case]
    words = command.replace("HERE", str(tmp_path)).replace("RESULT", str(folder)).split()
    refused(words, *says)
