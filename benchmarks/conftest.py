"""How a comparison is measured: options, pinned BLAS threads, ours and the peer in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  # a BLAS must be loaded to be pinned
from numpy.typing import ArrayLike
from pytest_benchmark.fixture import BenchmarkFixture
from threadpoolctl import threadpool_info, threadpool_limits

Work = Callable[[], object]


def pytest_addoption(parser: pytest.Parser) -> None:
    def numbers(text: str) -> list[int]:
        return [int(x) for x in text.split(",")]

    group = parser.getgroup("performance")
    for name, kind, default, what in (
        ("sizes", numbers, "25,50,100,200,400", "labels of the one client"),
        ("threads", numbers, "1,2", "BLAS threads"),
        ("rows", int, "100000", "rows a regime of raw samples"),
        ("clients", int, "15", "clients with raw samples"),
        ("labels", int, "1000", "labels, and clients, of the assembly"),
    ):
        group.addoption(f"--{name}", type=kind, default=default, help=f"{what} ({default})")


@pytest.hookimpl(trylast=True)  # the threads vary first, then the size
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "size" in metafunc.fixturenames:
        sizes = metafunc.config.getoption("sizes")
        metafunc.parametrize("size", sizes, ids="p{}".format)
    counts = metafunc.config.getoption("threads")
    metafunc.parametrize("threads", counts, ids="threads{}".format, indirect=True)


@pytest.fixture(autouse=True)
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """BLAS pinned here and in the processes started from here."""
    for name in ("OPENBLAS", "OMP", "MKL"):
        monkeypatch.setenv(f"{name}_NUM_THREADS", str(request.param))
    with threadpool_limits(request.param):
        yield request.param


@pytest.fixture
def in_turns(benchmark: BenchmarkFixture) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Minimum seconds of ours and of the peer, for each of `count` pairs (ours, peer).

    The peer runs before every round of ours, by the same clock, so that a busy machine slows both.
    Pairs may come from a generator, so that only one pair's data are in memory.
    """

    def run(
        pairs: Iterable[tuple[Work, Work]], rounds: int, count: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        turns = (pair for pair in pairs for _ in range(rounds))
        peer_times: list[float] = []

        def peer_first() -> tuple[tuple[Work], dict[str, object]]:
            ours, peer = next(turns)
            start = benchmark._timer()
            peer()
            peer_times.append(benchmark._timer() - start)
            return (ours,), {}

        benchmark.pedantic(lambda ours: ours(), setup=peer_first, rounds=rounds * count)
        benchmark.extra_info["peer_times"] = peer_times
        assert benchmark.stats is not None  # `pedantic` has run
        both = np.reshape([benchmark.stats.stats.data, peer_times], (2, count, rounds))
        ours, peer = both.min(axis=2)
        return ours, peer

    return run


@pytest.fixture
def record(benchmark: BenchmarkFixture, threads: int) -> Callable[..., None]:
    """Write one row of the table; `limit` is what the ratio should not exceed."""

    def write(
        what: str, case: str, ours: ArrayLike, peer: ArrayLike, limit: float, **more: object
    ) -> None:
        sums = {"ours": float(np.sum(ours)), "peer": float(np.sum(peer))}
        row = {"what": what, "case": case, "threads": threads, "limit": limit, **more, **sums}
        benchmark.extra_info.update(row, ratio=sums["ours"] / sums["peer"])

    return write


def pytest_benchmark_update_machine_info(
    config: pytest.Config, machine_info: dict[str, object]
) -> None:
    machine_info["clock"] = str(config.getoption("benchmark_timer"))
    machine_info["numpy"] = np.__version__
    machine_info["blas"] = sorted(
        {
            f"{lib['internal_api']} {lib['version']} ({lib.get('architecture')})"
            for lib in threadpool_info()
            if lib["user_api"] == "blas"
        }
    )
