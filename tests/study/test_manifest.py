"""What is wrong in a study.toml is named, and one file serves all sites."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.cli import app as cli

from .tables import frame_of, regimes_of, write_table


@pytest.fixture
def folder(tmp_path):
    frame_of(regimes_of()).to_csv(tmp_path / "lab1.csv", index=False)
    return tmp_path


def refusal(folder, manifest):
    (folder / "study.toml").write_text(manifest)
    with pytest.raises(jc.InputError) as caught:
        jc.read_study(folder)
    assert "study.toml" in str(caught.value)
    return str(caught.value)


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
    "interventions = true": 'Write interventions = "hard"',
    'rename = "a"': "Write [rename] and below it",
    "regime = arm": "Texts stand in quotes",
}


@pytest.mark.parametrize("manifest", NEAR_MISSES)
def test_a_near_miss_is_answered_by_what_to_write(manifest, folder):
    assert NEAR_MISSES[manifest] in refusal(folder, manifest)


def test_all_wrong_fields_are_named_at_once(folder):
    text = refusal(folder, 'missing = true\nignored = ["x"]\n[clients.lab1]\ncolour = "red"')
    assert "3 problems" in text
    for part in ("'missing'", "'ignored'", "'colour'"):
        assert part in text


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


def test_a_site_uses_the_manifest_of_the_whole_study(tmp_path, capsys):
    control, regimes = jc.simulate.setting("A", 0).rows(0, 200)
    write_table({"control": control, **regimes}, tmp_path / "lab-1.csv", "csv")
    (tmp_path / "study.toml").write_text(WHOLE_STUDY)
    for path in (tmp_path / "lab-1.csv", tmp_path / "study.toml"):
        out = tmp_path / "out.json"
        assert cli.run(["fragment", str(path), "-o", str(out)]) == 0
        assert jc.read_fragment(out).client == "lab-1"
    capsys.readouterr()
    with pytest.raises(jc.InputError, match="delete this table if the client left"):
        jc.read_study(tmp_path)
    (tmp_path / "study.toml").write_text("[clients.lab-1]\n[clients.lab-2]\n")
    with pytest.raises(jc.InputError, match="delete this table if the client left"):
        jc.read_study(tmp_path)


def test_numbers_with_a_sign_are_other_labels():
    rng = np.random.default_rng(0)
    regimes = {name: rng.normal(size=(30, 5)) for name in ("-1", "1", "a-1", "a1")}
    client = jc.Client.from_samples("x", observational=rng.normal(size=(30, 5)),
                                    interventions=regimes)  # fmt: skip
    assert set(client.labels) == set(regimes)
