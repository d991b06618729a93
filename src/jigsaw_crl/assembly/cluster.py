"""What all clients say, heard by the workers of a Dask cluster.

Files are read by workers, each a part of the clients. What a part says is divided by blocks of
pairs (`hearing.Block`), and a worker that has a block adds up what all clients say about its pairs.
The sums of a pair run in the order of the clients, so every number is that of one machine. This
process keeps one number for each pair: its log-odds, from which it grows the order.

All that lies at a worker was made by tasks from the files, so that Dask can make it again when the
worker is lost. Every worker must see the files under the same paths, and have this package.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl._version import __version__
from jigsaw_crl.assembly.copies import Numbers, matched, numbers, one_in
from jigsaw_crl.assembly.hearing import Block, Spoken
from jigsaw_crl.assembly.linearity import Lines
from jigsaw_crl.assembly.panel import MOST_SAMPLED, Claims, Head, Panel, claims_of, panel_of
from jigsaw_crl.assembly.posterior.weights import Agreement
from jigsaw_crl.assembly.said import Codes, Given, Said, Single, View, Words
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.cluster import gathered
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.spool import Mapped
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.fragment.reading import FragmentFile, agreeing, fragment_paths

__all__ = ["OnCluster", "files_of", "read_on_cluster"]

# Pairs of labels in a part of the clients; cells of a block's rows, and clients' pairs among them
# if these are spread evenly. A worker then needs less than a gigabyte for a block.
PART, BLOCK, HELD = 1 << 20, 1 << 24, 1 << 25
# Parts and blocks for each worker, at least, if there are enough clients and labels.
EACH = 2


def files_of(fragments: Iterable[Any]) -> list[FragmentFile]:
    """The files and the files of folders; fragments in memory are refused."""
    given = list(fragments)
    if not all(isinstance(one, Path | FragmentFile) for one in given):
        raise InputError(
            "a cluster reads fragments from files",
            "Write them with save_fragment, and pass the folder.",
        )
    known = [one for one in given if isinstance(one, FragmentFile)]
    paths = fragment_paths(one for one in given if isinstance(one, Path))
    return known + [FragmentFile(path.absolute()) for path in paths]


def read_on_cluster(
    connection: Any, files: Sequence[FragmentFile]
) -> tuple[Panel, list[FragmentFile], list[Lines]]:
    """Read the files once: the panel, the files in its order, and what clients say about lines.

    Raises
    ------
    InputError
        Besides what is wrong with a file: orders of so few labels are sampled, or all clients state
        what they know, and both is done on one machine.
    """
    groups = _divided([1] * len(files), -(-len(files) // (4 * _workers(connection))))
    tasks = [connection.submit(_heads, files[i:j], __version__, pure=False) for i, j in groups]
    read = [one for part in gathered(connection, tasks) for one in part]
    known = [file for file, _, _ in read]
    heads = list(agreeing((file.path, head) for file, head, _ in read))
    ordered: list[FragmentFile] = []

    def arranged(order: list[int]) -> Mapped[Any]:
        ordered.extend(known[k] for k in order)
        return Mapped(FragmentFile.again, ordered)

    panel = panel_of(heads, arranged)
    if not panel.many or all(head.sure for head in heads):
        what = f"there are {pluralise(len(panel.labels), 'label')}"
        if panel.many:
            what = "all fragments come from exact moments"
        raise InputError(
            f"{what}, and a cluster assembles evidence on more than {MOST_SAMPLED:,} labels",
            "Leave the cluster out: one machine does this.",
        )
    return panel, ordered, [lines for _, _, lines in read]


class OnCluster:
    """All clients' evidence at the workers of a cluster: a `Hearing`.

    Parameters
    ----------
    connection : distributed.Client
    panel : Panel
    files : sequence of FragmentFile
        Those of the panel's fragments.
    """

    def __init__(self, connection: Any, panel: Panel, files: Sequence[FragmentFile]) -> None:
        self._connection, self._panel = connection, panel
        self.n_scales, self.missed = panel.n_scales, panel.missed
        self.stating = np.array([head.states for head in panel.heads])
        p = len(panel.labels)
        sizes = [len(head.labels) ** 2 for head in panel.heads]
        n = max(1, EACH * _workers(connection))
        parts = _divided(sizes, min(PART, -(-sum(sizes) // n)))
        most = min(BLOCK, -(-p * p // n), -(-p * p * HELD // sum(sizes)))
        self._rows = [range(i, j) for i, j in _divided([p] * p, most)]
        weighing = (size for size, head in zip(sizes, panel.heads, strict=True) if head.scales)
        self._one_in = one_in(sum(weighing))
        study = _Study(panel.position, panel.n_scales, panel.missed.excuse, self._one_in)
        about = self._submit(_same, study)
        self._heard = [self._submit(_hear, files[i:j], i, about) for i, j in parts]
        firsts = [i for i, _ in parts]
        pieces = [self._submit(_pieces, heard, self._rows) for heard in self._heard]
        self._blocks = [
            self._submit(_block, rows, p, firsts, [self._submit(getitem, x, b) for x in pieces])
            for b, rows in enumerate(self._rows)
        ]
        places = gathered(connection, [self._submit(_places, block) for block in self._blocks])
        a, d = (np.concatenate(part) for part in zip(*places, strict=True))
        self.spoken = Spoken(p, a, d)

    def _submit(self, function: Any, *given: Any) -> Any:
        return self._connection.submit(function, *given, pure=False)

    @cached_property
    def copies(self) -> tuple[tuple[int, ...], ...]:
        """Clients that sent the same evidence."""
        tasks = [self._submit(_numbers, heard) for heard in self._heard]
        said = [one for part in gathered(self._connection, tasks) for one in part]
        fragments, position = self._panel.fragments, self._panel.position
        return tuple(matched(said, self._one_in, lambda k: numbers(fragments[k], position)))

    def pooled(self, given: Given) -> list[Any]:
        """The tasks that add up each block."""
        about = self._submit(_same, given)
        return [self._submit(Block.pooled, block, self.n_scales, about) for block in self._blocks]

    def log_odds(self, total: list[Any], shares: list[float] | None = None) -> Single:
        missed = self._submit(_same, self.missed)
        pairs = zip(self._blocks, total, strict=True)
        tasks = [self._submit(Block.log_odds, *pair, shares, missed) for pair in pairs]
        return np.concatenate(gathered(self._connection, tasks))

    def agreements(
        self, total: list[Any], given: Given, cost: float, above: Words
    ) -> Iterator[tuple[int, Agreement]]:
        about = self._submit(_same, given)
        order = self._submit(_same, zlib.compress(above.tobytes(), 1))
        blocks = list(zip(self._blocks, total, strict=True))
        tasks = []
        for part, heard in enumerate(self._heard):
            rest = [self._submit(Block.rest, *block, part, about) for block in blocks]
            tasks.append(self._submit(_agreements, heard, self._rows, rest, about, cost, order))
        for found in gathered(self._connection, tasks):
            yield from found


def _workers(connection: Any) -> int:
    return max(1, len(connection.nthreads()))


def _divided(sizes: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Stretches of items that follow each other: as soon as one's size is `most`, it ends."""
    out, start, size = [], 0, 0
    for k, one in enumerate(sizes):
        size += one
        if size >= most or k == len(sizes) - 1:
            out.append((start, k + 1))
            start, size = k + 1, 0
    return out


