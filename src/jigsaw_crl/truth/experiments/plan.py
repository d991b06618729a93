"""Plans of experiments: worlds, sample sizes, replicates, seeds, and what the paper prints.

A sample size of infinity is the population. Tables 1 to 3 are one run each and carry no standard
error. The figures are pictures without numbers; the text states E1 = 1 and E2 = E3 = 0 at n = ∞.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import product
from math import inf
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

from jigsaw_crl.base.errors import InputError, choose
from jigsaw_crl.baseline import TAU_GRID
from jigsaw_crl.truth.simulate import SETTINGS, World, random_world, setting

# The root of every seed; another number gives another set of replicates.
ROOT = 20_260_101
NOISES = ("gaussian", "laplace")
# With more latents per client than this, only the largest candidates for τ are tried. There the
# search at a small τ takes most of the time, and it scores worst: in a run with the whole grid the
# best candidate was among the three largest at every n.
LARGE_CLIENT = 13.0
LARGEST = 3


@dataclass(frozen=True)
class Scenario:
    """A family of worlds: one of the paper's settings, or random worlds with p, K and q."""

    noise: str
    setting: str | None = None
    n_latent: int = 0
    n_clients: int = 0
    coverage: float = 0.0

    @property
    def key(self) -> str:
        """Name of the scenario, and a part of its seeds."""
        if self.setting is not None:
            return f"{self.setting}-{self.noise}"
        return f"p{self.n_latent}-K{self.n_clients}-q{self.coverage:g}-{self.noise}"

    def world(self, seed: int) -> World:
        if self.setting is not None:
            return setting(self.setting, seed)
        return random_world(self.n_latent, self.n_clients, self.coverage, seed)


@cache
def printed() -> Any:
    """A Series of the printed numbers by scenario, metric and n; "seconds" is the runtime."""
    found = pd.read_csv(str(files("jigsaw_crl.truth") / "data" / "printed.csv"))
    worlds = found[["p", "K", "q"]].itertuples(index=False)
    found["scenario"] = [Scenario("gaussian", None, *world).key for world in worlds]
    stated = {
        (f"{name}-{noise}", metric, inf): float(metric == "e1")
        for name, noise, metric in product(SETTINGS, NOISES, ("e1", "e2", "e3"))
    }
    return pd.concat([found.set_index(["scenario", "metric", "n"])["printed"], pd.Series(stated)])


def tables() -> dict[str, tuple[Scenario, ...]]:
    """The worlds of Tables 1, 2 and 3, by what varies in them."""
    usual: dict[str, Any] = {"p": 20, "K": 15, "q": 0.6}
    varied = {"p": (10, 20, 30, 40), "K": (5, 10, 15, 20), "q": (0.5, 0.6, 0.7, 0.8)}
    return {
        name: tuple(Scenario("gaussian", None, *(usual | {name: x}).values()) for x in values)
        for name, values in varied.items()
    }


@dataclass(frozen=True)
class Task:
    """A data set, for the choice of τ ("calibration") or for scores ("evaluation")."""

    scenario: Scenario
    n: float
    phase: str
    replicate: int

    def seeds(self) -> tuple[int, int]:
        """Seeds of the world and of the sample.

        They do not depend on when or where the task runs, nor on the method: every method gets the
        same data. A replicate has the same world at every n, and different samples.
        """
        branch = int(self.phase == "calibration")
        base = [ROOT, crc32(self.scenario.key.encode()), branch, self.replicate]
        of_world = np.random.SeedSequence([*base, 0])
        of_sample = np.random.SeedSequence([*base, 1, 0 if self.n == inf else int(self.n)])
        world, sample = (int(s.generate_state(1, np.uint64)[0]) for s in (of_world, of_sample))
        return world, sample


