"""Saying that interventions are hard: manifests, readers, constructors, moments files."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.study import read_study

from ..client.builders import from_covariances, from_moments, from_precisions, from_samples
from .tables import frame_of, regimes_of, write_table
from .test_folder import two_labs


@pytest.mark.parametrize(
    ("manifest", "first", "second"),
    [
        ("", set(), set()),
        ('interventions = "hard"', {"pump", "valve"}, {"pump", "valve"}),
        ('[interventions]\npump = "hard"', {"pump"}, {"pump"}),
        ('[clients.lab-2]\ninterventions = "hard"', set(), {"pump", "valve"}),
        ('[clients.lab-2.interventions]\nvalve = "hard"', set(), {"valve"}),
        (
            'interventions = "hard"\n[clients.lab-2]\ninterventions = {pump = "soft"}',
            {"pump", "valve"},
            {"valve"},
        ),
    ],
)
def test_a_manifest_says_it_for_all_by_label_and_by_client(tmp_path, manifest, first, second):
    (two_labs(tmp_path) / "study.toml").write_text(manifest)
    found = {client.name: set(client.hard) for client in jc.read_study(tmp_path)}
    assert found == {"lab-1": first, "lab-2": second}


def test_one_client_may_be_read_from_its_own_manifest(tmp_path):
    manifest = tmp_path / "study.toml"
    write_table(regimes_of(seed=1), tmp_path / "lab-1.csv", "csv")
    manifest.write_text('interventions = "hard"\n[clients.lab-1]\nn_latent = 3\n')
    client = jc.read_client(manifest)
    assert (client.name, client.n_latent, client.hard) == ("lab-1", 3, {"pump", "valve"})
    # What is passed comes before what the file says.
    soft = jc.read_client(manifest, name="a", interventions={"pump": "soft"})
    assert (soft.name, soft.hard) == ("a", {"valve"})
    write_table(regimes_of(seed=2), tmp_path / "lab-2.csv", "csv")
    with pytest.raises(jc.InputError, match="has 2 clients, and one is asked for"):
        jc.read_client(manifest)


def test_the_manifest_in_its_folder_holds_for_a_single_file(tmp_path):
    for i in (1, 2):
        frame = frame_of(regimes_of(seed=i)).rename(columns={"regime": "arm"})
        frame.assign(shift=np.sin(frame.index)).to_csv(tmp_path / f"lab-{i}.csv", index=False)
    manifest = (
        'regime = "arm"\nignore = ["shift"]\ninterventions = {pump = "hard", flow = "hard"}\n'
    )
    (tmp_path / "study.toml").write_text(
        f'{manifest}[clients.first]\nfile = "lab-1.csv"\nn_latent = 3\n'
    )
    first, second = (jc.read_client(tmp_path / f"lab-{i}.csv") for i in (1, 2))
    assert (first.name, first.n_latent, first.hard) == ("first", 3, {"pump"})
    assert (second.name, second.n_latent, second.hard) == ("lab-2", 2, {"pump"})
    assert first.features == ("x1", "x2", "x3", "x4")
    (alone,) = read_study(tmp_path / "lab-2.csv")
    assert (alone.name, alone.hard) == ("lab-2", {"pump"})
    with pytest.raises(jc.InputError, match="no column 'arms'"):
        jc.read_client(tmp_path / "lab-1.csv", regime="arms")
    (tmp_path / "study.toml").write_text(f'{manifest}labels = ["pump"]\n')
    with pytest.raises(jc.InputError, match="the manifest's labels do not have 'valve'"):
        jc.read_client(tmp_path / "lab-1.csv")


@pytest.mark.parametrize("build", [from_samples, from_covariances, from_precisions, from_moments])
def test_constructors_take_all_labels_or_a_list_as_hard(build):
    labels = build().labels
    assert build().hard == frozenset()
    assert build(hard=True).hard == set(labels)
    assert build(hard=[labels[1]]).hard == {labels[1]}
    for wrong in ("hard", {labels[0]: "hard"}, 1.5):
        with pytest.raises(jc.InputError, match="Pass True, or a list of the labels"):
            build(hard=wrong)
    with pytest.raises(jc.InputError, match="'tank', which the client does not have"):
        build(hard=["tank"])