# -- tasks: these run at workers ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Study:
    """What a worker must know to read a client's claims.

    Parameters
    ----------
    position : mapping of str to int
        Of the labels.
    n_scales : int
    excuse : array, shape (p,)
        See `Missed`.
    one_in : int
        One in how many numbers is compared to find copies.
    """

    position: Mapping[str, int]
    n_scales: int
    excuse: FloatArray
    one_in: int


Heard = tuple[View, list[Numbers]]


def _same(value: Any) -> Any:
    """What many tasks are given: sent once, and again if the worker that has it is lost."""
    return value


def _heads(files: Sequence[FragmentFile], asked: str) -> list[tuple[FragmentFile, Head, Lines]]:
    if asked != __version__:
        raise InputError(
            f"a worker of the cluster has version {__version__} of this package, not {asked}",
            "Install the same version on every worker.",
        )
    out = []
    for file in files:
        if not file.path.exists():
            raise InputError(
                "a worker of the cluster does not see this file",
                "Put the fragments where every worker finds them under the same path.",
                path=file.path,
            )
        known, fragment = file.first()
        out.append((known, Head.of(fragment), Lines.of(fragment)))
    return out


def _hear(files: Sequence[FragmentFile], first: int, study: _Study) -> Heard:
    position, said = dict(study.position), []

    def claims() -> Iterator[Claims]:
        for file in files:
            fragment = file.again()
            said.append(numbers(fragment, position, study.one_in))
            yield claims_of(fragment, position, study.n_scales, study.excuse)

    return View.of(first, claims(), study.n_scales), said


def _numbers(heard: Heard) -> list[Numbers]:
    return heard[1]


def _pieces(heard: Heard, blocks: Sequence[range]) -> list[tuple[Said, Codes]]:
    """What a part says about the pairs of each block."""
    view, _ = heard
    codes, where = _by_block(view, blocks)
    p = blocks[-1].stop
    out = []
    for b, rows in enumerate(blocks):
        chosen = where == b
        inside = codes[chosen] - rows.start * p
        kind = np.min_scalar_type(len(rows) * p)
        out.append((view.said.within(chosen), inside.astype(kind)))
    return out


def _by_block(view: View, blocks: Sequence[range]) -> tuple[Codes, npt.NDArray[np.int16]]:
    """Code and block of every pair."""
    p = blocks[-1].stop
    codes = view.codes(p)
    block_of = np.repeat(np.arange(len(blocks), dtype=np.int16), [len(rows) for rows in blocks])
    return codes, block_of[codes // p]


def _block(rows: range, p: int, firsts: list[int], pieces: Sequence[tuple[Said, Codes]]) -> Block:
    said, codes = zip(*pieces, strict=True)
    return Block.of(rows, p, firsts, said, codes)


def _places(block: Block) -> tuple[Any, Any]:
    return block.a, block.d


def _agreements(
    heard: Heard,
    blocks: Sequence[range],
    rest: Sequence[FloatArray],
    given: Given,
    cost: float,
    order: bytes,
) -> list[tuple[int, Agreement]]:
    """Agreement of the clients in a part, from what each block says of the others."""
    view, _ = heard
    p = blocks[-1].stop
    direct = np.empty(len(view.cells))
    direct[np.argsort(_by_block(view, blocks)[1], kind="stable")] = np.concatenate(rest)
    above = np.frombuffer(zlib.decompress(order), dtype=np.uint64).reshape(p, -1)
    return list(view.agreements(direct, given.rate, cost, above))
