"""Plural forms, short lists, and suggestions for mistyped names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.base import text
from jigsaw_crl.base.text import did_you_mean, few
from jigsaw_crl.cli.app import run


@pytest.mark.parametrize(
    ("function", "given", "shown"),
    [
        (text.pluralise, (1, "row"), "1 row"),
        (text.pluralise, (2, "matrix", "matrices"), "2 matrices"),
        (text.chance, (0.25,), "0.250"),
        (text.chance, (0.99997,), "> 0.999"),
        (text.chance, (0.0,), "< 0.001"),
        (text.number, (0.01234,), "0.0123"),
        (text.number, (73_412.0,), "73,400"),
        (text.number, (-1e-9,), "0"),
        (text.number, (float("inf"),), "infinite"),
        (text.percent, (0.0123,), "1.2 %"),
        (text.percent, (2.51,), "250 %"),
        (text.percent, (float("inf"),), "more than 1,000 %"),
        (text.percent, (1e-6,), "less than 0.1 %"),
        (text.signed, (0.5,), "+0.50"),
        (text.signed, (-0.001,), "0.00"),
        (did_you_mean, (1, ["1", "2"]), "Names are text: write '1'."),
    ],
)
def test_numbers_are_written_for_people(function, given, shown):
    assert function(*given) == shown


@given(st.lists(st.text("abc", min_size=1), max_size=12), st.integers(1, 9))
def test_a_short_list_accounts_for_every_name(names, most):
    text = few(names, most)
    shown, _, rest = text.partition(" and ")
    assert shown == ", ".join(names[:most])
    assert (int(rest.split()[0]) if rest else 0) == max(len(names) - most, 0)


@pytest.mark.parametrize("asked", ["contrl", "Control ", "CONTROL", "controls"])
def test_a_similar_name_is_suggested(asked):
    assert did_you_mean(asked, ["pump", "control", "valve"]) == "Did you mean 'control'?"


def test_nothing_is_suggested_if_no_name_is_similar():
    assert did_you_mean("tank", ["pump", "flow"]) == ""
    assert did_you_mean("perturbation", ["operator", "duration"]) == ""
    assert did_you_mean("regime", ["time", "region"]) == ""
    assert did_you_mean("pump", []) == ""
    assert did_you_mean("pump", ["pump"]) == ""


def test_reprs_use_the_singular_for_one():
    rng = np.random.default_rng(0)
    lab = jc.Client.from_samples(
        "lab", observational=rng.normal(size=(50, 1)), interventions={"a": rng.normal(size=(9, 1))}
    )
    assert repr(lab) == "Client('lab': 1 label, 1 latent, 1 feature, 50 control rows)"
    assert repr(jc.Study("s", (lab,))) == "Study('s': 1 client, 1 label)"
    assert repr(jc.PartialOrder.from_pairs("ab", ["ab"])) == "PartialOrder(2 elements, 1 pair)"


@pytest.fixture(scope="module")
def numbered() -> jc.GlobalOrder:
    """An order whose labels look like numbers, as a table's regimes often do."""
    control, regimes = jc.simulate.setting("A", 0).rows(0, 2000)
    named = {str(i + 1): rows for i, rows in enumerate(regimes.values())}
    return jc.recover(
        [jc.Client.from_samples("lab", observational=control, interventions=named)]
    ).order


def test_a_number_in_place_of_a_label_is_answered_with_the_text(numbered):
    for ask in (numbered.explain, numbered.verdict, numbered.probability):
        with pytest.raises(jc.InputError, match=r"no client has the label 1.*text: write '1'"):
            ask(1, 2)
    with pytest.raises(jc.InputError, match="text: write '2'"):
        numbered.best_guess().is_ancestor("1", 2)
    with pytest.raises(jc.InputError, match="no client has the label"):
        numbered.ancestors(["1"])


def table(tmp_path, control: str) -> str:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["left", "right"])
    frame["regime"] = [control] * 40 + ["pump"] * 20
    frame.to_csv(tmp_path / "lab-1.csv", index=False)
    return str(tmp_path / "lab-1.csv")


@pytest.mark.parametrize(
    ("options", "near"),
    [
        (["--control", "untreted"], "Did you mean 'untreated'?"),
        (["--control", "untreated", "--regime", "regimes"], "Did you mean 'regime'?"),
        (["--control", "untreated", "--ignore", "lft"], "Did you mean 'left'?"),
    ],
)
def test_a_mistyped_option_is_answered_with_the_most_similar_name(options, near, tmp_path, capsys):
    assert run(["recover", table(tmp_path, "untreated"), *options]) == 2
    err = capsys.readouterr().err
    assert near in err
    assert len(err.splitlines()) == 1
