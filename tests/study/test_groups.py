"""The group column: rows of one subject or run are alike, and count as fewer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc
from jigsaw_crl.diagnostics import check_client
from jigsaw_crl.study import collected, merge_clients, write_moments

from .tables import frame_of, regimes_of

LATENTS = 5


def alike(share: float, each: int, *, seed: int = 0, n: int = 6_000) -> pd.DataFrame:
    """Four regimes whose subjects have `each` rows with correlation `share`, scattered."""
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(8, LATENTS))
    frames = []
    for j, regime in enumerate(["control", "a", "b", "c"]):
        subject = rng.permutation(np.arange(n) // each)
        own = rng.normal(size=(subject.max() + 1, LATENTS))[subject]
        z = np.sqrt(share) * own + np.sqrt(1 - share) * rng.normal(size=(n, LATENTS))
        if j:
            z[:, j] *= 2
        frame = frame_of({regime: z @ G.T + 0.01 * rng.normal(size=(n, 8))})
        frames.append(frame.assign(subject=[f"{regime}-{i}" for i in subject]))
    return pd.concat(frames, ignore_index=True)


def client_of(frame: pd.DataFrame, **asked) -> jc.Client:
    asked = {"ignore": [] if "group" in asked else ["subject"], **asked}
    return jc.Client.from_table(frame, name="lab", n_latent=LATENTS, **asked)


def factors(client: jc.Client) -> list[tuple[float, float]]:
    every = [client.control, *(m for ms in client.interventions.values() for m in ms)]
    return [(m.counted.mean, m.counted.covariance) for m in every]


# -- what the rows count for ----------------------------------------------------------------------


def test_groups_count_as_theory_says():
    # 1 + 19 r for means and 1 + 19 r² for second moments, averaged over seeds and pooled.
    found = [factors(client_of(alike(0.5, 20, seed=s), group="subject"))[0] for s in range(6)]
    means, covariances = np.mean(found, axis=0)
    assert means == pytest.approx(10.5, rel=0.15)
    assert covariances == pytest.approx(5.75, rel=0.15)


def test_few_groups_count_as_few_rows_for_covariances_too():
    # Parts of one group each hide how groups differ; r comes from the means: 1 + 599 r².
    found = [factors(client_of(alike(0.5, 600, seed=s), group="subject")) for s in range(6)]
    means, covariances = np.mean(found, axis=(0, 1))
    assert means == pytest.approx(300, rel=0.3)
    assert covariances == pytest.approx(150, rel=0.5)


def test_scattered_groups_are_not_seen_without_their_column():
    client = client_of(alike(0.5, 20))
    assert factors(client) == [(1.0, 1.0)] * 4


@pytest.mark.parametrize("each", [1, 20, 500])
def test_groups_that_do_not_differ_cost_nothing(each):
    for seed in range(6):
        client = client_of(alike(0.0, each, seed=seed), group="subject")
        assert factors(client) == [(1.0, 1.0)] * 4
        assert client.control.n == client.control.rows == 6_000


def test_trimming_and_batches_keep_groups():
    frame = alike(0.5, 20)
    trimmed = client_of(frame, group="subject", trim=0.05)
    assert trimmed.control.rows == 5_700
    assert factors(trimmed)[0][0] == pytest.approx(10.5, rel=0.4)
    day = pd.Categorical(frame["subject"].str.len().astype(str))
    batched = client_of(frame.assign(day=day), group="subject", batch="day")
    assert batched.control.groups == 300
    assert factors(batched)[0][1] == pytest.approx(5.75, rel=0.4)


# -- findings -------------------------------------------------------------------------------------


def test_the_finding_says_that_rows_of_a_group_are_alike():
    client = client_of(alike(0.5, 20), group="subject")
    said = {f.check: f for f in check_client(client).findings}
    assert said["dependent-rows"].message.startswith("rows of one group are alike: 6,000 rows of")
    assert "Record more groups" in said["dependent-rows"].remedy
    assert not {"drifting-control", "few-groups"} & set(said)


@pytest.mark.parametrize(
    ("each", "cost"), [(2_000, "is known only roughly"), (6_000, "cannot be told from")]
)
def test_few_groups_are_named_with_what_cannot_be_known(each, cost):
    client = client_of(alike(0.2, each), group="subject")
    (finding,) = (f for f in check_client(client).findings if f.check == "few-groups")
    assert cost in finding.message
    assert "at least 8 groups" in finding.remedy
    assert finding.value == 6_000 / each


# -- how it is read -------------------------------------------------------------------------------


def test_a_moments_file_keeps_groups_and_takes_more(tmp_path):
    frame = alike(0.5, 20)
    half = frame["subject"].str[-1].isin(list("02468"))
    first, second = (client_of(frame[rows], group="subject") for rows in (half, ~half))
    path = write_moments(first, tmp_path / "lab.moments.npz")
    read = jc.read_client(path)
    assert read.control.groups == first.control.groups
    assert read.control.n == first.control.n
    merged = merge_clients(read, second)
    assert merged.control.groups == 300
    assert merged.control.rows == 6_000


def test_a_column_with_too_many_groups_is_refused(monkeypatch):
    monkeypatch.setattr(collected, "MOST_GROUPS", 100)
    frame = frame_of(regimes_of())
    frame["row"] = [f"row {i}" for i in range(len(frame))]
    with pytest.raises(jc.InputError, match="there are more than 100 groups"):
        jc.Client.from_table(frame, name="lab-1", group="row")
