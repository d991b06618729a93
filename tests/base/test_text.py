"""Plural forms, short lists, and suggestions for mistyped names."""

import pytest

from jigsaw_crl.base import text
from jigsaw_crl.base.text import did_you_mean


@pytest.mark.parametrize(
    ("function", "given", "shown"),
    [
        (text.pluralise, (1, "row"), "1 row"),
        (text.pluralise, (2, "matrix", "matrices"), "2 matrices"),
        (text.chance, (0.25,), "0.250"),
        (text.chance, (0.99997,), "> 0.999"),
        (text.chance, (0.99997, 2), "> 0.99"),
        (text.chance, (0.004, 2), "< 0.01"),
        (text.chance, (0.9651, 2), "0.97"),
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


@pytest.mark.parametrize("asked", ["contrl", "Control ", "CONTROL", "controls"])
def test_a_similar_name_is_suggested(asked):
    assert did_you_mean(asked, ["pump", "control", "valve"]) == "Did you mean 'control'?"


def test_nothing_is_suggested_if_no_name_is_similar():
    assert did_you_mean("tank", ["pump", "flow"]) == ""
    assert did_you_mean("perturbation", ["operator", "duration"]) == ""
    assert did_you_mean("regime", ["time", "region"]) == ""
    assert did_you_mean("pump", []) == ""
    assert did_you_mean("pump", ["pump"]) == ""
