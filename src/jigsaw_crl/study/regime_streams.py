"""Rows of a table, chunk by chunk, to streams of moments: one per value of the regime column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.moments.accumulator import Accumulator
from jigsaw_crl.study.bad_rows import BadRows
from jigsaw_crl.study.collected import Collected
from jigsaw_crl.study.row_order import RowOrder
from jigsaw_crl.study.source import Chunk, Reading, is_sparse
from jigsaw_crl.study.wide import Along, FirstRead

__all__ = ["RegimeStreams"]

# A column with more values than a fragment may have labels is probably not the regime column.
MOST_REGIMES = 5_000
# Each regime has its own sums in each batch, of up to a few MB.
MOST_CELLS = 20_000
# The part of each group is kept, some hundred bytes.
MOST_GROUPS = 500_000
# Incomplete rows are held in memory, 8 bytes a value.
MOST_HELD = 200_000_000


class RegimeStreams:
    """One stream of moments per value of the regime column, or of the regime and batch columns."""

    def __init__(
        self,
        features: tuple[str, ...],
        reading: Reading,
        *,
        read: FirstRead | None = None,
        along: Along | None = None,
    ) -> None:
        self.features, self.reading, self.naming = features, reading, reading.naming
        self.fail, self.read, self.along = reading.fail, read, along
        # By regime, then by batch; the batch is "" without a batch column.
        self.streams: dict[str, dict[str, Accumulator]] = {}
        self.n_cells = self.n_groups = 0
        self.width = len(features) if along is None else len(along.own.features)
        self.order = RowOrder(self.width)
        self.bad = BadRows(features, reading)

    def add(self, chunk: Chunk) -> None:
        chunk = self.bad.without(chunk)
        if self.along is not None:
            chunk = self.along.rows_of(chunk)
        codes, rows = chunk.codes, chunk.rows
        if not len(codes):
            return
        batches: Sequence[str] = ("",)
        if chunk.batches is not None:
            batches, own = chunk.batches
            codes = codes.astype(np.int64) * len(batches) + own
        if self.naming.missing == "em" and self.bad.n_rows * len(self.features) > MOST_HELD:
            raise self.fail(
                f"the table has more than {MOST_HELD:,} values, too many to be held for EM",
                "Leave incomplete rows out with --drop-missing, or read fewer rows.",
            )
        names, groups = ((), None) if chunk.groups is None else chunk.groups
        if groups is not None and not all(map(str.strip, names)):
            raise self.fail("a row has an empty group", "Give every row its group.")
        lowest, highest = int(codes.min()), int(codes.max())

        def take(code: int, part: slice) -> None:
            i, j = divmod(code, len(batches))
            if not is_sparse(rows):
                self.order.add((chunk.regimes[i], batches[j]), rows[part])
            stream = self._stream(chunk.regimes[i], batches[j])
            before = stream.groups or 0
            stream.add(rows[part], None if groups is None else (names, groups[part]))
            self.n_groups += (stream.groups or 0) - before
            if self.n_groups > MOST_GROUPS:
                raise self.fail(
                    f"there are more than {MOST_GROUPS:,} groups",
                    "Name the column that holds the group of each row with --group: many rows "
                    "share one.",
                )

        if lowest == highest:
            take(lowest, slice(None))
        else:
            # numpy sorts integers of 16 bits or less by counting, which is fast.
            narrow = codes.astype(np.min_scalar_type(highest))
            order = np.argsort(narrow, kind="stable")
            rows, groups = rows[order], None if groups is None else groups[order]
            sizes = np.bincount(narrow)
            ends = np.cumsum(sizes)
            for code in np.flatnonzero(sizes).tolist():
                take(code, slice(ends[code] - sizes[code], ends[code]))

    def _stream(self, regime: str, batch: str) -> Accumulator:
        streams = self.streams.get(regime, {})
        if batch in streams:
            return streams[batch]
        if not regime.strip():
            raise self.fail("a row has an empty regime", "Give every row its regime.")
        if self.naming.batch is not None and not batch.strip():
            raise self.fail("a row has an empty batch", "Give every row its batch.", regime)
        if len(self.streams) >= MOST_REGIMES and regime not in self.streams:
            raise self.fail(
                f"the regime column has more than {MOST_REGIMES} different values",
                "Name the right column with --regime, or merge labels.",
            )
        if self.n_cells >= MOST_CELLS:
            raise self.fail(
                f"there are more than {MOST_CELLS} combinations of regime and batch",
                "Name the right column with --batch, or merge batches.",
            )
        if self.read is None:
            is_control = regime == self.naming.control
            stream = Accumulator(self.width, self.naming.asked, control=is_control)
        else:
            stream = self.read.stream(regime)
        self.streams.setdefault(regime, {})[batch] = stream
        self.n_cells += 1
        return stream

    def collected(self) -> Collected:
        """What the rows have given, with the moments of each regime and batch."""
        others = {regime for regime in self.streams if regime != self.naming.control}
        rank = self.reading.n_latent or len({self.naming.rename.get(x, x) for x in others})
        found = Collected(self.reading, self.features, self.order, self.bad)
        for regime, streams in self.streams.items():
            for batch, stream in streams.items():
                moments = None
                if self.read is None:
                    try:
                        moments = stream.moments(rank)
                    except InputError as error:
                        client, path = self.reading.client, self.reading.path
                        raise error.located(client=client, regime=regime, path=path) from None
                found.cells[regime, batch] = moments
            found.trimmed[regime] = sum(x.left_out for x in streams.values())
            found.groups[regime] = sum(x.groups or 0 for x in streams.values())
        return found
