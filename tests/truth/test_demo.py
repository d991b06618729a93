"""The demo: what it recovers, prints and writes."""

import json

import jigsaw_crl as jc
from jigsaw_crl.truth.demo import light_tunnel


def test_the_order_is_recovered_explained_and_written(tmp_path, told):
    folder = tmp_path / "out"
    said = json.loads(told("demo", "--out", folder, "--json"))
    ours, paper = said["comparison"]
    assert ours["f1"] == 1.0 >= paper["f1"]
    assert said["across"] == ["blue", "red"]
    text = told("demo", "--out", folder)
    names = {path.name for path in folder.iterdir()}
    assert names == {"result.json", "order.csv", "hasse.graphml", "report.html"}
    assert str(folder / "report.html") in text
    order = jc.load_result(folder).order
    assert order.pairs() == light_tunnel().order.pairs()
    # A relation that no lab could establish alone.
    for line in str(order.explain("blue", "red")).splitlines():
        assert line in text
    assert "No client has both labels" in text
    assert "the paper's method" in text
