"""What is wrong in a study.toml is named, and one file serves all sites."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.cli import app as cli

from .tables import client_of, frame_of, regimes_of, write_table

NEAR_MISSES = {
    "missing = true": "'missing' is true. Write missing = \"drop\", missing",
    "ignore = [true]": 'Write ignore = ["COLUMN"].',
    'exclude = ["operator"]': "The fields are regime, control,",
    'ignored = ["operator"]': "Did you mean 'ignore'?",
    "trim = 5": "'trim' is 5. Write trim = 0.05.",
    'trim = "5 %"': "Write trim = 0.05.",
    "trim = true": "Write trim = 0.05.",
    "regime = true": 'Write regime = "COLUMN".',
    f"trim = {'9' * 5000}": "not valid TOML",
    "clients.lab1 = 3": "clients.lab1 is not a table. Write [clients.lab1]",
    '[clients.lab1]\nfile = "../lab1.csv"': "outside the study's folder. Move it into the folder",
    '[clients.lab1]\nfile = "/lab1.csv"': "outside the study's folder",
    "n_latent = 7": "It stands below [clients.NAME]: n_latent = 7.",
    '[clients.lab1]\nn_latent = "7"': "Write n_latent = 7.",
    '[clients.lab1]\nlabels = ["a"]': "It stands above all tables: labels",
    '[lab1]\nfile = "lab1.csv"': "If it is a client, write [clients.lab1].",
    "interventions = true": "'interventions' is true. Write interventions = \"hard\"",
    'interventions = "firm"': "'interventions' is 'firm'. Write",
    "[interventions]\npump = 1": "'pump': 1}. Write interventions",
    '[interventions]\npunp = "hard"': "Did you mean 'pump'",
    '[clients.lab1.interventions]\ntank = "hard"': "'lab1': interventions names the label 'tank'",
    'sensor_noise = "loud"': "Write sensor_noise = 0.5",
    "sensor_noise = -1": "sensor_noise of",
    "[sensor_noise]\nnobody = 1.0": "[sensor_noise]: no client has 'nobody'",
    "[clients.lab9]\nn_latent = 2": "client 'lab9', but no file is called so",
    '[clients.x]\nfile = "no.csv"': "'no.csv' does not exist. Paths are relative",
    "[clients.lab1]\nn_latent = 9": "client 'lab1': 4 features cannot show 9 latents",
    '[clients.lab1]\ncontrol = "none"': "no control rows: no regime is 'none'",
    '[clients.lab1.rename]\nzzz = "a"': "no regime 'zzz' to rename. Check the spelling",
    'rename = "a"': "Write [rename] and below it",
    "regime = arm": "Texts stand in quotes",
}


@pytest.mark.parametrize("manifest", NEAR_MISSES)
def test_a_near_miss_is_answered_by_what_to_write(manifest, folder, refused):
    (folder / "study.toml").write_text(manifest)
    refused(["check", folder], str(folder), NEAR_MISSES[manifest])


def test_all_wrong_fields_are_named_at_once(folder):
    manifest = 'missing = true\nignored = ["x"]\n[clients.lab1]\ncolour = "red"'
    (folder / "study.toml").write_text(manifest)
    with pytest.raises(jc.InputError, match=r"study\.toml.*3 problems") as caught:
        jc.read_study(folder)
    for part in ("'missing'", "'ignored'", "'colour'"):
        assert part in str(caught.value)


@pytest.mark.parametrize("field", ["control", "regime", "file"])
def test_a_name_of_any_length_is_answered_in_a_line_that_can_be_read(field, folder):
    (folder / "study.toml").write_text(f'[clients.lab1]\n{field} = "{"x" * 3_000}"')
    with pytest.raises(jc.InputError, match="xxx") as caught:
        jc.read_study(folder)
    assert len(str(caught.value)) < 2_500


def test_what_can_only_mean_one_thing_is_read_so(folder):
    frame_of(regimes_of()).replace({"control": "0"}).to_csv(folder / "lab1.csv", index=False)
    (folder / "study.toml").write_text('control = 0\nignore = "x2"')
    assert jc.read_study(folder)["lab1"].features == ("x1", "x3", "x4")


def test_a_link_in_the_folder_permits_a_file_outside(folder):
    (folder / "study").mkdir()
    (folder / "study" / "first.csv").symlink_to(folder / "lab1.csv")
    (folder / "study" / "study.toml").write_text('[clients.a]\nfile = "first.csv"')
    assert [client.name for client in jc.read_study(folder / "study")] == ["a"]


WHOLE_STUDY = """
[clients.lab-1]
n_latent = 4
[clients.lab-2]
file = "second.csv"
[knowledge]
ancestor = ["z1 -> z4"]
"""


def test_a_site_uses_the_manifest_of_the_whole_study(tmp_path, capsys, refused):
    regimes = jc.simulate.setting("A", 0).sample(0, 200).regimes
    write_table(regimes, tmp_path / "lab-1.csv", "csv")
    manifest = tmp_path / "study.toml"
    manifest.write_text(WHOLE_STUDY)
    for path in (tmp_path / "lab-1.csv", manifest):
        out = tmp_path / "out.json"
        assert cli.run(["fragment", str(path), "-o", str(out)]) == 0
        assert jc.read_fragment(out).client == "lab-1"
    capsys.readouterr()
    for text in (WHOLE_STUDY, "[clients.lab-1]\n[clients.lab-2]\n"):
        manifest.write_text(text)
        refused(["check", tmp_path], "delete this table if the client left")


def test_numbers_with_a_sign_are_other_labels():
    rng = np.random.default_rng(0)
    regimes = {name: rng.normal(size=(30, 5)) for name in ("-1", "1", "a-1", "a1")}
    client = client_of({"control": rng.normal(size=(30, 5)), **regimes})
    assert set(client.labels) == set(regimes)
