"""Study folders and their manifests."""

import pytest

import jigsaw_crl as jc

from .tables import frame_of, regimes_of, write_table


def two_labs(root):
    root.mkdir(exist_ok=True)
    write_table(regimes_of(seed=1), root / "lab-1.csv", "csv")
    write_table(regimes_of(seed=2), root / "lab-2.parquet", "parquet")
    return root


def test_a_study_has_one_client_per_file(tmp_path):
    root = two_labs(tmp_path / "study")
    (root / "truth").mkdir()
    (root / "truth" / "truth.json").write_text("{}")
    (root / ".hidden.csv").write_text("")
    (root / "README.md").write_text("notes")
    study = jc.read_study(root)
    assert [c.name for c in study] == ["lab-1", "lab-2"]
    assert study.labels == ("pump", "valve")
    assert study["lab-2"].n_features == 4
    assert study.name == "study"


def test_a_manifest_overrides_names_and_columns(tmp_path):
    root = two_labs(tmp_path / "study")
    frame = frame_of(regimes_of(seed=3)).rename(columns={"regime": "arm"})
    frame["arm"] = frame.arm.replace({"pump": "pump (5 V)", "valve": "pump (9 V)"})
    (root / "raw").mkdir()
    frame.to_csv(root / "raw" / "first lab.csv", index=False)
    (root / "study.toml").write_text(
        'name = "tunnel"\n'
        "[clients.lab-3]\n"
        'file = "raw/first lab.csv"\nregime = "arm"\nn_latent = 3\n'
        '[clients.lab-3.rename]\n"pump (5 V)" = "pump"\n"pump (9 V)" = "pump"\n'
    )
    for path in (root, root / "study.toml"):
        study = jc.read_study(path)
        assert study.name == "tunnel"
        assert {c.name for c in study} == {"lab-1", "lab-2", "lab-3"}
        lab = study["lab-3"]
        assert lab.labels == ("pump",)
        assert len(lab.interventions["pump"]) == 2
        assert lab.n_latent == 3


def test_a_spreadsheet_among_the_clients_is_named(tmp_path):
    root = two_labs(tmp_path / "study")
    for name in ("lab-3.ods", "~$lab-3.xlsx", ".lab-4.xlsx", "notes.txt"):
        (root / name).write_bytes(b"PK")
    (finding,) = jc.read_study(root).findings
    assert (finding.check, finding.severity) == ("skipped-file", "warning")
    assert "'lab-3.ods' is not read" in finding.message
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "lab-3.ods").write_bytes(b"PK")
    with pytest.raises(jc.InputError, match=r"no client file, only 'lab-3\.ods'"):
        jc.read_study(tmp_path / "other")


def test_two_clients_of_one_name_are_refused():
    client = jc.simulate.setting("A", 0).client(0)
    with pytest.raises(jc.InputError, match="two clients"):
        jc.Study("s", (client, client))
