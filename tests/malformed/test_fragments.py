"""Malformed fragment files and result folders."""

from __future__ import annotations

import json
import os
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


def _bump(matrix: list[list[Any]]) -> list[list[Any]]:
    matrix[0][1] = (matrix[0][1] or 0) + 1
    return matrix


def _million(document: Document) -> Document:
    return {**document, "labels": [f"l{i}" for i in range(1_000_000)]}


MALFORMED: dict[str, tuple[Callable[[Document], Any], tuple[str, ...]]] = {
    "a list": (lambda d: [d], ("not a jigsaw-crl fragment",)),
    "a number": (lambda _: 3, ("not a jigsaw-crl fragment",)),
    "another format": (_set("format", "mine"), ("not a jigsaw-crl fragment",)),
    "a newer version": (_set("version", 99), ("99", "upgrade")),
    "an older version": (_set("version", 0), ("version 0", "again")),
    "no version": (_drop("version"), ("version",)),
    "an extra field": (_set("rows", [[1.0, 2.0]]), ("rows",)),
    "a missing field": (_drop("blocks"), ("blocks",)),
    "an unknown method": (_set("method", "magic"), ("method",)),
    "no labels": (_set("labels", []), ("labels",)),
    "a blank label": (lambda d: {**d, "labels": [" ", *d["labels"][1:]]}, ("label",)),
    "a repeated label": (lambda d: {**d, "labels": [d["labels"][1], *d["labels"][1:]]}, ("twice",)),
    "a label that is a number": (lambda d: {**d, "labels": [1, *d["labels"][1:]]}, ("labels",)),
    "a label in two blocks": (_set("blocks", [[0, 1], [1]]), ("hold together",)),
    "a label in no block": (_set("blocks", [[0]]), ("hold together",)),
    "a block of unknown labels": (_set("blocks", [[0], [77]]), ("hold together",)),
    "a negative index": (_set("blocks", [[-1]]), ("blocks",)),
    "a cycle of blocks": (_set("block_covers", [[0, 1], [1, 0]]), ("cycle",)),
    "an asymmetric district matrix": (_inside("bayes", "district", _bump), ("symmetric",)),
    "evidence of the wrong shape": (_inside("bayes", "district", lambda m: m[:1]), ("",)),
    "evidence that is text": (_inside("bayes", "scales", lambda _: ["x"]), ("scales",)),
    "a count below one": (_set("n_samples", {"control": 0}), ("n_samples",)),
    "a million labels": (_million, ("labels", "5000")),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_fragment_is_refused(case, pieces, tmp_path, refused):
    spoil, says = MALFORMED[case]
    paths = []
    for i, piece in enumerate(pieces):
        document = json.loads(piece.to_json())
        paths.append(tmp_path / f"{i}.fragment.json")
        paths[-1].write_text(json.dumps(spoil(document) if i == 1 else document))
    refused(["assemble", *paths, "--out", tmp_path / "out"], "1.fragment.json", *says)


TEXTS = {
    "no JSON": "<html>",
    "half a file": '{"format": "jigsaw-crl/fragment", "ver',
    "nothing": "",
    "nan as evidence": '{"format": "jigsaw-crl/fragment", "version": 1, "bayes": NaN}',
    "a deep nest": "[" * 100_000,
}


@pytest.mark.parametrize("case", TEXTS)
def test_text_that_is_not_a_fragment_is_refused(case, tmp_path, refused):
    path = tmp_path / "lab-1.fragment.json"
    path.write_text(TEXTS[case])
    refused(["assemble", path, "--out", tmp_path / "out"], "lab-1.fragment.json")


def test_nan_evidence_is_refused(pieces, tmp_path, refused):
    document = json.loads(pieces[0].to_json())
    document["bayes"]["district"][0][1] = float("nan")
    path = tmp_path / "lab-1.fragment.json"
    path.write_text(json.dumps(document))
    refused(["assemble", path], "lab-1.fragment.json")


def test_infinite_evidence_is_refused(pieces, tmp_path, refused):
    document = json.loads(pieces[0].to_json())
    document["bayes"]["ancestor"][0][0][1] = float("inf")
    path = tmp_path / "lab-1.fragment.json"
    path.write_text(json.dumps(document))
    refused(["assemble", path], "lab-1.fragment.json")


def test_binary_data_are_refused_as_a_fragment(tmp_path, refused):
    path = tmp_path / "lab-1.fragment.json"
    path.write_bytes(os.urandom(1000))
    refused(["assemble", path], "lab-1.fragment.json")


def test_two_fragments_of_one_client_are_refused(pieces, tmp_path, refused):
    for name in ("one.json", "two.json"):
        (tmp_path / name).write_text(pieces[0].to_json())
    refused(["assemble", tmp_path / "one.json", tmp_path / "two.json"], "two.json", "same client")


def test_labels_of_two_fragments_that_differ_by_case_are_refused(pieces, tmp_path, refused):
    document = json.loads(pieces[1].to_json())
    document["labels"] = [label.upper() for label in document["labels"]]
    (tmp_path / "one.json").write_text(pieces[0].to_json())
    (tmp_path / "two.json").write_text(json.dumps(document))
    refused(["assemble", tmp_path / "one.json", tmp_path / "two.json"], "two.json", "case")


def test_a_fragment_that_does_not_exist_is_refused(tmp_path, refused):
    refused(["assemble", tmp_path / "none.json"], "none.json", "no such file")


def test_a_folder_is_refused_as_a_fragment(tmp_path, refused):
    (tmp_path / "folder").mkdir()
    refused(["assemble", tmp_path / "folder"], "folder")


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


def test_a_folder_without_a_result_is_refused(tmp_path, refused):
    refused(["explain", tmp_path, "a", "b"], "result.json")


def test_a_result_folder_that_does_not_exist_is_refused(tmp_path, refused):
    refused(["design", tmp_path / "none", "--size", "3"], "none", "no such folder")


def test_an_unknown_label_is_refused(folder, refused):
    refused(["explain", folder, "pump", "z2"], "'pump'", "z1")


def test_a_label_and_itself_are_refused(folder, refused):
    refused(["explain", folder, "z1", "z1"], "'z1'")


def test_a_design_of_one_label_is_refused(folder, refused):
    refused(["design", folder, "--size", "1"], "--size")
