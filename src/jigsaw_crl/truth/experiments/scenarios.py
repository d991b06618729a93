"""Plans of experiments: worlds, sample sizes, replicates, and the seed of each task."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import sha256
from json import dumps
from typing import Literal
from zlib import crc32

import numpy as np

from jigsaw_crl._version import __version__
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.baseline import TAU_GRID
from jigsaw_crl.truth.experiments.published import SAMPLE_SIZES, TABLES
from jigsaw_crl.truth.simulate import SETTINGS, World, random_world, setting

__all__ = ["Kind", "Phase", "Plan", "Scenario", "Task", "plan_of"]

Kind = Literal["figures", "tables"]
Phase = Literal["calibration", "evaluation"]

# The root of every seed; another number gives another set of replicates.
ROOT = 20_260_101
_BRANCH = {"evaluation": 0, "calibration": 1}


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
    """

    scenario: Scenario
    n: int | None
    phase: Phase
    replicate: int

    @property
    def key(self) -> str:
        size = "inf" if self.n is None else str(self.n)
        return f"{self.scenario.key}-n{size}-{self.phase[0]}{self.replicate:04d}"

    def seeds(self) -> tuple[int, int]:
        """Seeds of the world and of the sample.

        They depend on the task alone, not on when or where it runs. A replicate has the same world
        at every n, and different samples.
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
        Candidates for τ.
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

    def calibrations(self) -> list[Task]:
        """Runs for the choice of τ; only the paper's method at finite n needs one."""
        if "paper" not in self.methods:
            return []
        return [
            Task(scenario, n, "calibration", r)
            for r in range(self.calibration_runs)
            for scenario in self.scenarios
            for n in self.sizes
            if n is not None
        ]

    def evaluations(self) -> list[Task]:
        return [
            Task(scenario, n, "evaluation", r)
            for r in range(self.replicates)
            for scenario in self.scenarios
            for n in self.sizes
        ]

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that changes a replicate's numbers.

        Results with another fingerprint are not used. More replicates, scenarios or sizes do not
        change it.
        """
        fields = asdict(replace(self, scenarios=(), sizes=(), replicates=0))
        return sha256(dumps([__version__, ROOT, fields], sort_keys=True).encode()).hexdigest()[:12]


def plan_of(kind: str, *, quick: bool, methods: tuple[str, ...] = ("paper", "null-cone")) -> Plan:
    """The full experiment, or with `quick` one that takes minutes.

    Examples
    --------
    >>> from jigsaw_crl.truth.experiments.scenarios import plan_of
    >>> plan = plan_of("figures", quick=True)
    >>> [s.key for s in plan.scenarios][:2], plan.sizes
    (['A-gaussian', 'A-laplace'], (1000, 10000, 100000, 1000000, None))
    """
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
        rows = {(r.n_latent, r.n_clients, r.coverage) for table in TABLES for r in table.rows}
        return Plan(
            kind="tables",
            scenarios=tuple(Scenario("gaussian", None, p, K, q) for p, K, q in sorted(rows)),
            sizes=SAMPLE_SIZES,
            replicates=2 if quick else 20,
            calibration_runs=2 if quick else 10,
            grid=TAU_GRID[1::2] if quick else TAU_GRID,
            budget=2_000 if quick else 20_000,
            methods=methods,
        )
    raise InputError(f"there is nothing to reproduce named {kind!r}", "Choose figures or tables.")
