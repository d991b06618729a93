"""The benchmark of liars changes the liars' evidence alone, and counts what they turn."""

from dataclasses import replace

import assembly_liars as bench
import numpy as np


def test_liars_change_their_own_evidence_and_nothing_else():
    _, fragments, honest = bench.study(6, 5, 500, 1)
    for kind in bench.KINDS:
        told = bench.lie(fragments, honest, [1, 3], kind, np.random.default_rng(0))
        assert [f.client for f in told] == [f.client for f in fragments]
        changed = [
            k
            for k, (one, other) in enumerate(zip(told, fragments, strict=True))
            if one.to_json() != other.to_json()
        ]
        assert changed == [1, 3], kind


def test_permuted_sites_are_named_and_cost_little():
    cell = bench.Cell("permuted", 0.2, n=3_000, clients=10, latent=14)
    lied, honest = (bench.run_world(c, "choose", 0) for c in (cell, replace(cell, share=0.0)))
    assert (lied["liars"], lied["named"], lied["accused"]) == (2, 2, 0)
    assert honest["liars"] == honest["turned"] == honest["named"] == honest["accused"] == 0
    assert lied["turned"] == lied["noted"]
    assert lied["e1"] > honest["e1"] - 0.05
