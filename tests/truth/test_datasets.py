"""Data sets that come with the package."""

from importlib.resources import files

import jigsaw_crl as jc


def test_the_light_tunnel_says_where_it_comes_from():
    text = files("jigsaw_crl.truth").joinpath("data/README.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in text
    assert "Causal Chambers" in text
    assert "regenerated" in str(jc.datasets.light_tunnel.__doc__)


def test_the_order_of_the_light_tunnel_is_found_by_four_sites():
    result = jc.recover(jc.datasets.light_tunnel_study())
    truth = jc.datasets.light_tunnel_order()
    assert result.order.pairs() == truth.pairs()
    assert jc.metrics.verdict_counts(truth, result.order).wrong_no == 0
    alone = jc.recover([jc.datasets.light_tunnel_study()["lab-3"]])
    assert alone.order.pairs() <= truth.pairs()
