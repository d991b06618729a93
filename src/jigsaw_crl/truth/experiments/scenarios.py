"""Plans of experiments: worlds, sample sizes, replicates, and the seed of each task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from json import dumps
from pathlib import Path
from typing import Literal
from zlib import crc32

import numpy as np

import jigsaw_crl
from jigsaw_crl.base.errors import InputError, choose
from jigsaw_crl.baseline import TAU_GRID
from jigsaw_crl.truth.experiments.published import SAMPLE_SIZES, TABLES, Row
from jigsaw_crl.truth.simulate import SETTINGS, World, random_world, setting

__all__ = ["Kind", "Phase", "Plan", "Scenario", "Task", "plan_of", "scenario_of"]

Kind = Literal["figures", "tables"]
Phase = Literal["calibration", "evaluation"]

# The root of every seed; another number gives another set of replicates.
ROOT = 20_260_101
_BRANCH = {"evaluation": 0, "calibration": 1}
# With more latents per client than this, only the largest candidates for τ are tried. There the
# search at a small τ takes most of the time, and it scores worst: in a run with the whole grid the
# best candidate was among the three largest at every n.
LARGE_CLIENT = 13.0
LARGEST = 3
# Rooms whose code changes no number of a replicate.
_NO_NUMBERS = ("cli", "federated", "report")


@dataclass(frozen=True)
class Scenario:
    """A family of worlds: one of the paper's settings, or random worlds of one size.

    Parameters
    ----------
    noise : {"gaussian", "laplace"}
    setting : str, optional
        A, B or C.
    n_latent, n_clients, coverage : optional
        p, K and q of random worlds.
    """

    noise: str
    setting: str | None = None
    n_latent: int = 0
    n_clients: int = 0
    coverage: float = 0.0

    @property
    def is_large(self) -> bool:
        """Whether a client has more than `LARGE_CLIENT` latents on average."""
        return self.n_latent * self.coverage > LARGE_CLIENT

    @property
    def key(self) -> str:
        """Name of the scenario, in file names and as a part of its seeds."""
        if self.setting is not None:
            return f"{self.setting}-{self.noise}"
        return f"p{self.n_latent}-K{self.n_clients}-q{self.coverage:g}-{self.noise}"

    def world(self, seed: int) -> World:
        if self.setting is not None:
            return setting(self.setting, seed)
        return random_world(self.n_latent, self.n_clients, self.coverage, seed)


@dataclass(frozen=True)
class Task:
    """A data set, and what to do with it.

    Parameters
    ----------
    scenario : Scenario
    n : int or None
        Rows per regime; None for exact moments.
    phase : {"calibration", "evaluation"}
    replicate : int
    method : str
    """

    scenario: Scenario
    n: int | None
    phase: Phase
    replicate: int
    method: str

    @property
    def key(self) -> str:
        size = "inf" if self.n is None else str(self.n)
        return f"{self.scenario.key}-n{size}-{self.method}-{self.phase[0]}{self.replicate:04d}"

    def seeds(self) -> tuple[int, int]:
        """Seeds of the world and of the sample.

        They do not depend on when or where the task runs, nor on the method: every method gets the
        same data. A replicate has the same world at every n, and different samples.
        """
        base = [ROOT, crc32(self.scenario.key.encode()), _BRANCH[self.phase], self.replicate]
        of_world = np.random.SeedSequence([*base, 0])
        of_sample = np.random.SeedSequence([*base, 1, self.n or 0])
        world, sample = (int(s.generate_state(1, np.uint64)[0]) for s in (of_world, of_sample))
        return world, sample


@dataclass(frozen=True)
class Plan:
    """An experiment: everything that its numbers depend on.

    Parameters
    ----------
    kind : {"figures", "tables"}
    scenarios : tuple of Scenario
    sizes : tuple of int or None
        Sample sizes; None is the population.
    replicates : int
        Evaluations per scenario and size.
    calibration_runs : int
        Extra runs per scenario and size for the choice of τ.
    grid : tuple of float
        Candidates for τ, ascending; see `candidates`.
    budget : int
        Number of label sets that the paper's search may try per client; see
        `jigsaw_crl.baseline.recover_fragment`.
    methods : tuple of str
    """

    kind: Kind
    scenarios: tuple[Scenario, ...]
    sizes: tuple[int | None, ...]
    replicates: int
    calibration_runs: int
    grid: tuple[float, ...]
    budget: int
    methods: tuple[str, ...]

    def candidates(self, scenario: Scenario) -> tuple[float, ...]:
        """Candidates for τ: the grid, or its largest values where clients are large."""
        return self.grid[-LARGEST:] if scenario.is_large else self.grid

    def calibrations(self) -> list[Task]:
        """Runs for the choice of τ; only the paper's method at finite n needs one."""
        if "paper" not in self.methods:
            return []
        return [
            Task(scenario, n, "calibration", r, "paper")
            for r in range(self.calibration_runs)
            for scenario in self.scenarios
            for n in self.sizes
            if n is not None
        ]

    def evaluations(self) -> list[Task]:
        return [
            Task(scenario, n, "evaluation", r, method)
            for r in range(self.replicates)
            for scenario in self.scenarios
            for n in self.sizes
            for method in self.methods
        ]

    def fingerprint(self, method: str) -> str:
        """Hash of everything that changes a method's numbers in a replicate.

        Results with another fingerprint are not used. More replicates, scenarios, sizes or methods
        do not change it; τ and the search budget matter to the paper's method only.
        """
        tuning = (self.calibration_runs, self.grid, self.budget) if method == "paper" else ()
        given = [_code_hash(), ROOT, method, tuning]
        return sha256(dumps(given).encode()).hexdigest()[:12]


