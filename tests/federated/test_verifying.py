"""The command `jigsaw verify`: who signed a result, and what it rests on."""

import json
import shutil
from dataclasses import replace

import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.cli import app as cli
from jigsaw_crl.federated.answer import make_answer
from jigsaw_crl.federated.keys import read_private_key
from jigsaw_crl.federated.round import Gathering
from jigsaw_crl.federated.settings import SiteSettings
from jigsaw_crl.federated.verifying import sign_result
from jigsaw_crl.fragment.fragment import Fragment

from .conftest import SITES, sign, with_coordinator


@pytest.fixture(scope="module")
def original(tmp_path_factory, fragments, key_folder):
    """Signed fragments of three sites, and the coordinator's signed result of them."""
    folder = shutil.copytree(key_folder, tmp_path_factory.mktemp("verify") / "federation")
    with_coordinator(folder, fragments)
    files = [str(folder / f"{site}.signed.json") for site in SITES]
    keys = ["--keys", str(folder / "site-keys.toml")]
    words = [*keys, "--round", "first", "--out", str(folder / "result")]
    assert cli.run(["assemble", *files, *words, "--sign", str(folder / "coordinator.key")]) == 0
    return folder


@pytest.fixture
def made(original, tmp_path):
    """A copy that a test may tamper with."""
    return shutil.copytree(original, tmp_path / "federation")


def verify(folder, capsys, *, log=True, keys=True):
    words = ["verify", str(folder / "result"), "--json"]
    words += ["--keys", str(folder / "site-keys.toml")] if keys else []
    words += ["--fragment", str(folder / "client-1.signed.json")]
    words += ["--log", str(folder / "site-keys.log.jsonl")] if log else []
    capsys.readouterr()
    code = cli.run(words)
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] == (code == 0)
    return code, {check["what"]: check["outcome"] for check in document["checks"]}, document


def edit(folder, change):
    path = folder / "result" / "result.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document, ensure_ascii=False))


def signed_again(folder):
    """What a coordinator can do that holds the key: write all files anew, and sign them."""
    result = jc.load_result(folder / "result")
    (folder / "result" / "signature.json").unlink()
    result.save(folder / "result")
    sign_result(folder / "result", read_private_key(folder / "coordinator.key"))


def test_an_untouched_result_passes_every_check(made, capsys):
    code, checks, document = verify(made, capsys)
    assert code == 0
    assert set(checks.values()) == {"ok"}
    assert len(document["digest"]) == 64
    assert set(jc.load_result(made / "result").fragments) == set(SITES)


def test_two_readers_of_one_result_see_one_digest_and_of_two_results_two(made, tmp_path, capsys):
    other = shutil.copytree(made, tmp_path / "other")
    digests = [verify(folder, capsys)[2]["digest"] for folder in (made, other)]
    assert digests[0] == digests[1]
    edit(other, lambda d: d["provenance"].update(round="second"))
    assert verify(other, capsys)[2]["digest"] != digests[0]


def flip_verdict(document):
    verdicts = document["order"]["verdicts"]
    verdicts[0][1] = 0 if verdicts[0][1] else 1


def swap_fragment(document):
    document["fragments"][0]["n_samples"] = {"control": 5}


SIGNED, FILES = "signature of the coordinator", "files"
SITES_SIGNED, LOG = "signatures of the sites", "log of used fragments"


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        (swap_fragment, {SITES_SIGNED, LOG, "fragment client-1.signed.json"}),
        (lambda d: d["provenance"]["signatures"]["client-2"].update(round="x"), {SITES_SIGNED}),
        (lambda d: d["provenance"]["signatures"].pop("client-2"), {SITES_SIGNED}),
        (lambda d: d["provenance"]["log"].update(hash="0" * 64), {LOG}),
        (lambda d: d["provenance"].update(round="second"), {SITES_SIGNED}),
    ],
)
def test_a_changed_result_fails_the_checks_that_it_concerns(change, fails, made, capsys):
    edit(made, change)
    code, checks, _ = verify(made, capsys)
    assert code == 2
    found = {what for what, outcome in checks.items() if outcome == "failed"}
    # A verdict that no longer fits its reasons may also change what the other files say.
    assert found - {FILES} == {SIGNED, *fails}


