"""All checks of a client, or of a study, in one report.

An error that names a regime excludes that regime; one that names only a client excludes the client.
The study is refused if an error names neither, or if no client is left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding, ReadingNote
from jigsaw_crl.base.terminal import counted
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.noise import NoiseModel
from jigsaw_crl.client.white import White
from jigsaw_crl.diagnostics.coverage import check_copies, check_coverage
from jigsaw_crl.diagnostics.drift import check_batches, check_drift
from jigsaw_crl.diagnostics.labels import after_recovery, saturated
from jigsaw_crl.diagnostics.regimes import check_regimes
from jigsaw_crl.diagnostics.rows import check_light_tails, check_rows
from jigsaw_crl.diagnostics.sensors import check_gains, check_sensors

__all__ = ["ClientReport", "StudyReport", "check_client", "check_study", "is_fit", "usable"]


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
    white : White or None
        The client, whitened by its control, from which recovery starts; None after recovery.
    """

    client: str
    findings: tuple[Finding, ...]
    spectrum: NoiseModel
    strength: Mapping[str, float]
    n_samples: Mapping[str, int] | None
    white: White | None

    def after_recovery(self, labels: Iterable[str], unread: Iterable[ReadingNote]) -> ClientReport:
        """The report, in agreement with what recovery could not read of these labels."""
        found = after_recovery(self.client, self.findings, frozenset(labels), tuple(unread))
        return replace(self, findings=found, white=None)

    def to_document(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        s = self.spectrum
        return {
            "client": self.client,
            "n_latent": s.rank,
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
        sizes = (str(s.rank), str(len(s.eigenvalues)))
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

    def with_clients(self, reports: Iterable[ClientReport]) -> StudyReport:
        """The report with these in place of the reports of the same clients."""
        new = {report.client: report for report in reports}
        return replace(self, clients=tuple(new.get(r.client, r) for r in self.clients))


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
    spectrum, means, white = client.noise, client.means, client.white
    about_regimes, strength = check_regimes(client, white)
    about_gains, about_drift = check_gains(client, spectrum), check_drift(client, spectrum)
    about_tails = [] if about_gains else _not_linear(client, about_regimes)
    found = [*about_gains, *about_regimes, *check_sensors(client, spectrum), *check_rows(client)]
    found += [*about_tails, *about_drift, *check_batches(client, means)]
    seen = {(f.check, f.severity) for f in found}
    # What a reason that was found looks like is not told beside it.
    explained: set[tuple[str, str]] = set()
    if about_gains:
        explained |= {
            ("several-targets", "error"),
            *(("uneven-noise", x) for x in ("info", "warning")),
        }
    if len(about_tails) > 1 or ("drifting-control", "error") in seen:
        explained.add(("several-targets", "error"))
    if ("clipped", "warning") in seen:
        explained.add(("drifting-control", "warning"))
    if ("no-signal", "error") in seen or (
        ("sensor-noise", "error") in seen and not _noisy_without(client, found)
    ):
        explained.add(("sensor-noise", "error"))
    findings = tuple(f for f in found if (f.check, f.severity) not in explained)
    measured = (spectrum, strength, client.n_samples, white)
    return ClientReport(client.name, findings, *measured)


def _noisy_without(client: Client, found: Iterable[Finding]) -> bool:
    """Is the noise above the signal in the regimes that stay too?

    A regime that is left out for a reason of its own may be what raised the noise.
    """
    spoilt = {f.regime for f in found if f.severity == "error" and f.regime is not None}
    if not spoilt:
        return True
    left = _without(client, spoilt)
    if left is None:
        return False
    about = check_sensors(left, left.noise)
    return any((f.check, f.severity) == ("sensor-noise", "error") for f in about)


def _not_linear(client: Client, about_regimes: Iterable[Finding]) -> list[Finding]:
    """Findings about light tails, and about most regimes of a client that has them.

    Hard interventions do not need a linear system (T9): recovery decides about them.
    """
    found = check_light_tails(client)
    several = [f for f in about_regimes if f.check == "several-targets"]
    if found and not client.hard and 2 * len(several) > len(client.labels):
        found.append(saturated(client.name, len(several), len(client.labels)))
    return found


def check_study(
    clients: Iterable[Client], reports: Iterable[ClientReport] | None = None
) -> StudyReport:
    """Run every check of every client, and those of all clients together.

    Parameters
    ----------
    clients : Study or iterable of Client
        The findings of a `Study` from reading its files come first.
    reports : iterable of ClientReport, optional
        Precomputed by `check_client`, in the order of the clients; computed if None.
    """
    own = tuple(clients)
    return StudyReport(
        clients=tuple(map(check_client, counted(own, len(own))) if reports is None else reports),
        reading=tuple(getattr(clients, "findings", ())),
        across=(*check_copies(own), *check_coverage({c.name: c.labels for c in own})),
    )


def is_fit(findings: Iterable[Finding]) -> bool:
    """True if no whole client is excluded; single regimes may be.

    `usable` tells whether recovery accepts the study without the excluded clients.
    """
    return not any(f.severity == "error" and f.regime is None for f in findings)


def usable(clients: Iterable[Client], findings: Iterable[Finding]) -> list[Client]:
    """The clients without the labels and clients that errors among the findings exclude.

    A client that loses a label keeps its `n_latent`, because the latent is still there.

    Raises
    ------
    InputError
        No client is left, or an error concerns the whole study.
    """
    own, errors = list(clients), [f for f in findings if f.severity == "error"]
    whole = {f.client: f for f in errors if f.regime is None}
    if None in whole:
        raise InputError(whole[None].message, whole[None].remedy)
    kept = []
    reason: Finding | None = None
    for client in own:
        spoilt = {f.regime: f for f in errors if f.client == client.name and f.regime is not None}
        left = _without(client, spoilt)
        if client.name in whole or left is None:
            reason = reason or whole.get(client.name) or next(iter(spoilt.values()))
            continue
        kept.append(left)
    if not kept and reason is not None:
        alone = len(own) == 1
        raise InputError(
            reason.message if alone else f"no client can be used; for instance, {reason.message}",
            reason.remedy,
            client=reason.client,
            regime=reason.regime,
        )
    return kept


def _without(client: Client, spoilt: Collection[str]) -> Client | None:
    """The client without these regimes; None if no label is left, or no control."""
    left = {label: m for label, m in client.interventions.items() if label not in spoilt}
    if client.control_name in spoilt or not left:
        return None
    if len(left) == len(client.labels):
        return client
    return Client.from_moments(
        client.name,
        control=client.control,
        interventions=left,
        n_latent=client.n_latent,
        features=client.features,
        control_name=client.control_name,
        hard=client.hard & left.keys(),
        reduction=client.reduction,
    )
