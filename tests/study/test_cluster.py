"""A folder of Parquet files, reduced on a cluster of processes of this machine."""

import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.errors import InputError

from .. import dask_cluster
from ..processes import PATIENCE
from .tables import frame_of, read_with_findings

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("distributed")]

N_FILES = 80


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Address of a scheduler with two workers, and the workers' processes."""
    with dask_cluster.two_workers(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows of one client in many files; a row number and a constant column are no features."""
    folder = tmp_path_factory.mktemp("rows") / "lab-1"
    frames = []
    for label, rows in jc.simulate.setting("A", 0).sample(0, 2_400).regimes.items():
        frame = pd.DataFrame(rows + 100.0, columns=[f"x{i}" for i in range(rows.shape[1])])
        frames.append(frame.assign(regime=label, day=np.arange(len(frame)) % 3))
    rows = pd.concat(frames).assign(flat=1.0)
    rows["day"] = "d" + rows["day"].astype(str)
    rows = rows.sample(frac=1.0, random_state=0).assign(row=np.arange(len(rows)))
    folder.mkdir()
    for k, part in enumerate(np.array_split(np.arange(len(rows)), N_FILES)):
        rows.iloc[part].to_parquet(folder / f"part-{k:04d}.parquet", index=False)
    return folder


def assert_same_moments(one, other):
    assert (one.name, one.labels, one.features) == (other.name, other.labels, other.features)
    assert one.n_samples == other.n_samples
    for (_, a), (_, b) in zip(one.named_regimes, other.named_regimes, strict=True):
        assert (a.rows, a.n, len(a.batches)) == (b.rows, b.n, len(b.batches))
        for name in ("mean", "covariance", "third", "fourth"):
            x, y = getattr(a, name), getattr(b, name)
            if name in ("third", "fourth") and one.covariates is not None:
                assert x is y is None  # covariates leave none
                continue
            assert np.allclose(x, y, rtol=1e-9, atol=1e-9 * np.abs(y).max())


@pytest.mark.parametrize("asked", [{"ignore": ["day"]}, {"batch": "day"}], ids=["rows", "batches"])
def test_one_result_on_one_process_and_on_a_cluster(asked, cluster, folder):
    alone, noticed = read_with_findings(folder, **asked)
    together, findings = read_with_findings(folder, cluster=cluster[0], **asked)
    assert_same_moments(together, alone)
    assert together.features == tuple(f"x{i}" for i in range(8))
    assert list(map(str, findings)) == list(map(str, noticed))
    assert "'flat'" in findings[-1].message


def test_a_cluster_reads_as_the_manifest_says(cluster, folder, tmp_path):
    study = tmp_path / "study"
    (study / "lab-1").mkdir(parents=True)
    for file in sorted(folder.iterdir())[:6]:
        rows = pd.read_parquet(file)
        rows.loc[3, "x1"] = -9999.0
        rows.to_parquet(study / "lab-1" / file.name, index=False)
    first, second, *_ = read_with_findings(folder, ignore=["day"])[0].labels
    (study / "study.toml").write_text(
        f'ignore = ["day", "x3"]\nmissing = "drop"\nna = [-9999]\ncovariates = ["x2"]\n'
        f"[clients.lab-1]\nn_latent = 3\n"
        f'interventions = {{both = "hard"}}\nrename = {{{first} = "both", {second} = "both"}}\n'
    )
    alone, noticed = read_with_findings(study / "lab-1")
    together, findings = read_with_findings(study / "lab-1", cluster=cluster[0])
    assert_same_moments(together, alone)
    assert not {"x2", "x3"} & set(together.features)
    assert together.covariates.names == ("x2",)
    assert any("left out 6 rows with missing values" in f.message for f in findings)
    assert (len(together.interventions["both"]), together.hard) == (2, {"both"})
    assert list(map(str, findings)) == list(map(str, noticed))


def test_a_wide_table_is_reduced_on_a_cluster(cluster, tmp_path):
    rng = np.random.default_rng(0)
    regimes = jc.simulate.setting("A", 0).sample(0, 300).regimes
    wide = rng.normal(size=(regimes["control"].shape[1], 600))
    noisy = {label: x @ wide + rng.normal(size=(300, 600)) for label, x in regimes.items()}
    rows = frame_of(noisy).sample(frac=1.0, random_state=0)
    (tmp_path / "lab-1").mkdir()
    for k, part in enumerate(np.array_split(np.arange(len(rows)), 5)):
        rows.iloc[part].to_parquet(tmp_path / "lab-1" / f"{k}.parquet", index=False)
    alone, _ = read_with_findings(tmp_path / "lab-1")
    together, _ = read_with_findings(tmp_path / "lab-1", cluster=cluster[0])
    assert alone.reduction is not None
    assert_same_moments(together, alone)


def test_a_bad_value_is_named_with_its_file(cluster, folder, tmp_path):
    (tmp_path / "lab-1").mkdir()
    for k, file in enumerate(sorted(folder.iterdir())[:4]):
        rows = pd.read_parquet(file)
        if k == 2:
            rows.loc[5, "x3"] = np.inf
        rows.to_parquet(tmp_path / "lab-1" / file.name, index=False)
    with pytest.raises(InputError, match=r"part-0002\.parquet.*in column 'x3', row 6 is too large"):
        read_with_findings(tmp_path / "lab-1", cluster=cluster[0], ignore=["day"])


def test_a_killed_worker_costs_nothing(cluster, folder, distributed):
    address, workers = cluster
    found = []

    def reduce():
        found.append(read_with_findings(folder, cluster=address, ignore=["day"])[0])

    work = threading.Thread(target=reduce)
    with distributed.Client(address, timeout=PATIENCE, set_as_default=False) as watching:
        names = watching.scheduler_info(n_workers=-1)["workers"]
        assert len(names) == 2
        # The other worker is stopped, so that the work cannot end before the first is killed.
        workers[1].send_signal(signal.SIGSTOP)
        work.start()
        end = time.monotonic() + PATIENCE
        while not any(watching.has_what().values()):
            assert time.monotonic() < end, "no worker holds a result"
            time.sleep(0.01)
        workers[0].kill()
        workers[1].send_signal(signal.SIGCONT)
        work.join(timeout=PATIENCE)
        assert not work.is_alive()
        assert len(watching.scheduler_info(n_workers=-1)["workers"]) == 1
    alone, _ = read_with_findings(folder, ignore=["day"])
    assert_same_moments(found[0], alone)


def test_what_a_cluster_cannot_do_is_refused(folder, refused, tmp_path):
    asked = ["moments", folder, "--cluster", "tcp://127.0.0.1:1", "-o", tmp_path / "m.npz"]
    refused([*asked, "--trim", "0.1"], "--trim looks at all rows", "Drop --trim or --cluster")
    with pytest.raises(InputError, match="a cluster reduces a folder of Parquet files"):
        read_with_findings(sorted(folder.iterdir())[0], ignore=["day"], cluster="tcp://127.0.0.1:1")


def test_a_missing_scheduler_is_said_in_one_line(folder, monkeypatch):
    monkeypatch.setattr("jigsaw_crl.study.cluster.PATIENCE", 0.5)
    with pytest.raises(InputError, match=r"no Dask scheduler with .* at tcp://127\.0\.0\.1:1 "):
        read_with_findings(folder, cluster="tcp://127.0.0.1:1", ignore=["day"])