def invert(document):
    verdicts = document["order"]["verdicts"]
    verdicts[:] = [list(row) for row in zip(*verdicts, strict=True)]


@pytest.mark.parametrize(
    "change",
    [
        invert,
        flip_verdict,
        lambda d: d["order"].update(seed=7),
        lambda d: d["order"]["notes"].append("all clients agree"),
        lambda d: d["order"]["client_weights"].update({"client-2": 0.5}),
        lambda d: d["order"]["probabilities"][0].__setitem__(1, 0.77),
        lambda d: d["order"]["why"][0].__setitem__(1, 7),
        lambda d: d["order"]["decoded"][0].__setitem__(1, 1 - d["order"]["decoded"][0][1]),
        lambda d: d["diagnostics"].append(Finding("x", "warning", "m", "r").to_document()),
        lambda d: d["refined"][0].update(districts=None),
        lambda d: d["proposal"].update(expected_gain=0.5),
        lambda d: d["provenance"].update(study="another"),
        lambda d: d["diagnostics"].insert(
            0, Finding("label-spelling", "warning", "m", "r", client="client-1").to_document()
        ),
    ],
)
def test_a_coordinator_cannot_sign_what_does_not_follow_from_the_fragments(change, made, capsys):
    edit(made, change)
    signed_again(made)
    code, checks, document = verify(made, capsys)
    assert (code, document["state"]) == (2, "failed")
    assert (checks[SIGNED], checks["verdicts"]) in (("ok", "failed"), ("failed", "ok"))


@pytest.mark.parametrize(
    ("name", "again"),
    [("report.html", False), ("report.html", True), ("order.csv", True), ("notes.txt", True)],
)
def test_a_falsified_file_is_refused_signed_again_or_not(name, again, made, capsys):
    path = made / "result" / name
    path.write_text(path.read_text().replace("1.00", "0.00") + " " if path.exists() else "trust us")
    if again:
        sign_result(made / "result", read_private_key(made / "coordinator.key"))
    code, checks, _ = verify(made, capsys)
    assert code == 2
    assert (checks[SIGNED], checks[FILES]) == ("ok" if again else "failed", "failed")


@pytest.mark.parametrize("what", ["report.html", "older"])
def test_a_link_in_a_result_folder_is_refused(what, made, tmp_path, refused):
    """What a reader sees behind it need not be what was signed."""
    elsewhere = shutil.copytree(made / "result", tmp_path / "elsewhere")
    (made / "result" / what).unlink(missing_ok=True)
    target = elsewhere / what if what == "report.html" else elsewhere
    (made / "result" / what).symlink_to(target)
    refused(["verify", made / "result", "--keys", made / "site-keys.toml"], what, "it is a link")


@pytest.mark.parametrize("stage", [".jigsaw-complete", ".jigsaw-stage-1"])
def test_a_folder_that_holds_an_unfinished_write_is_refused(stage, made, refused):
    shutil.copytree(made / "result", made / "result" / stage)
    edit(made, invert)
    refused(["verify", made / "result", "--keys", made / "site-keys.toml"], "was not finished")


def test_a_coordinator_that_signs_a_changed_result_cannot_sign_for_the_sites(made, capsys):
    edit(made, swap_fragment)
    for key, signed in (("coordinator", "ok"), ("client-1", "failed")):
        sign_result(made / "result", read_private_key(made / f"{key}.key"))
        _, checks, _ = verify(made, capsys)
        assert checks[SIGNED] == signed
        assert checks[SITES_SIGNED] == "failed"


