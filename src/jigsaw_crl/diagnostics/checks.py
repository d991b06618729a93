"""All checks of a client, or of a study, in one report.

The checks measure against the control rows alone. What errors exclude, and what the null-cone
method's own reading says of it, is decided in `jigsaw_crl.usable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.labels import misspelt
from jigsaw_crl.base.terminal import counted
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.noise import NoiseModel
from jigsaw_crl.diagnostics import rows, sensors
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.diagnostics.regimes import SAME_ROWS, check_regimes, same_rows

# A reason that was found, and what it looks like, which is not told beside it.
EXPLAINS = {
    "error: drifting-gains": (
        "error: several-targets",
        "info: light-tails",
        "info: uneven-noise",
        "warning: uneven-noise",
    ),
    "error: not-linear": ("error: several-targets",),
    "error: drifting-control": ("error: several-targets",),
    "warning: clipped": ("warning: drifting-control",),
    "error: no-signal": ("error: sensor-noise",),
}
# The checks of several clients whose findings a further client can change.
ACROSS_CLIENTS = frozenset({"disconnected", "unseen-pairs", "lonely-labels"})


@dataclass(frozen=True, eq=False)
class ClientReport:
    """The findings and measurements of the checks of one client.

    Parameters
    ----------
    client : str
    findings : tuple of Finding
    spectrum : NoiseModel
        Leading space, noise floor, gap.
    strength : mapping of str to float
        For each label, how far its regime is from the control: 1 is the edge of chance.
    n_samples : mapping of str to int, or None
    """

    client: str
    findings: tuple[Finding, ...]
    spectrum: NoiseModel
    strength: Mapping[str, float]
    n_samples: Mapping[str, int] | None

    def to_document(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        s = self.spectrum
        return {
            "client": self.client,
            "n_latent": s.basis.shape[1],
            "n_features": len(s.eigenvalues),
            "eigenvalues": s.eigenvalues.tolist(),
            "noise_floor": s.noise_floor if s.visible else None,
            "noise_share": s.noise_share if s.visible and np.isfinite(s.noise_share) else None,
            "gap": s.gap if np.isfinite(s.gap) else None,
            "strength": dict(self.strength),
            "n_samples": None if self.n_samples is None else dict(self.n_samples),
        }

    def to_row(self) -> tuple[str, ...]:
        """The report as a row of the terminal's table."""
        s = self.spectrum
        label, strength = min(self.strength.items(), key=lambda item: item[1])
        weakest = f"{label} ({strength:.3g})" if self.n_samples is not None else label
        rows = "exact" if self.n_samples is None else str(sum(self.n_samples.values()))
        floor = f"{s.noise_floor:.3g}" if s.visible else "not visible"
        gap = f"{s.gap:.3g}" if np.isfinite(s.gap) else "–"
        sizes = map(str, reversed(s.basis.shape))
        return (self.client, *sizes, floor, gap, weakest, rows)


