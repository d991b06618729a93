"""Findings about one label are made once, and agree with what recovery leaves out."""

from collections import Counter

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.findings import Finding, ReadingNote
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.usable import after_recovery

PUMP = frozenset({"pump"})


@pytest.fixture(scope="module")
def fragments():
    """Clients with few rows and weak interventions, some of which cannot be seen."""
    found = []
    for seed in range(8):
        world = jc.simulate.random_world(8, 2, 0.7, seed=900 + seed, intervention="weak")
        for k in range(2):
            client = world.client(k, n_samples=150, seed=seed)
            try:
                found.append(jc.recover_fragment(client))
            except jc.InputError:  # no regime clearly differs from the control
                continue
    return found


def about(fragment, check):
    return [f.regime for f in fragment.findings if f.check == check]


def test_a_label_is_called_weak_exactly_if_nothing_is_stated_about_it(fragments):
    weak = 0
    for fragment in fragments:
        unseen = np.isnan(fragment.bayes.district).all(axis=1)
        if unseen.all():  # a single label that is read has no other to be compared with
            continue
        refused = set(about(fragment, "several-targets"))
        silent = {x for x, s in zip(fragment.labels, unseen, strict=True) if s} - refused
        assert set(about(fragment, "weak-intervention")) == silent
        weak += len(silent)
    assert weak > 10


def test_no_label_gets_two_findings_of_one_kind(fragments):
    for fragment in fragments:
        counts = Counter((f.check, f.regime) for f in fragment.findings if f.regime)
        assert max(counts.values(), default=1) == 1


WEAK = finding("weak-intervention", 0.8, 1.0, client="lab", regime="pump", how="", need="")
DOUBT = finding("several-targets", 4.2, 1.5, client="lab", regime="pump")


@pytest.mark.parametrize(
    ("seen", "notes", "stays"),
    [
        (WEAK, [], False),
        (DOUBT, [], False),
        (WEAK, [ReadingNote("pump", "weak-intervention", 2.1, 3.3)], True),
        # A label that recovery was not given, and another question.
        (finding("several-targets", 4.2, 1.0, client="lab", regime="valve"), [], True),
        (Finding("heavy-tails", "warning", "heavy", "Transform it.", regime="pump"), [], True),
    ],
)
def test_a_finding_of_the_checks_stays_unless_recovery_reads_the_label(seen, notes, stays):
    assert after_recovery("lab", [seen], PUMP, notes) == ((seen,) if stays else ())


@pytest.mark.parametrize(
    ("seen", "note", "severity", "words"),
    [
        ([], ("pump", "mean-only", 0.4, 1.0), "warning", "nothing is said about the ancestors"),
        ([], ("pump", "weak-intervention", 2.1, 3.3), "warning", "differs from the control"),
        ([], (None, "batch-offset", 5.0, 2.0), "warning", "sensors are not linear"),
        ([DOUBT], ("pump", "several-targets", 12.0, 10.0), "error", ""),
        ([DOUBT], ("pump", "off-target", 12.0, 3.3, "valve"), "warning", "'valve'"),
    ],
)
def test_what_recovery_tells_is_a_finding_with_its_numbers(seen, note, severity, words):
    (found,) = after_recovery("lab", seen, PUMP | {"valve"}, [ReadingNote(*note)])
    assert (found.client, found.regime, found.check, found.value, found.threshold) == (
        "lab",
        *note[:4],
    )
    assert found.severity == severity
    assert words in found.message


@pytest.mark.parametrize(
    ("sign", "reason"), [("light-tails", "not linear"), ("heavy-tails", "heavy tails")]
)
def test_where_rows_give_another_reason_a_regime_is_called_unclear(sign, reason):
    other = Finding(sign, "warning", "tails", "Look.", client="lab")
    told = [ReadingNote("pump", "several-targets", 12.0, 10.0)]
    kept, found = after_recovery("lab", [other, DOUBT], PUMP | {"tank", "valve"}, told)
    assert kept == other
    assert (found.check, found.severity, found.regime) == ("unclear-regime", "error", "pump")
    assert reason in found.message
    assert "more than one latent" in found.message


def test_if_every_regime_looks_like_several_targets_the_sensors_are_named():
    labels = ("pump", "valve", "tank")
    notes = [ReadingNote(label, "several-targets", 4.0, 1.5) for label in labels]
    all_of = after_recovery("lab", [], frozenset(labels), notes)
    assert all("the sensors are not linear" in f.message for f in all_of)
    one = after_recovery("lab", [], frozenset(labels), notes[:1])
    assert "sensors" not in one[0].message