def test_without_keys_nothing_is_verified(made, capsys, told):
    code, checks, document = verify(made, capsys, keys=False, log=False)
    assert (code, document["state"]) == (2, "not verified")
    unknown = {what for what, outcome in checks.items() if outcome == "not checked"}
    assert unknown == {SITES_SIGNED, SIGNED, LOG}
    said = told("verify", made / "result", code=2)
    assert f"not verified: {SITES_SIGNED}, {SIGNED}." in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "(witnesses: fifth)"),
        (["--witnesses", "1", "--smallest-effect", "0.5"], "(witnesses: 1, smallest effect: 0.5)"),
        (["--knowledge", "known.toml"], "(witnesses: fifth, with knowledge)"),
        (["--method", "paper"], "(witnesses: 1, method: paper)"),
    ],
)
def test_what_a_coordinator_may_choose_is_told(options, said, made, monkeypatch, capsys):
    """A reader compares it with what was agreed."""
    monkeypatch.chdir(made)
    (made / "known.toml").write_text('[knowledge]\nnot_ancestor = ["z1 -> z2"]\n')
    files = [f"{site}.signed.json" for site in SITES]
    words = ["--keys", "site-keys.toml", "--round", "first", "--again", "--out", "result"]
    words += ["--sign", "coordinator.key", *options]
    assert cli.run(["assemble", *files, *words]) == 0, capsys.readouterr().err
    code, _, document = verify(made, capsys)
    assert code == 0
    (told,) = (x["detail"] for x in document["checks"] if x["what"] == "verdicts")
    assert told.endswith(said)


def live_round(made, settings, change=lambda fragment: fragment):
    """The signed result of a round, whose first site changes its fragment before it signs."""
    hub = settings.model_copy(
        update={"keys": made / "site-keys.toml", "sign": made / "coordinator.key"}
    )
    gathering = Gathering.open(hub, "second")
    for site in SITES:
        path = made / f"{site}.signed.json"
        fragment = Fragment.from_json(json.loads(path.read_text())["fragment"])
        fragment = change(fragment) if site == SITES[0] else fragment
        sign(made, fragment, round_name="second")
        answer = make_answer(SiteSettings(fragment=path), site, "second")
        assert gathering.receive(site, answer).state == "received"
    result = gathering.finish(3)
    shutil.rmtree(made / "result")
    shutil.copytree(gathering.folder, made / "result")
    return result


def test_what_a_killed_process_leaves_of_an_unsigned_file_spoils_no_verification(made, capsys):
    for name in (".signature.json-0123456789ab", ".round.json-ba9876543210"):
        (made / "result" / name).write_text("{")
    code, _, document = verify(made, capsys)
    assert (code, document["state"]) == (0, "verified")
    (made / "result" / ".report.html-0123456789ab").write_text("x")
    assert verify(made, capsys)[0] == 2


@pytest.mark.parametrize("check", ["nothing", "missing-site", "refused-site", "label-spelling"])
def test_a_site_that_sends_findings_of_the_coordinator_spoils_no_verification(
    check, made, settings, capsys
):
    def changed(fragment):
        said = Finding(check, "warning", "m", "r", client=fragment.client)
        return replace(fragment, findings=(*fragment.findings, said))

    result = live_round(made, settings, changed)
    assert check in {f.check for f in result.diagnostics}
    code, _, document = verify(made, capsys)
    assert (code, document["state"]) == (0, "verified")


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["sites"]["client-2"].update(state="missing"),
        lambda d: d["sites"].pop("client-2"),
        lambda d: d["sites"].update({"client-9": {"state": "refused", "why": "it lied"}}),
        lambda d: d.update(round="third"),
        lambda d: d.update(failure="it failed"),
        lambda d: d["log"].__setitem__(0, 99),
        lambda d: d.clear(),
    ],
)
def test_a_falsified_record_of_the_round_is_refused(change, made, settings, capsys):
    """It is written after the signature, and compared with what was signed."""
    live_round(made, settings)
    assert verify(made, capsys)[:2] == (0, dict.fromkeys(verify(made, capsys)[1], "ok"))
    path = made / "result" / "round.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    code, checks, _ = verify(made, capsys)
    assert (code, checks["round.json"]) == (2, "failed")
    assert set(checks.values()) == {"ok", "failed"}
