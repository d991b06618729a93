"""The group column: rows of one subject or run are alike, and count as fewer."""

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc
from jigsaw_crl.diagnostics import check_client
from jigsaw_crl.study import merge_clients

from .tables import frame_of

LATENTS = 5


def alike(share, each, *, seed=0, n=6_000):
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


def client_of(frame, **asked):
    asked = {"ignore": [] if "group" in asked else ["subject"], **asked}
    return jc.Client.from_table(frame, name="lab", n_latent=LATENTS, **asked)


def factors(client):
    return [(m.counted.mean, m.counted.covariance) for _, m in client.named_regimes]


@pytest.mark.parametrize(
    ("each", "regimes", "means", "covariances"),
    [
        # 1 + 19 r for means and 1 + 19 r² for second moments, averaged over seeds.
        (20, 1, (10.5, 0.15), (5.75, 0.15)),
        # Parts of one group each hide how groups differ; r comes from the means: 1 + 599 r².
        (600, 4, (300, 0.3), (150, 0.5)),
    ],
)
def test_groups_count_as_theory_says(each, regimes, means, covariances):
    found = [factors(client_of(alike(0.5, each, seed=s), group="subject")) for s in range(6)]
    for value, (wanted, rel) in zip(
        np.mean([f[:regimes] for f in found], axis=(0, 1)), (means, covariances), strict=True
    ):
        assert value == pytest.approx(wanted, rel=rel)


@pytest.mark.parametrize("each", [1, 20, 500])
def test_groups_that_do_not_differ_cost_nothing(each):
    for seed in range(6):
        client = client_of(alike(0.0, each, seed=seed), group="subject")
        assert factors(client) == [(1.0, 1.0)] * 4
        assert client.control.n == client.control.rows == 6_000


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


def test_rows_added_later_bring_groups_of_their_own():
    frame = alike(0.5, 20)
    half = frame["subject"].str[-1].isin(list("02468"))
    merged = merge_clients(*(client_of(frame[rows], group="subject") for rows in (half, ~half)))
    assert (merged.control.groups, merged.control.rows) == (300, 6_000)
