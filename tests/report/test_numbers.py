"""Certificates, the page and the files give the same numbers."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from jigsaw_crl.report import render_report

from .test_page import data_of, unpacked


def test_certificate_table_and_file_give_the_same_numbers_of_every_pair(tunnel, folder):
    """What `explain` prints, what the page shows beside it, and `order.csv`."""
    order = tunnel.order
    data = data_of(render_report(tunnel))
    p = len(order.labels)
    raw, pooled = unpacked(data["table"]), np.frombuffer(unpacked(data["pooled"]), dtype="<i2")
    verdict, yes, no = (np.frombuffer(raw[i * p * p :][: p * p], dtype=np.uint8) for i in range(3))
    chance = np.frombuffer(raw[3 * p * p :], dtype="<f4")
    lines = pd.read_csv(folder(tunnel) / "order.csv").itertuples()
    steps = 0
    for line in lines:
        a, d = order.indices(line.ancestor, line.descendant)
        at = a * p + d
        assert ("undetermined", "not ancestor", "ancestor")[verdict[at]] == line.verdict
        assert (yes[at], no[at]) == (line.supporting, line.contradicting)
        assert chance[at] / 10_000 == pytest.approx(line.probability, abs=0.51e-4)
        said = {"yes": [], "no": []}
        for client in data["clients"]:
            if {a, d} <= set(client["members"]):
                i, j = client["members"].index(a), client["members"].index(d)
                stance = unpacked(client["stance"])[i * len(client["members"]) + j] - 1
                if stance:
                    said["yes" if stance > 0 else "no"].append(client["name"])
        assert (len(said["yes"]), len(said["no"])) == (line.supporting, line.contradicting)
        text = str(order.explain(line.ancestor, line.descendant))
        assert f"{chance[at] / 10_000:.3f})" in text
        own = re.search(
            rf"{line.ancestor} is (?:not )?an ancestor of {line.descendant}: "
            r"log-odds (\S+); (.*?) says? (yes|no)$",
            text,
            re.M,
        )
        if own:
            steps += 1
            assert float(own[1]) == pytest.approx(pooled[at] / 100, abs=0.06)
            assert own[2].split(", ") == said[own[3]]
    assert steps >= 8


def test_the_certificate_quotes_the_pooled_log_odds_of_the_page(middling):
    order = middling.order
    data = data_of(render_report(middling))
    p = len(order.labels)
    pooled = np.frombuffer(unpacked(data["pooled"]), dtype="<i2").reshape(p, p) / 100
    seen = 0
    for a, d in order.pairs():
        (*_, last) = order.explain(a, d).steps
        if last.rule == "weighed":
            seen += 1
            assert abs(pooled[order.indices(a, d)] - last.log_odds) < 0.006
    assert seen
