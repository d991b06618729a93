"""A time or row number is not a feature."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.study.rows import RowNumbers

from .tables import assert_same, frame_of, read_with_findings, regimes_of


@pytest.mark.parametrize(
    "column",
    [
        lambda n: np.arange(n),
        lambda n: 1.7e9 + np.arange(n) // 3,
        lambda n: np.cumsum(np.random.default_rng(0).exponential(size=n)),
    ],
    ids=["row number", "seconds with ties", "uneven times"],
)
def test_a_time_or_row_number_is_named_and_not_used(column, tmp_path, reference):
    frame = frame_of(regimes_of())
    frame["clock"] = column(len(frame))
    frame.to_csv(tmp_path / "lab-1.csv", index=False)
    client, findings = read_with_findings(tmp_path / "lab-1.csv")
    assert_same(client, reference)
    (finding,) = findings
    assert finding.check == "ignored-column"
    assert "'clock' is rising from row to row" in finding.message
    with pytest.warns(UserWarning, match="'clock' is rising"):
        assert_same(jc.Client.from_table(frame, name="lab-1"), reference)


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
