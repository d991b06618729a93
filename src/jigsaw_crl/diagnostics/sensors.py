"""Checks of the sensors: number of latents that they show, noise, units and gains.

In every regime the features lie in the space of the latents, up to the sensors' noise. The smallest
m − p eigenvalues of a regime's covariance are therefore noise alone, and if the space is the same
in all regimes, so are those of their average covariance. Gains that differ between regimes turn the
space, and the average then has more variance outside any one space than the regimes have on
average. Regimes of few rows tell nothing and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.nulls import CLEARLY
from jigsaw_crl.base.text import few, number, percent, pluralise
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.noise import ENOUGH_ROWS, NoiseModel, count_latents, needed_features
from jigsaw_crl.client.reduction import WIDE
from jigsaw_crl.diagnostics.findings import NOTICEABLE, finding
from jigsaw_crl.moments.checks import RANK_TOLERANCE

# A tenth of the weakest direction's variance being noise is where the floor's own error begins to
# show in the answer.
NOISY = 0.1
# Beyond a thousandfold spread, a noise of one part in a thousand of the widest feature is as large
# as all of the narrowest.
WIDE_SPREAD = 1e3
# Less than this is what sensors and rounding always leave; not worth a line.
ALWAYS = 1e-3
# The turn matters when it is no longer small beside the error of a variance: turn² · rows.
MATTERS = 0.25
# Every regime needs an eigendecomposition; so many show what all of them do.
MOST_REGIMES = 16


def check_bent(client: Client) -> Iterator[Finding]:
    """Findings about sensors without which the client is read."""
    idle = [feature for feature, misfit in client.bent.items() if not misfit]
    for feature, misfit in client.bent.items():
        if misfit:
            yield finding("bent-sensor", round(misfit, 2), CLEARLY, feature=feature)
    if idle:
        yield finding("idle-sensors", float(len(idle)), 0.0, named=few(map(repr, idle)))


def check_sensors(client: Client) -> list[Finding]:
    """Findings about units, the number of latents and the noise."""
    client, spectrum, findings = client.linear, client.white.space, list[Finding]()
    if client.reduction is not None:
        what, count = client.reduction.message, float(client.n_features)
        findings.append(finding("reduced-columns", count, what=what, wide=WIDE))
    elif spectrum.visible:
        spread = np.sqrt(np.diagonal(client.control.covariance))
        widest = client.features[int(np.argmax(spread))]
        ratio = float(spread.max() / spread[spread > 0].min())
        if ratio > WIDE_SPREAD:
            findings.append(finding("uneven-units", ratio, WIDE_SPREAD, feature=widest))
    findings += _number_of_latents(client)
    if spectrum.visible and spectrum.noise_share >= ALWAYS:
        # The floor is an average over regimes, and may exceed what the control has there.
        ratio = min(spectrum.noise_floor / spectrum.weakest, 1.0)
        gap = f" (gap {number(spectrum.gap)})" if np.isfinite(spectrum.gap) else ""
        words = {"percent": percent(spectrum.noise_share), "gap": gap, "weakest": percent(ratio)}
        severity = "warning" if ratio > NOISY else "info"
        findings.append(finding("sensor-noise", ratio, NOISY, severity=severity, **words))
    if spectrum.unevenness > 1:
        findings += _uneven_noise(client, spectrum)
    # Noise larger than the signal, where the noise is not known either: nothing can be read.
    unknown = {"fewer-latents", "uneven-noise"} & {
        x.check for x in findings if x.severity == "warning"
    }
    if unknown and spectrum.visible and spectrum.noise_share > 1:
        share = min(spectrum.noise_share, 100.0)
        findings.append(finding("sensor-noise/above", share, 1.0, percent=percent(share)))
    return findings


def _number_of_latents(client: Client) -> Iterator[Finding]:
    """What the features show about the number of latents, beside the number that is used."""
    given, used, labels = client.counted is None, client.n_latent, len(client.labels)
    if given and client.n_features == used:
        return
    count = client.counted or count_latents(client.control, client.regimes, labels)
    unseen, rows = count.reason in ("features", "uneven"), count.reason == "rows"
    state = count.used if given else "N" if unseen or rows else labels
    words: dict[str, Any] = {
        "labels": pluralise(labels, "label"),
        "features": pluralise(client.n_features, "feature"),
        "directions": pluralise(count.visible, "latent direction"),
        "used": used,
        # How to say how many latents the client has.
        "state": f'n_latent = {state} below [clients."{client.name}"] in study.toml (jigsaw '
        f"fragment: --n-latent {state}; Python: n_latent={state})",
    }
    visible = float(count.visible)
    if count.visible < used:
        yield finding("fewer-latents", visible, float(used), **words)
    elif given and count.used > used:
        yield finding("more-latents/given", visible, float(used), **words)
    elif not given and unseen:
        needed = labels + 2 if count.reason == "features" else needed_features(labels)
        words["more"] = f" Or measure at least {needed} features."
        words["more"] = words["more"] if client.n_features < needed else ""
        words["seen"] = "seen" if count.reason == "features" else "told from noise"
        yield finding("unseen-latents", float(client.n_features), float(needed), **words)
    elif not given and (rows or used != labels):
        words |= {"why": "", "todo": "Nothing, if some latents have no label; otherwise"}
        if rows:
            words |= {"why": ", too many for the control rows", "severity": "warning"}
            words["todo"] = "Take more control rows. Or"
        yield finding("more-latents", visible, float(labels), **words)


def _uneven_noise(client: Client, spectrum: NoiseModel) -> Iterator[Finding]:
    """A finding about sensors of unequal noise, and whether each one's could be told."""
    if spectrum.scale is not None:
        # Relative to each feature's own variance: features may have different units.
        shares = np.minimum(spectrum.sensors / np.diagonal(client.control.covariance), 1.0)
        most, least = float(shares.max()), float(shares.min())
        if most >= NOTICEABLE * least:
            words = {"most": percent(most), "least": percent(least)}
            yield finding("uneven-noise", spectrum.unevenness, 1.0, **words)
        return
    needed, rows = needed_features(client.n_latent), ENOUGH_ROWS * client.n_latent
    why, what = "no noise of its own for each sensor fits the rows", "Pass n_latent if it is larger"
    if client.n_features < needed:
        why = "the features are too few to tell the noise of each"
        what = f"Measure at least {needed} features"
    elif all(m.n is not None and m.n < rows for _, m in client.named_regimes):
        why = f"no regime counts for {rows:,} rows, which are needed to tell the noise of each"
        what = "Take more rows, leave out features that a few rows dominate"
    yield finding("uneven-noise/unknown", spectrum.unevenness, 1.0, why=why, what=what)