@dataclass(frozen=True)
class Plan:
    """An experiment: everything that its numbers depend on.

    Each scenario and sample size has `replicates` evaluations, and `calibration_runs` extra runs to
    choose τ from the ascending grid. The paper's search may try `budget` label sets per client.
    """

    kind: str
    scenarios: tuple[Scenario, ...]
    sizes: tuple[float, ...]
    replicates: int
    calibration_runs: int
    grid: tuple[float, ...]
    budget: int
    methods: tuple[str, ...]

    def candidates(self, scenario: Scenario) -> tuple[float, ...]:
        """Candidates for τ: the grid, or its largest values where clients are large."""
        large = scenario.n_latent * scenario.coverage > LARGE_CLIENT
        return self.grid[-LARGEST:] if large else self.grid

    def tasks(self, phase: str) -> list[Task]:
        """All tasks of a phase; exact moments need no τ."""
        sizes = self.sizes if phase == "evaluation" else [n for n in self.sizes if n < inf]
        runs = self.replicates if phase == "evaluation" else self.calibration_runs
        places = [(scenario, n) for scenario in self.scenarios for n in sizes]
        return [Task(*place, phase, r) for r in range(runs) for place in places]


def plan_of(
    kind: str,
    *,
    quick: bool,
    methods: tuple[str, ...] = ("paper", "null-cone"),
    only: Sequence[str] = (),
) -> Plan:
    """The full experiment, or with `quick` one that takes minutes.

    `only` names parts to run. Of the figures: a setting ("A") or a scenario ("A-laplace"). Of the
    tables: what varies ("p", "K", "q") or a family of worlds ("p20-K15-q0.6").

    Examples
    --------
    >>> from jigsaw_crl.truth.experiments.plan import plan_of
    >>> plan = plan_of("figures", quick=True)
    >>> [s.key for s in plan.scenarios][:2], plan.sizes
    (['A-gaussian', 'A-laplace'], (1000, 10000, 100000, 1000000, inf))
    >>> [s.key for s in plan_of("tables", quick=True, only=["K"]).scenarios][:2]
    ['p20-K5-q0.6-gaussian', 'p20-K10-q0.6-gaussian']
    """
    choose(kind, dict.fromkeys(("figures", "tables")), "experiment")
    if kind == "figures":
        sizes = (10**3, 5 * 10**3, 10**4, 5 * 10**4, 10**5, 5 * 10**5, 10**6, inf)
        plan = Plan(
            kind=kind,
            scenarios=tuple(Scenario(noise, name) for name in SETTINGS for noise in NOISES),
            sizes=(*sizes[:-1:2], inf) if quick else sizes,
            replicates=5 if quick else 30,
            calibration_runs=3 if quick else 10,
            grid=TAU_GRID,
            budget=20_000,
            methods=methods,
        )
    else:
        worlds = {scenario for rows in tables().values() for scenario in rows}
        plan = Plan(
            kind=kind,
            scenarios=tuple(sorted(worlds, key=lambda s: (s.n_latent, s.n_clients, s.coverage))),
            sizes=(10**4, 5 * 10**4, 10**5, 5 * 10**5, 10**6, inf),
            replicates=2 if quick else 20,
            calibration_runs=2 if quick else 10,
            grid=TAU_GRID[1::2] if quick else TAU_GRID,
            budget=2_000 if quick else 20_000,
            methods=methods,
        )
    wanted = [scenario for name in only for scenario in _part(plan, name)]
    chosen = tuple(s for s in plan.scenarios if s in wanted)
    return replace(plan, scenarios=chosen) if only else plan


def _part(plan: Plan, name: str) -> list[Scenario]:
    """The scenarios of a part of a plan, by its name."""
    if plan.kind == "tables" and name in tables():
        return list(tables()[name])
    found = [s for s in plan.scenarios if name in (s.setting, s.key, s.key.rpartition("-")[0])]
    if not found:
        keys = ", ".join(s.key for s in plan.scenarios)
        raise InputError(f"there is no part of the {plan.kind} {name!r}", f"It has {keys}.")
    return found
