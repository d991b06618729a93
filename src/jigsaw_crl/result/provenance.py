"""Where a result comes from: versions, seed, files, sample sizes and spectra."""

from __future__ import annotations

import platform
from collections.abc import Collection, Iterable, Mapping
from importlib.metadata import version
from typing import Any

from jigsaw_crl._version import __version__
from jigsaw_crl.diagnostics import ClientReport
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.study.folder import Study

__all__ = ["provenance_of", "with_sites", "without_sites"]


def provenance_of(study: Study, seed: int, reports: Iterable[ClientReport]) -> dict[str, Any]:
    """Versions, seed, files, sample sizes and spectra of a recovery."""
    return {
        "version": __version__,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "numba")},
        },
        "study": study.name,
        "seed": seed,
        "sources": dict(study.sources),
        "sha256": dict(study.fingerprints),
        "n_samples": {client.name: client.n_samples for client in study},
        **_incomplete(study),
        "spectra": {report.client: _spectrum(report) for report in reports},
    }


def _incomplete(study: Study) -> dict[str, Any]:
    """Rows with missing values that were used, by client and regime; empty if there are none."""
    found: dict[str, Any] = {}
    for client in study:
        regimes = [(client.control_name, client.control)]
        regimes += [(label, m) for label, ms in client.interventions.items() for m in ms]
        own = [
            {"regime": r, "rows": m.incomplete.gaps, "count_as": m.uncounted().n}
            for r, m in regimes
            if m.incomplete is not None and m.incomplete.gaps
        ]
        found |= {client.name: own} if own else {}
    return {"incomplete": found} if found else {}


def _spectrum(report: ClientReport) -> dict[str, Any]:
    """What the result keeps of a client's spectrum."""
    document = report.to_document()
    return {name: document[name] for name in ("n_latent", "eigenvalues", "noise_floor")}


def with_sites(
    provenance: Mapping[str, Any], new: Iterable[Fragment], reports: Mapping[str, ClientReport]
) -> dict[str, Any]:
    """The provenance with the names, sample sizes and spectra of further sites."""
    out = dict(provenance)
    added = [*out.get("added", ()), *(f.client for f in new)]
    if added:
        out["added"] = added
    if "n_samples" in out:
        out["n_samples"] = {**out["n_samples"], **{f.client: f.n_samples for f in new}}
    if "spectra" in out:
        more = {name: _spectrum(report) for name, report in reports.items()}
        out["spectra"] = {**out["spectra"], **more}
    return out


def without_sites(provenance: Mapping[str, Any], gone: Collection[str]) -> dict[str, Any]:
    """The provenance without what it says of some sites; their names are listed as removed."""
    out = {
        key: {name: own for name, own in value.items() if name not in gone}
        if isinstance(value, Mapping)
        else value
        for key, value in provenance.items()
    }
    if gone:
        out["added"] = [name for name in out.get("added", ()) if name not in gone]
        out["removed"] = sorted({*out.get("removed", ()), *gone})
    return out
