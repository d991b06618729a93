"""One study, every format and every route: the same order to the last verdict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.cli.app import run

WORLD = ["--latent", "6", "--clients", "4", "--coverage", "0.7", "--seed", "5"]


@pytest.fixture(scope="module")
def studies(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("studies")
    for kind in ("csv", "parquet", "moments"):
        options = ["--samples", "1500", "--format", kind]
        assert run(["simulate", *WORLD, *options, "--out", str(root / kind)]) == 0
    return {kind: root / kind for kind in ("csv", "parquet", "moments")}


@pytest.fixture(scope="module")
def reference(studies) -> jc.GlobalOrder:
    return jc.recover(jc.read_study(studies["parquet"])).order


def _assert_same(order: jc.GlobalOrder, reference: jc.GlobalOrder) -> None:
    assert order.labels == reference.labels
    np.testing.assert_array_equal(order.verdicts, reference.verdicts)
    np.testing.assert_array_equal(order.probabilities, reference.probabilities)


def test_moments_in_place_of_rows_give_the_same_order(studies, reference, tmp_path):
    (tmp_path / "moments").mkdir()
    for path in sorted(studies["csv"].glob("*.csv")):
        output = tmp_path / "moments" / f"{path.stem}.moments.npz"
        assert run(["moments", str(path), "-o", str(output)]) == 0
    _assert_same(jc.recover(jc.read_study(tmp_path / "moments")).order, reference)


@pytest.mark.parametrize("kind", ["csv", "moments"])
def test_fragments_assembled_elsewhere_give_the_same_order(kind, studies, reference, tmp_path):
    files = []
    for path in sorted(p for p in studies[kind].iterdir() if p.is_file()):
        files.append(str(tmp_path / f"{path.name}.fragment.json"))
        # Unless they are asked not to, fragments round their numbers.
        assert run(["fragment", str(path), "-o", files[-1], "--full-precision"]) == 0
    # The order of arrival must not matter.
    assert run(["assemble", *reversed(files), "--out", str(tmp_path / "out")]) == 0
    _assert_same(jc.load_result(tmp_path / "out").order, reference)
