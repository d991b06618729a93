"""The result of a recovery."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from jigsaw_crl.assembly.design import Proposal, next_client
from jigsaw_crl.assembly.graph import (
    direct_graph,
    effects_frame,
    effects_of,
    shift_frame,
)
from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.assembly.verdict import tally
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.frozen import FrozenMapping
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.evidence.effects import AT_DOSE, INTERVAL, TOTAL
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.result.folder import write_folder
from jigsaw_crl.result.summary import LeftOut, left_out, summarise

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from jigsaw_crl.client.client import Client

# Larger orders get a proposal only when its size is asked for: the search takes seconds.
MOST_LABELS_FOR_PROPOSAL = 60


@dataclass(frozen=True, eq=False)
class Result:
    """The order, the fragments it rests on, and what is known about their origin.

    Parameters
    ----------
    fragments : mapping of str to Fragment
        By client name. Their blocks, districts and bases may be settled by the order; all else is
        what the client sent, which `order.fragments` has.
    order : GlobalOrder
        The assembled order.
    diagnostics : tuple of Finding
        Observations about the data.
    provenance : mapping
        Versions, seed, sample sizes, files and their hashes, as plain JSON values.
    proposal : Proposal or None
        Which labels the next client should access; None until `with_proposal` has searched.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> result = jc.recover(world.clients())
    >>> result.order.pairs() == world.order.pairs()
    True
    """

    fragments: Mapping[str, Fragment]
    order: GlobalOrder
    diagnostics: tuple[Finding, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    proposal: Proposal | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "fragments", FrozenMapping(self.fragments))
        object.__setattr__(self, "diagnostics", tuple(self.diagnostics))
        object.__setattr__(self, "provenance", FrozenMapping(self.provenance))
        sent, own = self.order.fragments, self.fragments.values()
        if {f.client: f.labels for f in sent} != {f.client: f.labels for f in own}:
            raise InputError(
                "the fragments are not those that the order was assembled from",
                "Pass order.fragments, by client name.",
            )

    @property
    def summary(self) -> str:
        """How many clients can say something about ancestors, and why the others cannot.

        Examples
        --------
        >>> import jigsaw_crl as jc
        >>> jc.recover(jc.simulate.setting("A", 0).clients(5_000)).summary
        'All 5 clients can say something about ancestors.'
        """
        counts = self.order.counts
        decided = counts["ancestor"] + counts["not ancestor"]
        undecided = 0 if decided else counts["undetermined"]
        return summarise(self.fragments, self.order.use.withheld, self.left_out, undecided)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Labels of clients, and whole clients, that were not used, and why."""
        return left_out(self.diagnostics, self.fragments)

    @property
    def lost_labels(self) -> Mapping[str, tuple[LeftOut, ...]]:
        """Labels missing from the order because they were left out of every client, and why."""
        rows = self.provenance.get("n_samples")
        found: dict[str, list[LeftOut]] = {}
        for part in self.left_out:
            # Of a whole client: all its regimes but the first, which is the control.
            own = [] if rows is None else list(rows.get(part.client) or ())[1:]
            for name in own if part.label is None else [part.label]:
                if name not in self.order.labels:
                    found.setdefault(name, []).append(part)
        return {name: tuple(found[name]) for name in sorted(found)}

    @cached_property
    def effects(self) -> pd.DataFrame:
        """Total effects in standard deviations of the control; empty without hard interventions.

        One row for every ordered pair that hard interventions reveal. Columns: cause, effect, total
        (0 where the verdict is "not ancestor"), standard_error, low and high (95 % interval),
        sites, heterogeneity_p (the probability that sites differ so much by chance), verdict, kind;
        in_units and unit where both labels have a sensor with a unit (`Client.with_sensors`). In a
        system that is not linear the kind is "average effect at this dose": what the intervention
        did as it was applied, in standard deviations of the effect.

        Examples
        --------
        >>> import jigsaw_crl as jc
        >>> world = jc.simulate.random_world(5, 3, 0.8, seed=1, intervention="hard")
        >>> result = jc.recover(world.clients(), interventions="hard")
        >>> sorted(result.effects.columns)[:4]
        ['cause', 'effect', 'heterogeneity_p', 'high']
        """
        import pandas as pd  # here for start-up time

        tables = [effects_frame(self.order, *about) for about in self.order.known_effects]
        effects = pd.concat(tables, ignore_index=True) if tables else effects_frame(self.order)
        own = self.loadings
        tied = own[(own["up"]) & (own["unit"] != "") & (own["per"] == "sd")]
        tied = tied.drop_duplicates("label").set_index("label")
        if tied.empty or effects.empty:
            return effects
        scale, unit = tied["response"].abs(), tied["unit"]
        ratio = effects["effect"].map(scale) / effects["cause"].map(scale)
        told = ratio.notna() & (effects["kind"] == TOTAL)
        units = effects["effect"].map(unit) + " per " + effects["cause"].map(unit)
        return effects.assign(
            in_units=(effects["total"] * ratio).where(told), unit=units.where(told, "")
        )

    @cached_property
    def loadings(self) -> pd.DataFrame:
        """Which sensors carry which label, of the sites whose rows were read here.

        Columns: site, and those of `Fragment.loadings`; labels are raised in the direction in which
        `effects` count them as growing. Empty in a result that was assembled or loaded: loadings
        stay where the columns are.
        """
        import pandas as pd  # here for start-up time

        tables, effects = [], self.order.effects
        for k, site in enumerate(f.client for f in self.order.fragments):
            own = self.fragments[site].loadings
            if own is None or own.empty:
                continue
            if effects is not None:
                turned = dict(zip(effects.labels, effects.direction[k].tolist(), strict=True))
                own = own.assign(response=own["response"] * own["label"].map(turned))
            tables.append(own.assign(site=site))
        columns = ["site", "label", "sensor", "response", "unit", "per", "share", "up"]
        if not tables:
            return pd.DataFrame(columns=columns)
        return pd.concat(tables, ignore_index=True)[columns]

    @cached_property
    def applied_effects(self) -> pd.DataFrame:
        """What each intervention did, as it was applied, in standard deviations of the effect.

        Columns as in `effects`. It needs a hard intervention on the affected label and any
        intervention that moved the mean of the cause; no unit of the cause is needed.
        """
        applied = self.order.applied_effects
        if applied is None:
            return self.effects.head(0)
        return effects_frame(self.order, AT_DOSE, applied, applied.known)

    @cached_property
    def graph(self) -> nx.DiGraph[str]:
        """Direct effects: edges from cause to effect with weight, standard_error and verdict.

        The verdict is "direct" or "undetermined"; pairs that are not direct, and pairs that no
        site measured, have no edge. "Direct" is said only if paths through other labels cannot
        explain all of what was measured. `through` names labels through which a part may pass,
        because no site measured the pairs between; standard_error and the 95 % interval (low, high)
        allow for it.
        """
        return direct_graph(self.order)

    def site_effects(self, cause: str, effect: str) -> pd.DataFrame:
        """What every site says about one effect.

        Columns: site, total, standard_error, low, high, set_aside.
        """
        import pandas as pd  # here for start-up time

        effects, (a, d) = effects_of(self.order), self.order.indices(cause, effect)
        value, error = effects.by_site[:, a, d], effects.site_error[:, a, d]
        frame = pd.DataFrame(
            {
                "site": effects.clients,
                "total": value,
                "standard_error": error,
                "low": value - INTERVAL * error,
                "high": value + INTERVAL * error,
                "set_aside": effects.set_aside[:, a, d],
            }
        )
        return frame[frame["total"].notna()].reset_index(drop=True)

    def predict_shift(self, shifts: Mapping[str, float]) -> pd.DataFrame:
        """Expected change of every label, in its standard deviations, when some are pushed.

        Columns: label, change, low, high; NaN where an effect is undetermined. A "not ancestor"
        changes by 0. Its interval is NaN where no client measured the pair, unless no effect at all
        is possible: the other way round is an ancestor, you said so, or moments are exact.

        Parameters
        ----------
        shifts : mapping of str to float
            How far each label is moved, in its own standard deviations. Everything else goes on
            as in the control, and the changes add up. In a system that is not linear: one label,
            at a dose that was applied.

        Raises
        ------
        InputError
            No hard interventions, an unknown label, or no effect of a label is known. Where the
            system is not linear: an amount at which the label was not seen, or several labels.
        """
        return shift_frame(self.order, shifts)

    def with_proposal(self, size: int | None = None, *, seed: int = 0) -> Result:
        """The result with a proposal for the next client, which reports then show.

        The search takes a while; `jigsaw recover --out` and `jigsaw assemble --out` run it.

        `size` is the number of labels that the client can access. By default as many as pay (see
        `next_client`), and no search for orders of more than 60 labels or from Algorithm 3.
        """
        many = len(self.order.labels) > MOST_LABELS_FOR_PROPOSAL
        if size is None and (many or self.order.mode == "paper"):
            return self
        return replace(self, proposal=next_client(self.order, size, seed=seed))

    def add(self, *sites: Fragment | Client, replace: bool = False, **options: Any) -> Result:
        """The result with one or more further sites, assembled with those it has.

        Probabilities and verdicts are those of a recovery of all sites together. Blocks and bases
        of the earlier sites stay as they are. Findings about all sites together are made again;
        the proposal for the next client is dropped.

        Parameters
        ----------
        *sites : Fragment or Client
            A client is checked and recovered first.
        replace : bool
            These are corrected data of sites that the result has: they take the place of the
            earlier ones. Blocks and bases of the other sites are then those that they sent.
        **options
            Of a client's recovery, as for `recover`: `confounding`, `rank_one`, `interventions`,
            `tau`.

        Raises
        ------
        InputError
            A site of that name is in the result already (with `replace`: is not in it), or the
            checks refuse the client.

        Examples
        --------
        >>> import jigsaw_crl as jc
        >>> first, *others = jc.simulate.setting("A", 0).clients()
        >>> result = jc.recover(others).add(first)
        >>> result.order.pairs() == jc.recover([first, *others]).order.pairs()
        True
        """
        grown: Result = resolve_name("jigsaw_crl.adding:add_sites")(
            self, *sites, replace=replace, **options
        )
        return grown

    def remove(self, *sites: str) -> Result:
        """The result without some of its sites, assembled from what the others sent.

        Examples
        --------
        >>> import jigsaw_crl as jc
        >>> first, *others = jc.simulate.setting("A", 0).clients()
        >>> result = jc.recover([first, *others]).remove(first.name)
        >>> result.order.pairs() == jc.recover(others).order.pairs()
        True
        """
        smaller: Result = resolve_name("jigsaw_crl.adding:remove_sites")(self, *sites)
        return smaller

    def to_document(self) -> dict[str, Any]:
        """The result as plain JSON values, without the latent bases."""
        # Imported here for start-up time: it loads pydantic.
        from jigsaw_crl.result.document import result_document

        return result_document(self)

    def save(self, folder: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the result folder; an older result in it is replaced as a whole.

        Other files in the folder are left alone. A file of the user's with one of the names of a
        result's files is overwritten with ``force=True`` only.
        """
        return write_folder(self, Path(folder), force=force)

    def report(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the one-file HTML report; with `force` also over a file that is no report."""
        target: Path = resolve_name("jigsaw_crl.report.writing:write_report")(
            self, path, force=force
        )
        return target

    def _repr_html_(self) -> str:
        return str(resolve_name("jigsaw_crl.report.writing:result_html")(self))

    def __repr__(self) -> str:
        return (
            f"Result({pluralise(len(self.fragments), 'client')}, "
            f"{pluralise(len(self.order.labels), 'label')}: {tally(self.order.counts)}; "
            f"{pluralise(len(self.diagnostics), 'finding')})"
        )