@cache
def _code_hash() -> str:
    """Hash of the code that numbers depend on, so that results of different code never mix."""
    root = Path(jigsaw_crl.__file__).parent
    code = sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in _NO_NUMBERS:
            code.update(path.read_bytes())
    return code.hexdigest()


def plan_of(
    kind: str,
    *,
    quick: bool,
    methods: tuple[str, ...] = ("paper", "null-cone"),
    only: Sequence[str] = (),
) -> Plan:
    """The full experiment, or with `quick` one that takes minutes.

    Parameters
    ----------
    kind : {"figures", "tables"}
    quick : bool
    methods : tuple of str
    only : sequence of str
        Parts to run, by default all. Of the figures: a setting ("A") or a scenario ("A-laplace").
        Of the tables: what varies ("p", "K", "q") or a family of worlds ("p20-K15-q0.6").

    Examples
    --------
    >>> from jigsaw_crl.truth.experiments.scenarios import plan_of
    >>> plan = plan_of("figures", quick=True)
    >>> [s.key for s in plan.scenarios][:2], plan.sizes
    (['A-gaussian', 'A-laplace'], (1000, 10000, 100000, 1000000, None))
    >>> [s.key for s in plan_of("tables", quick=True, only=["K"]).scenarios][:2]
    ['p20-K5-q0.6-gaussian', 'p20-K10-q0.6-gaussian']
    """
    plan = _whole_plan(kind, quick, methods)
    if not only:
        return plan
    parts = _parts(plan)
    wanted = {scenario for name in only for scenario in choose(name, parts, f"part of the {kind}")}
    return replace(plan, scenarios=tuple(s for s in plan.scenarios if s in wanted))


def _parts(plan: Plan) -> dict[str, list[Scenario]]:
    """The names of parts of a plan, and their scenarios."""
    parts: dict[str, list[Scenario]] = {}
    if plan.kind == "tables":
        parts |= {table.varies: [scenario_of(row) for row in table.rows] for table in TABLES}
    for scenario in plan.scenarios:
        if scenario.setting is None:
            parts[scenario.key.removesuffix(f"-{scenario.noise}")] = [scenario]
        else:
            parts.setdefault(scenario.setting, []).append(scenario)
            parts[scenario.key] = [scenario]
    return parts


def scenario_of(row: Row) -> Scenario:
    """The random worlds behind a row of the tables."""
    return Scenario("gaussian", None, row.n_latent, row.n_clients, row.coverage)


def _whole_plan(kind: str, quick: bool, methods: tuple[str, ...]) -> Plan:
    if kind == "figures":
        sizes: tuple[int | None, ...] = (10**3, 10**4, 10**5, 10**6, None)
        if not quick:
            sizes = (10**3, 5 * 10**3, 10**4, 5 * 10**4, 10**5, 5 * 10**5, 10**6, None)
        return Plan(
            kind="figures",
            scenarios=tuple(
                Scenario(noise, name) for name in SETTINGS for noise in ("gaussian", "laplace")
            ),
            sizes=sizes,
            replicates=5 if quick else 30,
            calibration_runs=3 if quick else 10,
            grid=TAU_GRID,
            budget=20_000,
            methods=methods,
        )
    if kind == "tables":
        rows = {scenario_of(row) for table in TABLES for row in table.rows}
        return Plan(
            kind="tables",
            scenarios=tuple(sorted(rows, key=lambda s: (s.n_latent, s.n_clients, s.coverage))),
            sizes=SAMPLE_SIZES,
            replicates=2 if quick else 20,
            calibration_runs=2 if quick else 10,
            grid=TAU_GRID[1::2] if quick else TAU_GRID,
            budget=2_000 if quick else 20_000,
            methods=methods,
        )
    raise InputError(f"there is nothing to reproduce named {kind!r}", "Choose figures or tables.")
