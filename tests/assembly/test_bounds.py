"""How large an effect a "no" excludes."""

import re
from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly.explanation import check_certificate
from jigsaw_crl.assembly.verdict import NO, OPEN, YES


@pytest.fixture(scope="module")
def world():
    return jc.simulate.random_world(8, 6, 0.7, 730_001)


@pytest.fixture(scope="module")
def clients(world):
    return world.clients(n_samples=2_000)


@pytest.fixture(scope="module")
def plain(clients):
    return jc.recover(clients).order


def test_the_smallest_effect_that_matters_decides_what_no_means(clients, plain):
    bound = plain.table.bounds.value
    size = float(np.nanmedian(bound[plain.verdicts == NO]))
    order = jc.recover(clients, smallest_effect=size).order
    off = ~np.eye(len(order), dtype=bool)
    measured = ~np.isnan(bound) & off
    # What is above cannot be below, whatever its size.
    opposite = order.verdicts.T == YES
    assert (bound[measured & (order.verdicts == NO) & ~opposite] <= size).all()
    above = measured & (bound > size) & (plain.verdicts == NO)
    assert (order.verdicts[above & ~opposite] == OPEN).all()
    assert (order.verdicts[above & opposite] == NO).all()
    assert (above & opposite).any()
    assert np.array_equal(order.verdicts == YES, plain.verdicts == YES)
    denied = {(order.labels[i], order.labels[j]) for i, j in np.argwhere(order.verdicts == NO)}
    assert not order.best_guess().pairs() & denied
    with pytest.raises(jc.InputError, match="above 0"):
        jc.recover(clients, smallest_effect=-1.0)


def test_an_explanation_of_a_no_states_the_effect_that_it_excludes(plain):
    a, d = (
        plain.labels[i] for i in np.argwhere(~np.isnan(plain.table.bounds.value) & no(plain))[0]
    )
    certificate = plain.explain(a, d)
    assert certificate.bound == plain.bound(a, d)
    assert certificate.bound_unit == "share of the change"
    stated = re.search(
        rf"\n  Effects above a share of (\S+) of what the intervention on {d} changed are excluded "
        r"\(95 %, one-sided\)\.",
        str(certificate),
    )
    # Rounded up, to two digits.
    assert certificate.bound <= float(stated[1]) * (1 + 1e-5) <= 1.1 * certificate.bound
    assert check_certificate(certificate, plain.fragments) == ""
    forged = replace(certificate, bound=0.5 * certificate.bound)
    assert "another bound" in check_certificate(forged, plain.fragments)


def test_a_share_of_all_that_changed_is_no_bound(plain):
    shown = plain.table.bounds.value < 0.99
    wide = plain.table.bounds.value > 0.99
    assert (wide & ~shown & (plain.verdicts != YES)).any()
    frame = plain.to_frame().set_index(["ancestor", "descendant"])
    for i, j in np.argwhere((wide | shown) & (plain.verdicts != YES)):
        line = frame.loc[(plain.labels[i], plain.labels[j])]
        assert np.isnan(line.excludes_above) == bool(wide[i, j])
        assert (line.excludes_unit == "") == bool(wide[i, j])
        assert (plain.certificate(i, j).bound is None) == bool(wide[i, j])
    strict = jc.assemble(plain.fragments, smallest_effect=0.01)
    reasons = {
        strict.explain(strict.labels[i], strict.labels[j]).reason for i, j in np.argwhere(wide)
    }
    assert not any("share of 1" in reason or "share of 2" in reason for reason in reasons)
    assert any("effects of any size are possible" in reason for reason in reasons)


def no(order):
    return (order.verdicts == NO) & ~np.eye(len(order), dtype=bool)


@pytest.mark.slow
def test_certificates_under_a_smallest_effect_check_out_and_say_what_rests_on_it(
    world, clients, plain
):
    size = float(np.nanquantile(plain.table.bounds.value[no(plain)], 0.6))
    order = jc.recover(clients, smallest_effect=size).order
    reasons = [
        pair for pair in order.undetermined() if "must exclude" in order.explain(*pair).reason
    ]
    assert reasons
    assert all(order.bound(*pair) > size for pair in reasons)
    again = jc.assemble(order.fragments, smallest_effect=size)
    assert all(check_certificate(order.explain(*pair), again) == "" for pair in reasons)
    # Pairs that the evidence leaves open and whose effects are small anyway.
    few = world.clients(n_samples=300)
    opened = jc.recover(few).order.verdicts == OPEN
    wide = jc.recover(few, smallest_effect=2.5).order
    became = no(wide) & opened & ~np.isnan(wide.table.bounds.value)
    assert (wide.probabilities[became] <= 0.5).all()
    a, d = (wide.labels[i] for i in np.argwhere(became)[0])
    certificate = wide.explain(a, d)
    assert [step.rule for step in certificate.steps] == ["small"]
    # The bound decides it, not what one client says.
    assert certificate.rests_on == ""
    assert "effects above 2.5 are excluded (95 %, one-sided), and smaller ones" in str(certificate)
    assert check_certificate(certificate, wide.fragments) == ""
    claimed = replace(certificate, options=replace(certificate.options, smallest_effect=None))
    assert check_certificate(claimed, wide.fragments) != ""