def check_gains(client: Client) -> list[Finding]:
    """A finding if the sensors' gains differ between regimes; the client cannot be used then."""
    client, spectrum = client.linear, client.white.space
    d, p = client.n_features, client.n_latent
    if client.is_population or p == d:
        return []
    long = [m for _, m in client.named_regimes if (m.n or 0) >= ENOUGH_ROWS * d]
    if len(long) < 2:
        return []
    long = long[:: -(-len(long) // MOST_REGIMES)]
    rows = np.array([m.n or 0 for m in long], dtype=np.float64)
    scale = 1.0 if spectrum.scale is None else np.outer(spectrum.scale, spectrum.scale)
    each = np.linalg.eigvalsh([scale * m.covariance for m in long])
    # The smallest eigenvalues of a sample are too small: p directions were fitted.
    own = float(np.average(each[:, :-p].sum(axis=1) * rows / (rows - p), weights=rows))
    together = np.linalg.eigvalsh(
        scale * sum(n * m.covariance for n, m in zip(rows, long, strict=True)) / rows.sum()
    )
    pooled, signal = float(together[:-p].sum()), float(together[-p:].sum()) * (d - p) / d
    turn = (pooled - own) / signal
    value = turn * float(rows.mean())
    if pooled <= RANK_TOLERANCE * signal or pooled <= NOTICEABLE * own or value <= MATTERS:
        return []
    percent = 100 * float(np.sqrt(turn))
    return [finding("drifting-gains", value, MATTERS, percent=percent)]


CHECKS = [check_bent, check_gains, check_sensors]
