"""Malformed fragment files and result folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jigsaw_crl as jc

Document = dict[str, Any]


@pytest.fixture(scope="module")
def pieces() -> list[jc.Fragment]:
    world = jc.simulate.setting("A", 0)
    return [jc.recover_fragment(c) for c in world.clients(n_samples=5000, seed=3)]


def _set(key: str, value: Any) -> Callable[[Document], Any]:
    return lambda d: {**d, key: value}


def _drop(key: str) -> Callable[[Document], Any]:
    return lambda d: {k: v for k, v in d.items() if k != key}


def _inside(key: str, inner: str, change: Callable[[Any], Any]) -> Callable[[Document], Any]:
    return lambda d: {**d, key: {**d[key], inner: change(d[key][inner])}}


def _million(document: Document) -> Document:
    return {**document, "labels": [f"l{i}" for i in range(1_000_000)]}


# What else is refused is in tests/fragment/test_file.py.
MALFORMED: dict[str, tuple[Callable[[Document], Any], tuple[str, ...]]] = {
    "another format": (_set("format", "mine"), ("not a jigsaw-crl fragment",)),
    "a newer version": (_set("version", 99), ("99", "upgrade")),
    "an older version": (_set("version", 0), ("version 0", "again")),
    "an extra field": (_set("rows", [[1.0, 2.0]]), ("rows",)),
    "a missing field": (_drop("blocks"), ("blocks",)),
    "a cycle of blocks": (_set("block_covers", [[0, 1], [1, 0]]), ("cycle",)),
    "evidence of the wrong shape": (_inside("bayes", "district", lambda m: m[:1]), ("",)),
    "a million labels": (_million, ("labels", "5000")),
}


@pytest.mark.parametrize("case", MALFORMED)
@pytest.mark.slow
def test_a_malformed_fragment_is_refused(case, pieces, tmp_path, refused):
    spoil, says = MALFORMED[case]
    paths = []
    for i, piece in enumerate(pieces):
        document = json.loads(piece.to_json())
        paths.append(tmp_path / f"{i}.fragment.json")
        paths[-1].write_text(json.dumps(spoil(document) if i == 1 else document))
    refused(["assemble", *paths, "--out", tmp_path / "out"], "1.fragment.json", *says)


TEXTS = {
    "half a file": b'{"format": "jigsaw-crl/fragment", "ver',
    "binary data": bytes(range(256)) * 4,
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_file_that_is_not_a_fragment_is_refused(case, tmp_path, refused):
    path = tmp_path / "lab-1.fragment.json"
    path.write_bytes(TEXTS[case])
    refused(["assemble", path, "--out", tmp_path / "out"], "lab-1.fragment.json")


def test_two_fragments_of_one_client_are_refused(pieces, tmp_path, refused):
    for name in ("one.json", "two.json"):
        (tmp_path / name).write_text(pieces[0].to_json())
    refused(["assemble", tmp_path / "one.json", tmp_path / "two.json"], "two.json", "same client")


# -- results ------------------------------------------------------------------------------------


@pytest.fixture
def folder(pieces: list[jc.Fragment], tmp_path: Path) -> Path:
    result = jc.Result({p.client: p for p in pieces}, jc.assemble(pieces))
    return result.save(tmp_path / "result")


RESULTS: dict[str, tuple[Callable[[Document], Any], tuple[str, ...]]] = {
    "a newer version": (_set("version", 99), ("version 99", "jigsaw-crl", "upgrade")),
    "no version": (_drop("version"), ("version",)),
    "another format": (_set("format", "mine"), ("not a jigsaw-crl result",)),
    "an extra field": (_set("colour", "red"), ("colour",)),
    "a missing field": (_drop("order"), ("order",)),
    "a malformed fragment": (_set("fragments", [{"format": "mine"}]), ("fragment",)),
    "no fragments": (_set("fragments", []), ("hold together",)),
    "a verdict of 7": (
        _inside("order", "verdicts", lambda m: [[7] * len(m)] * len(m)),
        ("order.verdicts.0.0", "less than or equal to 1", "jigsaw recover"),
    ),
    "a missing row": (_inside("order", "decoded", lambda m: m[:-1]), ("hold together",)),
    "a probability of 2": (
        _inside("order", "probabilities", lambda m: [[2.0] * len(m)] * len(m)),
        ("order.probabilities.0.0", "less than or equal to 1", "jigsaw recover"),
    ),
    "a proposal of nothing known": (_set("proposal", {"labels": ["zz"]}), ("proposal",)),
    "a verdict as text": (
        _inside("order", "verdicts", lambda m: [["1"] * len(m)] * len(m)),
        ("order.verdicts.0.0",),
    ),
    "a verdict that is true": (
        _inside("order", "verdicts", lambda m: [[True] * len(m)] * len(m)),
        ("order.verdicts.0.0",),
    ),
    "a probability as text": (
        _inside("order", "probabilities", lambda m: [["0.5"] * len(m)] * len(m)),
        ("order.probabilities.0.0",),
    ),
    "a seed that is true": (_inside("order", "seed", lambda _: True), ("order.seed",)),
    "a seed below zero": (_inside("order", "seed", lambda _: -1), ("order.seed",)),
    "a verdict of 10³⁰": (
        _inside("order", "verdicts", lambda m: [[10**30] * len(m)] * len(m)),
        ("order.verdicts.0.0",),
    ),
    "thousands of labels without a matrix": (
        _inside("order", "labels", lambda _: [f"x{i}" for i in range(4000)]),
        ("one row and column per label",),
    ),
    "a rate of 3": (_inside("order", "rate", lambda _: 3), ("order.rate",)),
    "a weight of 7": (
        _inside("order", "client_weights", lambda w: dict.fromkeys(w, 7)),
        ("order.client_weights",),
    ),
    "a note that is a number": (_inside("order", "notes", lambda _: [3]), ("order.notes",)),
    "an order with an extra field": (
        lambda d: {**d, "order": {**d["order"], "colour": "red"}},
        ("colour",),
    ),
    "a finding of unknown severity": (
        _set("diagnostics", [{"check": "c", "severity": "x", "message": "", "remedy": ""}]),
        ("diagnostics.0.severity",),
    ),
    "version true": (_set("version", True), ("version",)),
    "other labels": (_inside("order", "labels", lambda x: [*x[:-1], "zz"]), ("labels",)),
}


@pytest.mark.parametrize("case", RESULTS)
def test_a_malformed_result_is_refused(case, folder, refused):
    spoil, says = RESULTS[case]
    path = folder / "result.json"
    path.write_text(json.dumps(spoil(json.loads(path.read_text()))))
    refused(["explain", folder, "z1", "z2"], "result.json", *says)


def test_a_result_that_is_not_json_is_refused(folder, refused):
    (folder / "result.json").write_text("{")
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
