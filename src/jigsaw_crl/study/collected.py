"""What the rows of a table have given: moments of each regime and batch, and what was noticed.

That of several parts of a table is merged, so that the parts may be read at different places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.study.bad_rows import BadRows, ignoring
from jigsaw_crl.study.columns import quoted
from jigsaw_crl.study.problems import Problems
from jigsaw_crl.study.row_order import RISING, RowOrder
from jigsaw_crl.study.source import Reading

__all__ = ["Collected"]

# Common names of the control, used only for suggestions.
USUAL_CONTROLS = (
    "baseline", "ctrl", "dmso", "mock", "nominal", "none", "non-targeting", "nontargeting",
    "normal", "obs", "observational", "reference", "untreated", "vehicle", "wildtype", "wt",
)  # fmt: skip


@dataclass(eq=False)
class Collected:
    """What was read of a table, or of a part of it.

    Parameters
    ----------
    reading : Reading
    features : tuple of str
        Columns of the table.
    order : RowOrder
    bad : BadRows
    cells : dict of (regime, batch) to Moments or None
        The batch is "" without a batch column; None if the rows were read for directions only.
    trimmed, groups : Counter
        Rows that were left out because they lie farthest out, and groups, by regime.
    """

    reading: Reading
    features: tuple[str, ...]
    order: RowOrder
    bad: BadRows
    cells: dict[tuple[str, str], Moments | None] = field(default_factory=dict)
    trimmed: Counter[str] = field(default_factory=Counter)
    groups: Counter[str] = field(default_factory=Counter)

    def merge(self, later: Self) -> Self:
        """Both, of two parts of the same table; the rows of `later` come after these."""
        cells = {**self.cells, **later.cells}
        for cell in self.cells.keys() & later.cells.keys():
            one, other = self.cells[cell], later.cells[cell]
            cells[cell] = None if one is None or other is None else one.merge(other)
        return replace(
            self,
            cells=cells,
            order=self.order.merge(later.order),
            bad=self.bad.merge(later.bad),
            trimmed=self.trimmed + later.trimmed,
            groups=self.groups + later.groups,
        )

    @property
    def regimes(self) -> list[str]:
        """Values of the regime column that have rows."""
        return list(dict.fromkeys(regime for regime, _ in self.cells))

    def gone(self) -> list[str]:
        """Regimes whose rows are all left out for their values."""
        return sorted(self.bad.regimes - set(self.regimes))

    def used(
        self, varying: BoolArray, ignored: Mapping[str, str]
    ) -> tuple[BoolArray, list[str], Mapping[str, str]]:
        """Which columns are features, names of constant ones, and which are ignored, and why."""
        rising = self.order.rising
        kept = varying & ~rising
        if not kept.any():
            raise self.reading.fail(
                "every column is constant", "Check the file: it has no variation."
            )
        constant = [f for f, keep in zip(self.features, varying, strict=True) if not keep]
        times = {f: RISING for f, is_time in zip(self.features, rising, strict=True) if is_time}
        return kept, constant, {**ignored, **times}

    def check_regimes(self) -> None:
        """Raise an `InputError` for what is wrong with the values of the regime column."""
        fail, naming, values = self.reading.fail, self.reading.naming, [*self.regimes, *self.gone()]
        if not values:
            raise fail("there are no rows", "Check that the file is complete.")
        problems = Problems()
        folded = naming.control.strip().casefold()
        twins = [v for v in values if v.strip().casefold() == folded and v != naming.control]
        if twins:
            what = f"differs from the control {naming.control!r} only by case or spaces"
            remedy = "Spell the control one way, or name it with --control."
            problems.note(fail(f"the regime {twins[0]!r} {what}", remedy, twins[0]))
        elif naming.control not in values:
            problems.note(
                fail(
                    f"there are no control rows: no regime is {naming.control!r} (found "
                    f"{quoted(values)})",
                    "Name the value of observational rows with --control. "
                    f"{did_you_mean(naming.control, values) or _usual_control(values)}".strip(),
                )
            )
        strangers = [v for v in naming.rename if v not in values]
        if strangers and naming.strict_rename:
            near = did_you_mean(strangers[0], values) or "Check the spelling."
            problems.note(fail(f"there is no regime {strangers[0]!r} to rename", near))
        problems.raise_all(path=self.reading.path, client=self.reading.client)

    def check_control(self) -> None:
        """Raise an `InputError` if no row of the control is left."""
        control = self.reading.naming.control
        if control not in self.regimes:
            raise self.reading.fail(
                "every control row has a missing value, so none is left "
                f"({self.bad.most(self.bad.incomplete_columns)})",
                f"Leave such columns out with {ignoring(self.reading.path)} instead.",
                control,
            )

    def moments(self) -> tuple[Moments, dict[str, list[Moments]]]:
        """Moments of the control and of every label."""
        self.check_control()
        naming, regimes = self.reading.naming, dict[str, dict[str, Moments]]()
        # Sorted, so that the order of rows in a file does not matter.
        for (regime, batch), moments in sorted(self.cells.items(), key=lambda item: item[0]):
            assert moments is not None
            regimes.setdefault(regime, {})[batch] = moments
        found = {
            regime: own[""] if naming.batch is None else Moments.of_batches(own)
            for regime, own in regimes.items()
        }
        control, labels = found.pop(naming.control), dict[str, list[Moments]]()
        for regime, whole in found.items():
            labels.setdefault(naming.rename.get(regime, regime), []).append(whole)
        return control, labels

    def left_out(self) -> list[Finding]:
        """Findings about the rows that were left out or grouped on request."""
        naming, found = self.reading.naming, []

        def each(counts: Counter[str]) -> str:
            ordered = sorted(counts.items(), key=lambda item: (item[0] != naming.control, item[0]))
            return few(f"{count:,} of {regime!r}" for regime, count in ordered if count)

        for check, what, counts in (
            ("incomplete-rows", "with missing values", self.bad.incomplete),
            ("trimmed-rows", "that lie farthest out", self.trimmed),
        ):
            if counts.total():
                rows = pluralise(counts.total(), "row")
                found.append((check, f"left out {rows} {what}: {each(counts)}"))
        if naming.group is not None:
            by = f"rows are taken in groups by {naming.group!r}: {each(self.groups)}"
            found.append(("grouped-rows", by))
        remedy = "Nothing to do: this was asked for."
        return [Finding(c, "info", what, remedy, client=self.reading.client) for c, what in found]


def _usual_control(values: Sequence[str]) -> str:
    """Suggest the only value that is a common name of a control."""
    usual = [v for v in values if v.strip().casefold() in USUAL_CONTROLS]
    return f"Is it {usual[0]!r}?" if len(usual) == 1 else ""