@dataclass(frozen=True, eq=False)
class StudyReport:
    """Reports of all clients, and findings about the study as a whole.

    Parameters
    ----------
    clients : tuple of ClientReport
    reading : tuple of Finding
        From reading the files.
    across : tuple of Finding
        About several clients together: copies, and which labels they share.
    """

    clients: tuple[ClientReport, ...]
    reading: tuple[Finding, ...] = ()
    across: tuple[Finding, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every finding about the study."""
        own = (f for report in self.clients for f in report.findings)
        return (*self.reading, *own, *self.across)


def check_client(client: Client) -> ClientReport:
    """Run every check that one client's moments allow.

    Examples
    --------
    >>> import numpy as np
    >>> import jigsaw_crl as jc
    >>> from jigsaw_crl.diagnostics import check_client
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(2, 400, 3))
    >>> client = jc.Client.from_samples(
    ...     "lab-1", observational=rows[0], interventions={"pump": rows[1]}
    ... )
    >>> [f.check for f in check_client(client).findings if f.severity == "error"]
    ['no-signal']
    """
    found, strength = check_regimes(client)
    for check in (*sensors.CHECKS, *rows.CHECKS):
        found += check(client)
    seen, several = set(map(_kind, found)), sum(f.check == "several-targets" for f in found)
    bends = "info: light-tails" in seen and "error: drifting-gains" not in seen
    # Hard interventions do not need a linear system (T9): recovery decides about them.
    if bends and not client.hard and 2 * several > len(client.labels):
        found.append(saturated(several, len(client.labels)))
        seen.add("error: not-linear")
    hidden = {kind for reason in seen for kind in EXPLAINS.get(reason, ())}
    if "error: sensor-noise" in seen:
        # Is the noise above the signal also without regimes that other errors exclude?
        spoilt = {f.regime for f in found if f.severity == "error" and f.regime is not None}
        left = client.without(spoilt)
        noise = found if left is client else sensors.check_sensors(left) if left else ()
        hidden |= {"error: sensor-noise"} - set(map(_kind, noise))
    told = (f for f in found if _kind(f) not in hidden)
    findings = tuple(replace(f, client=client.name) for f in told)
    return ClientReport(client.name, findings, client.white.space, strength, client.n_samples)


def _kind(found: Finding) -> str:
    return f"{found.severity}: {found.check}"


def saturated(unclear: int, labels: int) -> Finding:
    """Most regimes of a client with light tails move more directions than one target explains."""
    share, regimes = round(unclear / labels, 2), pluralise(labels, "regime")
    return finding("not-linear/client", share, 0.5, unclear=unclear, regimes=regimes)


def check_study(clients: Iterable[Client]) -> StudyReport:
    """Run every check of every client, and those of all clients together.

    The findings of a `Study` from reading its files come first.
    """
    own = tuple(clients)
    return StudyReport(
        clients=tuple(map(check_client, counted(own, len(own)))),
        reading=tuple(getattr(clients, "findings", ())),
        across=(*check_copies(own), *check_coverage({c.name: c.labels for c in own})),
    )


# -- several clients: the same rows, and labels in common ------------------------------------------


def check_coverage(labels: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    """Findings about which labels which clients share."""
    share = nx.Graph((("client", c), ("label", x)) for c, own in labels.items() for x in own)
    parts = nx.connected_components(share)
    groups = sorted(sorted(name for kind, name in part if kind == "client") for part in parts)
    if len(groups) > 1:
        shown = "; ".join(few(group, 4) for group in groups[:4])
        yield finding("disconnected", float(len(groups)), 1.0, parts=shown)
    names = sorted({label for own in labels.values() for label in own})
    owners = {name: [c for c, own in labels.items() if name in own] for name in names}
    lonely = [name for name in names if len(owners[name]) == 1]
    if lonely and len(labels) > 1:
        # TankTemp and tank_temp are two labels; a person may have meant one.
        asked = {x: f"; is it {meant}?" for x, meant in misspelt(labels.values()).items()}
        asking = sorted(lonely, key=lambda x: x not in asked)
        shown = few((f"{x} ({owners[x][0]}{asked.get(x, '')})" for x in asking), 6)
        what = pluralise(len(lonely), "label is", "labels are")
        yield finding("lonely-labels", float(len(lonely)), 0.0, what=what, shown=shown)
    seen = {pair for own in labels.values() for pair in combinations(sorted(set(own)), 2)}
    if pairs := [pair for pair in combinations(names, 2) if pair not in seen]:
        total, shown = len(names) * (len(names) - 1) // 2, few((f"{a}–{b}" for a, b in pairs), 6)
        words = {"are": "is", "them": "it"} if len(pairs) == 1 else {"are": "are", "them": "them"}
        what = f"{len(pairs)} of {pluralise(total, 'pair')} of labels"
        yield finding("unseen-pairs", len(pairs) / total, 0.0, what=what, shown=shown, **words)


def check_copies(clients: Sequence[Client]) -> Iterator[Finding]:
    """Findings about clients whose control rows are those of an earlier one, to the last digit.

    Sites that whiten their features make all controls alike: then a regime must be the same too.
    What is nearly a copy is found from the fragments (`assembly/suspicions.py`).
    """
    for i, client in enumerate(clients):
        size = float(np.trace(client.control.covariance)) / client.n_features
        is_white = np.allclose(client.control.covariance, size * np.eye(client.n_features))
        for other in clients[:i]:
            if client.is_population or not same_rows(client.control, other.control):
                continue
            common = client.interventions.keys() & other.interventions.keys()
            twins = [
                twin
                for x in common
                for twin in zip(client.interventions[x], other.interventions[x], strict=False)
            ]
            if not is_white or any(same_rows(*twin) for twin in twins):
                words = {"client": client.name, "other": other.name}
                yield finding("duplicated-client", 0.0, SAME_ROWS, **words)
                break
