"""Every public object comes back from pickle, deepcopy and its own file as it was."""

import copy
import dataclasses
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.findings import Finding


@pytest.fixture(scope="module")
def objects():
    world = jc.simulate.setting("A", 0)
    sampled, exact = world.clients(n_samples=1_000, seed=1), world.clients()
    result, certain = jc.recover(sampled), jc.recover(exact)
    regimes = world.sample(0, 500).regimes
    X, y = np.vstack(list(regimes.values())), np.repeat(list(regimes), 500)
    return {
        "Client": sampled[0],
        "Client, exact": exact[0],
        "Moments": sampled[0].control,
        "Study": jc.Study("tunnel", tuple(sampled), sources={"lab": "lab.csv"}),
        "Fragment": result.order.fragments[0],
        "Fragment, exact": certain.order.fragments[0],
        "Outcome": jc.Outcome("partial", "Nothing is said about pump.", "See the findings."),
        "BayesFactors": result.order.fragments[0].bayes,
        "Statements": certain.order.fragments[0].statements,
        "PartialOrder": world.order,
        "GlobalOrder": result.order,
        "GlobalOrder, exact": certain.order,
        "Certificate": certain.order.explain("z1", "z2"),
        "Proposal": jc.next_client(result.order, size=3),
        "Result": result,
        "Result, exact": certain,
        "Result, paper": jc.recover(sampled, method="paper"),
        "Finding": Finding("weak", "warning", "too weak", "Take more rows.", client="lab-1"),
        "Verdict": jc.Verdict.ANCESTOR,
        "BlockRecovery": jc.BlockRecovery().fit(X, y),
        "InputError": jc.InputError("no rows", "Check the file.", client="lab-1", regime="pump"),
        "Knowledge": jc.Knowledge([["pump"], ["tank"]], ["pump -> tank"]),
        "World": world,
        "Truth": world.truth(0),
    }


COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.mark.slow
@pytest.mark.parametrize("how", COPIES)
def test_a_copy_is_equal_in_every_field_and_as_frozen(how, objects):
    for value in objects.values():
        assert_equal(COPIES[how](value), value)


def test_every_public_type_is_among_those_copied(objects):
    public = {name for name in jc.__all__ if isinstance(getattr(jc, name), type)}
    assert public - {"JigsawError"} <= {name.split(",")[0] for name in objects}


def assert_equal(new, old, ignore=frozenset()):
    """Equal type and content, all the way down; arrays that were read-only still are."""
    assert type(new) is type(old)
    if isinstance(old, np.ndarray):
        np.testing.assert_array_equal(new, old, strict=True)
        assert new.flags.writeable <= old.flags.writeable
    elif isinstance(old, Mapping):
        assert list(new) == list(old)
        for key in old:
            assert_equal(new[key], old[key], ignore)
        if not isinstance(old, dict):
            with pytest.raises(TypeError):
                new["another"] = None
    elif isinstance(old, tuple | list):
        assert len(new) == len(old)
        for a, b in zip(new, old, strict=True):
            assert_equal(a, b, ignore)
    elif dataclasses.is_dataclass(old):
        for field in dataclasses.fields(old):
            if field.name not in ignore:
                assert_equal(getattr(new, field.name), getattr(old, field.name), ignore)
    elif isinstance(old, jc.InputError | jc.BlockRecovery):
        assert_equal(vars(new), vars(old), ignore)
        assert str(new) == str(old)
    else:
        assert new == old or new is old
