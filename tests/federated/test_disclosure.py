"""What leaves a site: the documented fields and nothing else."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.cli import app as cli
from jigsaw_crl.federated.answer import make_answer
from jigsaw_crl.federated.disclosure import FIELDS, rounded, shown
from jigsaw_crl.federated.settings import SiteSettings
from jigsaw_crl.fragment.file import FragmentDocument
from jigsaw_crl.fragment.fragment import Fragment

from ..client.wide_rows import wide_regimes
from ..study.tables import client_of

FEATURES = 137  # no other number in these fragments is 137
GUIDE = Path(__file__).parents[2] / "docs" / "federated.md"


def lengths(value):
    """Lengths of all arrays and objects in a document."""
    if isinstance(value, dict | list):
        yield len(value)
        for item in value.values() if isinstance(value, dict) else value:
            yield from lengths(item)


@pytest.fixture(scope="module")
def pieces():
    world, names = jc.simulate.setting("A", 1), [f"secret-feature-{i}" for i in range(FEATURES)]
    wide = client_of(wide_regimes(FEATURES, 1500), features=names)
    return [
        jc.recover_fragment(wide),
        jc.recover_fragment(wide, method="paper"),
        jc.recover_fragment(world.client(0)),
        jc.recover_fragment(world.client(1, n_samples=300, seed=2)),
    ]


def test_a_fragment_has_the_documented_fields_and_no_other(pieces):
    for piece in pieces:
        fields = list(json.loads(piece.to_json()))
        assert fields == [name for name in FIELDS if name in fields]
        assert set(FIELDS) - set(fields) <= {"hard", "soft", "shares", "rank_one"}
    assert list(FragmentDocument.model_fields) == list(FIELDS)


def test_the_guide_lists_exactly_what_leaves_a_site():
    text = GUIDE.read_text(encoding="utf-8")
    table = text.split("## What leaves a client")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, flags=re.M) == list(FIELDS)


def test_the_schema_is_closed_at_every_level(pieces):
    document = json.loads(pieces[0].to_json())
    document["findings"] = [
        {"check": "x", "severity": "info", "message": "m", "remedy": "r", "value": None,
         "threshold": None, "client": None, "regime": None}
    ]  # fmt: skip
    Fragment.from_json(json.dumps(document))
    for place in (document, document["outcome"], document["findings"][0], document["bayes"]):
        place["rows"] = [[1.0, 2.0]]
        with pytest.raises(InputError, match="rows"):
            Fragment.from_json(json.dumps(document))
        del place["rows"]


def test_no_feature_is_named_and_no_basis_is_sent(pieces):
    piece = pieces[0]
    assert piece.basis is not None
    assert piece.basis.shape == (len(piece.labels), FEATURES)
    text = piece.to_json()
    assert "secret" not in text
    assert "basis" not in text
    # Evidence has four decimals, and with hundreds of numbers some agree with a rounded entry of
    # the basis by chance; an entry that leaked would agree in more.
    numbers = {round(float(x), 6) for x in re.findall(r"-?\d+\.\d{5,}", text)}
    assert not numbers & {round(float(x), 6) for x in piece.basis.ravel()}


def test_lists_are_as_long_as_there_are_labels_never_as_there_are_features(pieces):
    for piece in pieces[:2]:
        found = set(lengths(json.loads(piece.to_json())))
        assert FEATURES not in found
        assert max(found) <= max(len(FIELDS), len(piece.labels) ** 2, len(piece.findings))


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """The command that makes a fragment of a simulated site, and its file."""
    study = tmp_path_factory.mktemp("shown") / "study"
    assert cli.run(["simulate", "--setting", "A", "--samples", "512", "--out", str(study)]) == 0
    return ["fragment", str(study / "client-1.parquet")]


def test_show_prints_every_number_that_is_written(words, tmp_path, told):
    output = tmp_path / "fragment.json"
    arguments = [*words, "-o", output, "--show"]
    printed = told(*arguments)
    piece = Fragment.from_json(output.read_bytes())
    assert printed.startswith(shown(piece))
    body = "\n".join(line for line in shown(piece).splitlines() if not line.startswith("#"))
    entries = re.split(r"^(\w+) = ", body, flags=re.M)[1:]
    pairs = zip(entries[::2], entries[1::2], strict=True)
    document = {name: json.loads(text) for name, text in pairs}
    assert document == json.loads(output.read_text())
    assert json.loads(told(*arguments, "--json"))["fragment"] == document


# -- what a fragment says about single rows --------------------------------------------------------
def lab(control, regimes, scale=1.0):
    return jc.Client.from_samples(
        "lab",
        observational=scale * control,
        interventions={label: scale * x for label, x in regimes.items()},
    )


@pytest.mark.parametrize(
    ("kind", "noise", "says"), [("soft", 0.3, "sensor-noise"), ("hard", 0.0, '"hard":{')]
)
def test_a_fragment_does_not_depend_on_the_units_of_the_data(kind, noise, says):
    """So it reveals no absolute variance, neither in its evidence nor in its findings."""
    protocol = jc.simulate.Intervention("hard", shift=1.0)
    world = jc.simulate.random_world(5, 1, 1.0, 18, intervention=protocol, features=2.0)
    control, regimes = world.rows(0, 800)
    rng = np.random.default_rng(0)

    def noisy(x):
        return x + noise * rng.standard_normal(x.shape)

    control, regimes = noisy(control), {label: noisy(x) for label, x in regimes.items()}
    # A power of two changes no digit of the numbers.
    clients = [lab(control, regimes, s).with_interventions(kind) for s in (1.0, 1024.0, 2**-9)]
    (text,) = {jc.recover_fragment(client).to_json() for client in clients}
    assert says in text


def test_rounding_keeps_what_the_sampling_error_justifies_and_changes_nothing_twice(pieces):
    for piece in pieces:
        once = rounded(piece)
        assert rounded(once).to_json() == once.to_json()
        if piece.bayes is None:
            continue
        for name in ("ancestor", "district", "lean"):
            before, after = (getattr(f.bayes, name) for f in (piece, once))
            assert np.array_equal(np.isnan(before), np.isnan(after))
            assert np.nanmax(np.abs(after - before)) <= 1 / 32 + 1e-9
            assert np.nanmax(np.abs(16 * after - np.round(16 * after))) < 1e-2
        for count in once.n_samples.values():
            assert len(str(count).rstrip("0")) <= 2


def with_and_without_a_row(world, seed, *, share):
    """Two fragments of one client whose rows differ by one."""
    control, regimes = world.rows(0, 1000, "gaussian", seed)
    return tuple(share(jc.recover_fragment(lab(c, regimes))) for c in (control, control[:-1]))


def test_the_membership_attack_works_on_two_fragments_and_the_budget_stops_it(tmp_path):
    """Two rounds whose rows differ by one: who sees both fragments knows that the row was there.

    Rounding does not hide it, as the page on federations says. The site's budget does, because the
    second fragment is never sent.
    """
    world = jc.simulate.setting("A", 0)
    for share in (lambda piece: piece, rounded):
        for seed in range(3):
            whole, without = with_and_without_a_row(world, seed, share=share)
            assert not np.array_equal(whole.bayes.ancestor, without.bayes.ancestor, equal_nan=True)
    path = tmp_path / "fragment.json"
    settings = SiteSettings(fragment=path, most_fragments=1)
    seen = []
    for number, piece in enumerate((whole, without)):
        path.write_text(piece.to_json())
        answer = json.loads(make_answer(settings, "lab", f"round-{number}"))
        seen.append(answer[0])
    assert seen == [whole.to_json(), None]
    assert answer[2] == "budget-spent"


def test_a_fragment_of_too_few_rows_is_not_made(words, tmp_path, told, refused):
    asked = [*words, "-o", tmp_path / "fragment.json", "--min-rows"]
    refused([*asked, 513], "the regime has 512 rows, at least 513 are needed")
    told(*asked, 512)


def test_show_works_without_a_file_and_one_of_both_is_needed(words, told, refused):
    assert "would leave this site" in told(*words, "--show")
    refused(words, "no output is asked for")
