"""Every public name is documented and has a running example; user scripts can be type-checked."""

import doctest
import inspect
from pathlib import Path

import pytest

import jigsaw_crl as jc

from ..processes import python

NAMES = [name for name in jc.__all__ if name != "__version__"]

USER_SCRIPT = """\
from pathlib import Path

import numpy as np

import jigsaw_crl as jc


def order_of(folder: Path) -> set[tuple[str, str]]:
    result: jc.Result = jc.recover(jc.read_study(folder), seed=1)
    verdict: jc.Verdict = result.order.verdict("pump", "valve")
    probability: float = result.order.probability("pump", "valve")
    certificate: jc.Certificate = result.order.explain("pump", "valve")
    proposal: jc.Proposal = jc.next_client(result.order, size=3)
    print(verdict, probability, certificate, proposal.labels)
    guess: jc.PartialOrder[str] = result.order.best_guess()
    print(guess.pairs(), result.order.descendants("pump"))
    return result.order.pairs()


rows = np.random.default_rng(0).normal(size=(100, 3))
client = jc.Client.from_samples("lab-1", observational=rows, interventions={"pump": 2 * rows})
fragment: jc.Fragment = jc.recover_fragment(client, method="null-cone")
labels: tuple[str, ...] = fragment.labels
order: jc.GlobalOrder = jc.assemble([fragment])
score: float = jc.metrics.global_f1(order, jc.simulate.setting("A", 0).order)
reveal_type(order.ancestors("pump"))
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_a_docstring_with_an_example_that_runs(name):
    thing = getattr(jc, name)
    text = inspect.getdoc(thing) or ""
    assert text, f"{name} has no docstring"
    assert "Examples\n--------" in text, f"{name} has no Examples section"
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert test.examples, f"{name}'s Examples section has no code"
    outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert outcome.failed == 0


@pytest.mark.parametrize("name", [n for n in NAMES if inspect.isfunction(getattr(jc, n))])
def test_every_parameter_of_a_public_function_is_documented(name):
    function = getattr(jc, name)
    text = inspect.getdoc(function) or ""
    documented = text.split("Parameters\n----------")[-1].split("Returns\n-------")[0]
    for parameter in inspect.signature(function).parameters:
        assert parameter in documented, f"{name} does not explain {parameter}"


@pytest.mark.slow
def test_a_user_script_passes_mypy_strict(tmp_path):
    script = tmp_path / "user.py"
    script.write_text(USER_SCRIPT, encoding="utf-8")
    # Running in the project folder reuses mypy's cache, so the check takes seconds, not a minute.
    done = python("-m", "mypy", "--strict", script, cwd=Path(__file__).resolve().parents[2])
    assert done.returncode == 0, done.stdout + done.stderr
    # The revealed type is not Any, so the package exports its types.
    assert "frozenset[" in done.stdout, done.stdout
