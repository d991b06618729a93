"""No command overwrites an input, a key, or a file of the user's that it was not told to."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

import jigsaw_crl as jc
from jigsaw_crl import adding
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.cli.app import run
from jigsaw_crl.cli.worlds import write_table
from jigsaw_crl.federated.keys import generate_key
from jigsaw_crl.federated.ledger import Ledger
from jigsaw_crl.federated.signing import Received

from ..processes import MAIN, python


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a table, its moments, a fragment, a result and a key."""
    folder = tmp_path_factory.mktemp("lab")
    regimes = jc.simulate.setting("A", 0).sample(0, 2_000).regimes
    write_table(regimes, folder / "lab.parquet", "parquet")
    client = jc.read_client(folder / "lab.parquet")
    jc.study.write_moments(client, folder / "lab.moments.npz")
    fragment = jc.recover_fragment(client)
    (folder / "lab.fragment.json").write_text(fragment.to_json())
    jc.Result({"lab": fragment}, jc.assemble([fragment])).save(folder / "result")
    generate_key("lab", folder / "k.key")
    (folder / "keys.toml").write_text(f'study = "s"\n[sites]\n{generate_key("x", folder / "x")}')
    pem = serialization.load_pem_private_key((folder / "x").read_bytes(), None)
    kind = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "k.der").write_bytes(pem.private_bytes(serialization.Encoding.DER, *kind))
    Ledger(folder / "log.jsonl").having([Received(fragment, 1)], "r").save()
    (folder / "notes.md").write_text("mine")
    return folder


@pytest.fixture
def lab(made, tmp_path):
    """A copy of it that a test may change."""
    return shutil.copytree(made, tmp_path, dirs_exist_ok=True)


NEVER = {
    "a table by its fragment": "fragment lab.parquet -o lab.parquet",
    "a table by its moments": "moments lab.parquet -o lab.parquet",
    "moments by their fragment": "fragment lab.moments.npz -o lab.moments.npz",
    "the key that signs": "fragment lab.parquet --sign k.key -o k.key",
    "another key": "fragment lab.parquet -o k.key",
    "a key by moments": "moments lab.parquet -o k.key",
    "a key by a report": "report result -o k.key",
    "a key in DER": "report result -o k.der",
    "a list of keys": "report result -o keys.toml",
    "a log": "report result -o log.jsonl",
    "a result by its report": "report result -o result/result.json",
    "a fragment by a result": "assemble result/order.csv --out result",
}


@pytest.mark.parametrize("case", NEVER)
def test_inputs_and_keys_are_never_overwritten(case, lab, refused, monkeypatch):
    monkeypatch.chdir(lab)
    for force in ([], ["--force"]):
        refused([*NEVER[case].split(), *force], "is not overwritten", "Name a new file")


FOREIGN = {
    "fragment": ("fragment lab.parquet -o notes.md", "notes.md"),
    "moments": ("moments lab.parquet -o notes.md", "notes.md"),
    "report": ("report result -o notes.md", "notes.md"),
    "result": ("recover lab.parquet --out mine", "mine/result.json"),
    "page": ("recover lab.parquet --out mine", "mine/report.html"),
    "table": ("assemble lab.fragment.json --out mine", "mine/order.csv"),
    "graph": ("assemble lab.fragment.json --out mine", "mine/hasse.graphml"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", FOREIGN)
def test_a_users_own_file_is_overwritten_with_force_only(case, lab, refused, monkeypatch, capsys):
    monkeypatch.chdir(lab)
    arguments, name = FOREIGN[case][0].split(), Path(FOREIGN[case][1])
    name.parent.mkdir(exist_ok=True)
    name.write_text('{"mine": true}')
    (name.parent / "other.txt").write_text("mine")
    refused(arguments, name.name, "exists and is not", "--force")
    assert run([*arguments, "--force"]) == 0, capsys.readouterr().err
    assert "mine" not in name.read_text(errors="replace")[:20]
    assert (name.parent / "other.txt").read_text() == "mine"
    # What was written is ours, and is replaced without a question.
    assert run(arguments) == 0


def test_moments_and_keys_are_their_owners_alone(made):
    for name in ("lab.moments.npz", "k.key"):
        assert stat.S_IMODE(os.stat(made / name).st_mode) == 0o600


@pytest.mark.slow
def test_fragments_that_another_run_adds_to_a_result_meanwhile_are_not_lost(lab, monkeypatch):
    first, more = adding.changed, []

    def slow(*given, **options):
        # Another run of the same command, in another process, while this one computes.
        words = ["assemble", lab / "lab.fragment.json", "--into", lab / "result"]
        more.append(python("-c", MAIN, *words))
        return first(*given, **options)

    monkeypatch.setattr(adding, "changed", slow)
    piece = json.loads((lab / "lab.fragment.json").read_text())
    (lab / "later.json").write_text(json.dumps(piece | {"client": "later", "findings": []}))
    assert run(["assemble", str(lab / "later.json"), "--into", str(lab / "result")]) == 0
    (other,) = more
    assert other.returncode == 2
    assert "the folder is in use by another run" in other.stderr
    assert "later" in jc.load_result(lab / "result").fragments


def test_a_folder_that_no_reproduction_wrote_is_left_alone(tmp_path, refused):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "tables.md").write_text("mine")
    refused(
        ["reproduce", "tables", "--quick", "--out", tmp_path], "no folder replicates", "--force"
    )


ESCAPE = "\x1b]0;owned\x07\x9b31m\u202e"


@pytest.mark.parametrize("as_json", [False, True])
def test_no_escape_sequence_reaches_the_terminal(as_json, lab, capsys):
    """Findings and notes of a result come from others."""
    result = jc.load_result(lab / "result")
    finding = Finding("check", "warning", f"saw {ESCAPE}", f"do {ESCAPE}", client=ESCAPE)
    document = {**result.to_document(), "diagnostics": [finding.to_document()]}
    document["order"]["notes"] = [ESCAPE]
    (lab / "result" / "result.json").write_text(json.dumps(document))
    options = ["--json"] if as_json else []
    assert run(["explain", str(lab / "result"), *result.order.labels[:2], *options]) == 0
    assert run(["explain", str(lab / "result"), ESCAPE, "x"]) == 2
    assert run(["explain", str(lab / ESCAPE), "a", "b"]) == 2
    from jigsaw_crl.base.terminal import note
    from jigsaw_crl.cli.output import emit
    from jigsaw_crl.report.lines import findings_table

    emit(False, {}, findings_table([finding]))
    note(ESCAPE)
    emit(True, {"x": ESCAPE})
    out, err = capsys.readouterr()
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out + err)
    assert json.loads(out.splitlines()[-1]) == {"x": ESCAPE}
