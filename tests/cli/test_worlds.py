"""`jigsaw simulate`: the options reach the world that is written."""

from __future__ import annotations

import json

import numpy as np

import jigsaw_crl as jc
from jigsaw_crl.cli.app import run
from jigsaw_crl.truth.simulate import INTERVENTIONS, Intervention, random_world

SIZE = ["--latent", "6", "--clients", "2", "--coverage", "0.8", "--seed", "3"]


def test_interventions_are_those_asked_for(tmp_path):
    out = tmp_path / "study"
    options = ["--intervention", "hard", "--shift", "2"]
    assert run(["simulate", *SIZE, *options, "--out", str(out)]) == 0
    world = random_world(6, 2, 0.8, 3, intervention=Intervention("hard", shift=2.0))
    truth = json.loads((out / "truth" / "truth.json").read_text())
    assert {tuple(pair) for pair in truth["pairs"]} == world.order.pairs()
    written, expected = jc.read_study(out), world.clients()
    for read, client in zip(written.clients, expected, strict=True):
        for label in client.labels:
            one, two = read.interventions[label][0], client.interventions[label][0]
            assert np.allclose(one.mean, two.mean)
            assert np.allclose(one.covariance, two.covariance)


def test_the_help_names_every_protocol(capsys):
    assert run(["simulate", "--help"]) == 0
    # A narrow terminal breaks names at their hyphens.
    shown = "".join(x for x in capsys.readouterr().out if x.isalnum() or x == "-")
    assert all(name in shown for name in INTERVENTIONS)
