"""Where a result comes from: versions, options, files and sample sizes."""

from __future__ import annotations

import platform
from collections.abc import Collection, Mapping
from importlib.metadata import version
from typing import Any

from jigsaw_crl._version import __version__
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.study.folder import Study


def provenance_of(study: Study, seed: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Versions, seed, files, sample sizes, and the options of recovery that are not None."""
    return {
        "version": __version__,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "numba")},
        },
        "study": study.name,
        "seed": seed,
        "recovery": {
            name: dict(value) if isinstance(value, Mapping) else value
            for name, value in options.items()
            if value is not None
        },
        "sources": dict(study.sources),
        "sha256": dict(study.fingerprints),
        "n_samples": {c.name: c.n_samples and dict(c.n_samples) for c in study},
    }


def with_sites(
    provenance: Mapping[str, Any], gone: Collection[str], new: Collection[Fragment]
) -> dict[str, Any]:
    """The provenance without what it says of some sites, and with what is known of new ones."""
    out = {
        key: {name: own for name, own in value.items() if name not in gone}
        if isinstance(value, Mapping)
        else value
        for key, value in provenance.items()
    }
    added = [*(x for x in out.get("added", ()) if x not in gone), *(f.client for f in new)]
    # A client whose data were corrected is there.
    removed = sorted({*out.get("removed", ()), *gone} - {f.client for f in new})
    for key, names in (("added", added), ("removed", removed)):
        if names or key in out:
            out[key] = names
    if "n_samples" in out:
        out["n_samples"] |= {f.client: f.n_samples for f in new}
    return out
