"""A time, row number or identifier is not a feature."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.cli.app import run
from jigsaw_crl.study.rows import RowNumbers

from .tables import assert_same, frame_of, read_with_findings, regimes_of

RISING, OTHER = "rising from row to row", "another whole number in every row"


@pytest.mark.parametrize(
    ("name", "column", "why"),
    [
        ("clock", lambda _, n: np.arange(n), RISING),
        ("seconds with ties", lambda _, n: 1.7e9 + np.arange(n) // 3, RISING),
        ("uneven times", lambda rng, n: np.cumsum(rng.exponential(size=n)), RISING),
        ("batch_no", lambda _, n: np.arange(n) // 100, RISING),
        ("ticket", lambda rng, n: rng.permutation(5 * n)[:n], OTHER),
        ("sample_id", lambda rng, n: rng.choice(10**9, n, replace=False), OTHER),
    ],
)
def test_a_time_a_row_number_or_an_identifier_is_named_and_not_used(
    name, column, why, tmp_path, reference, capsys
):
    frame = frame_of(regimes_of())
    frame[name] = column(np.random.default_rng(0), len(frame))
    frame.to_csv(tmp_path / "lab-1.csv", index=False)
    client, findings = read_with_findings(tmp_path / "lab-1.csv")
    assert_same(client, reference)
    (finding,) = findings
    assert finding.check == "ignored-column"
    assert f"{name!r} is {why}" in finding.message
    with pytest.warns(UserWarning, match=f"{name!r} is {why}"):
        assert_same(jc.Client.from_table(frame, name="lab-1"), reference)
    assert run(["fragment", str(tmp_path / "lab-1.csv"), "-o", str(tmp_path / "f.json")]) == 0
    assert why in capsys.readouterr().err


def test_measurements_doses_and_short_runs_are_used():
    frame = frame_of(regimes_of())
    # Constant within each regime, as a dose is.
    frame["dose"] = frame.regime.map({"control": 0.0, "pump": 1.0, "valve": 2.0})
    assert "dose" in jc.Client.from_table(frame, name="lab").features
    few = pd.concat(part.head(9).assign(x1=np.arange(9.0)) for _, part in frame.groupby("regime"))
    assert "x1" in jc.Client.from_table(few, name="lab", n_latent=2).features


@given(st.integers(0, 10_000), st.lists(st.integers(1, 60), max_size=6))
def test_chunks_do_not_matter(seed, cuts):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 4, size=(60, 3)).astype(float)
    rows[:, 1] = np.sort(rng.integers(0, 40, 60))
    rows[:, 2] = np.arange(60)
    rows[rng.integers(1, 60), 2] = -1.0
    whole, parts = RowNumbers("abc"), RowNumbers("abc")
    whole.add("a", rows)
    for part in np.split(rows, sorted(cuts)):
        if len(part):
            parts.add("a", part)
    assert whole.found() == parts.found()
    assert not {"a", "c"} & {name for name, why in whole.found().items() if "rising" in why}
