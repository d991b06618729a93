"""Certificates, the page and the files give the same numbers."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from jigsaw_crl.base.text import chance
from jigsaw_crl.report import render_report

from .test_page import data_of, table_of, unpacked


def test_certificate_table_and_file_give_the_same_numbers_of_every_pair(tunnel, folder):
    """What `explain` prints, what the page shows beside it, and `order.csv`."""
    order = tunnel.order
    data = data_of(render_report(tunnel))
    table = table_of(data)
    lines = pd.read_csv(folder(tunnel) / "order.csv").itertuples()
    steps = 0
    for line in lines:
        a, d = order.indices(line.ancestor, line.descendant)
        told = {name: column[a, d] for name, column in table.items()}
        assert ("undetermined", "not ancestor", "ancestor")[int(told["verdict"])] == line.verdict
        assert (told["yes"], told["no"]) == (line.supporting, line.contradicting)
        assert told["probability"] == pytest.approx(line.probability, abs=0.51e-4)
        said = {"yes": [], "no": []}
        for client in data["clients"]:
            if {a, d} <= set(client["members"]):
                i, j = client["members"].index(a), client["members"].index(d)
                n = len(client["members"])
                stance = np.frombuffer(unpacked(client["table"]), "<f8")[i * n + j]
                if stance:
                    said["yes" if stance > 0 else "no"].append(client["name"])
        assert (len(said["yes"]), len(said["no"])) == (line.supporting, line.contradicting)
        text = str(order.explain(line.ancestor, line.descendant))
        assert f"{chance(told['probability'])})" in text
        own = re.search(
            rf"{line.ancestor} is (?:not )?an ancestor of {line.descendant}: "
            r"log Bayes factor (\S+); (.*?) says? (yes|no)$",
            text,
            re.M,
        )
        if own:
            steps += 1
            assert float(own[1]) == pytest.approx(told["evidence"], abs=0.06)
            assert own[2].split(", ") == said[own[3]]
    assert steps >= 7
