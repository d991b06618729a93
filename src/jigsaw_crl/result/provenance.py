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

__all__ = ["provenance_of", "with_sites"]


def provenance_of(study: Study, seed: int, reports: Iterable[ClientReport]) -> dict[str, Any]:
    """Versions, seed, files, sample sizes and spectra of a recovery."""
    incomplete = {
        client.name: gaps
        for client in study
        if (gaps := [
            {"regime": name, "rows": m.incomplete.gaps, "count_as": m.uncounted().n}
            for name, m in client.named_regimes
            if m.incomplete is not None and m.incomplete.gaps
        ])
    }  # fmt: skip
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
        **({"incomplete": incomplete} if incomplete else {}),
        "spectra": {report.client: _spectrum(report) for report in reports},
    }


def _spectrum(report: ClientReport) -> dict[str, Any]:
    """What the result keeps of a client's spectrum."""
    document = report.to_document()
    return {name: document[name] for name in ("n_latent", "eigenvalues", "noise_floor")}


def with_sites(
    provenance: Mapping[str, Any],
    gone: Collection[str],
    new: Collection[Fragment],
    reports: Mapping[str, ClientReport],
) -> dict[str, Any]:
    """The provenance without what it says of some sites, and with what is known of new ones."""
    out = {
        key: {name: own for name, own in value.items() if name not in gone}
        if isinstance(value, Mapping)
        else value
        for key, value in provenance.items()
    }
    added = [*(x for x in out.get("added", ()) if x not in gone), *(f.client for f in new)]
    if added or "added" in out:
        out["added"] = added
    if gone:
        out["removed"] = sorted({*out.get("removed", ()), *gone})
    if "n_samples" in out:
        out["n_samples"] |= {f.client: f.n_samples for f in new}
    if "spectra" in out:
        out["spectra"] |= {name: _spectrum(report) for name, report in reports.items()}
    return out
