"""`jigsaw simulate`: the options reach the world that is written."""

from __future__ import annotations

import json

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.cli.app import run
from jigsaw_crl.truth.simulate import FAMILIES, INTERVENTIONS, Intervention, random_world

SIZE = ["--latent", "6", "--clients", "2", "--coverage", "0.8", "--seed", "3"]


def test_graph_and_interventions_are_those_asked_for(tmp_path):
    out = tmp_path / "study"
    options = ["--graph", "chain", "--strength", "0.5", "--intervention", "hard", "--shift", "2"]
    options += ["--penetrance", "0.5", "--off-target", "0.2"]
    assert run(["simulate", *SIZE, *options, "--out", str(out)]) == 0
    protocol = Intervention("hard", shift=2.0, penetrance=0.5, off_target=0.2)
    world = random_world(6, 2, 0.8, 3, graph="chain", strength=0.5, intervention=protocol)
    truth = json.loads((out / "truth" / "truth.json").read_text())
    assert {tuple(pair) for pair in truth["pairs"]} == world.order.pairs()
    written, expected = jc.read_study(out), world.clients()
    for read, client in zip(written.clients, expected, strict=True):
        for label in client.labels:
            one, two = read.interventions[label][0], client.interventions[label][0]
            assert np.allclose(one.mean, two.mean)
            assert np.allclose(one.covariance, two.covariance)


def test_a_setting_takes_interventions_but_no_graph(tmp_path, capsys):
    command = ["simulate", "--setting", "A", "--intervention", "mild", "--shift", "1"]
    assert run([*command, "--out", str(tmp_path / "a")]) == 0
    assert run([*command, "--graph", "chain", "--out", str(tmp_path / "b")]) == 2
    assert "--setting excludes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--graph", "ring"], "no graph family 'ring'"),
        (["--intervention", "odd"], "no intervention protocol 'odd'"),
        (["--penetrance", "0"], "penetrance is 0"),
    ],
)
def test_options_that_mean_nothing_end_in_one_line(options, says, tmp_path, capsys):
    assert run(["simulate", *SIZE, *options, "--out", str(tmp_path / "s")]) == 2
    assert says in capsys.readouterr().err


def test_the_help_names_every_graph_family_and_protocol(capsys):
    assert run(["simulate", "--help"]) == 0
    # A narrow terminal breaks names at their hyphens.
    shown = "".join(x for x in capsys.readouterr().out if x.isalnum() or x == "-")
    assert all(name in shown for name in (*FAMILIES, *INTERVENTIONS))
