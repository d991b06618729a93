"""Findings that recovery decides: weak, mean-only or several-target interventions, batch offsets.

They are made here and nowhere else. The checks measure first, against the control rows alone;
where the null-cone method recovers the client, its own reading has the last word, so that the
findings agree with what is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jigsaw_crl.base.findings import Finding, Unread
from jigsaw_crl.base.text import few, pluralise

__all__ = [
    "CLEARLY",
    "after_recovery",
    "batch_offset",
    "excess_spread",
    "label_differs",
    "leaning_lines",
    "mean_only",
    "not_linear",
    "off_target",
    "saturated",
    "several_targets",
    "sites_differ",
    "unclear_regime",
    "weak_intervention",
]

# The null knows the tails of the features, not those of the latents, which are heavier. A regime is
# left out only when it exceeds the edge of chance by half.
CLEARLY = 1.5
# Findings about a client that may be the reason why more directions change than one target moves.
SIGNS = {
    "light-tails": "the system or the sensors are not linear, as the light tails suggest",
    "excess-spread": "rows are alike or sensors change, as the excess spread suggests",
    "heavy-tails": "a few rows with heavy tails make the difference",
    "dependent-rows": "rows that are alike make the difference",
}


def several_targets(
    client: str, label: str, value: float, *, threshold: float = 1.0, clearly: float = CLEARLY
) -> Finding:
    """The regime moves more than one node: it is left out when `value` exceeds `clearly`."""
    if value <= clearly:
        return Finding(
            "several-targets",
            "warning",
            "the regime may move more than one node: a third direction differs from the control "
            "by a little more than chance; heavy-tailed latents do that too",
            "Check what was applied; the regime is used.",
            value=value,
            threshold=threshold,
            client=client,
            regime=label,
        )
    return Finding(
        "several-targets",
        "error",
        "the regime moves more than one node: a third direction differs from the control",
        "Check what was applied; a regime that intervenes on several nodes is left out.",
        value=value,
        threshold=threshold,
        client=client,
        regime=label,
    )


def off_target(client: str, label: str, other: str, value: float, *, threshold: float) -> Finding:
    """The regime acts on the target of another label as well; the rest of it is used."""
    return Finding(
        "off-target",
        "warning",
        f"the regime acts on {other!r} as well: without the direction of {other!r} it is that of "
        "one target, and so it is used",
        f"Nothing is said about the pair {label!r} and {other!r} here; an intervention on one of "
        "them alone would tell.",
        value=value,
        threshold=threshold,
        client=client,
        regime=label,
    )


def unclear_regime(
    client: str, label: str, signs: Iterable[str], value: float, threshold: float, without: str = ""
) -> Finding:
    """More directions change than one target explains, and the rows give other reasons for it."""
    reasons = "; or ".join(dict.fromkeys(SIGNS[sign] for sign in signs))
    used = f"it is used without the direction of {without!r}" if without else "it is left out"
    return Finding(
        "unclear-regime",
        "warning" if without else "error",
        f"more directions of the regime change than one target explains, and {used}: it acts on "
        f"more than one node; or {reasons}",
        "See the other findings about this client; the data do not tell these reasons apart.",
        value=value,
        threshold=threshold,
        client=client,
        regime=label,
    )


def excess_spread(client: str, value: float, threshold: float) -> Finding:
    """The regimes differ from the control in all directions, by more than independent rows do."""
    return Finding(
        "excess-spread",
        "warning",
        f"the regimes differ from the control in all directions, {value:.2g} times as much as "
        "independent rows do: rows of one subject or run are alike and are not named, or the "
        "sensors' gains drift, or the sensors are not linear",
        "Errors are taken as that much larger, and means are not used. Name the column with the "
        "subject or run of each row (--group), and check the sensors.",
        value=value,
        threshold=threshold,
        client=client,
    )


def weak_intervention(
    client: str,
    label: str,
    value: float,
    *,
    threshold: float = 1.0,
    more_rows: float | None = None,
) -> Finding:
    """The regime cannot be told from the control; `more_rows` times as many rows might show it."""
    # A regime at the edge of chance needs hardly more rows, and how many is not known.
    need = "" if more_rows is None or more_rows < 1.1 else f" (about {more_rows:.1f} times)"
    return Finding(
        "weak-intervention",
        "warning",
        "the regime cannot be told from the control, so nothing is said about its label",
        f"Apply it more strongly, or take more rows{need}.",
        value=value,
        threshold=threshold,
        client=client,
        regime=label,
    )


def mean_only(client: str, label: str, value: float, *, threshold: float = 1.0) -> Finding:
    """The regime has the control's covariance about its own mean, so it does not show ancestors."""
    return Finding(
        "mean-only",
        "warning",
        "the regime moves the mean of its target and nothing else: hidden common causes can be "
        "seen, but nothing is said about the ancestors of its label",
        "To learn its ancestors, apply an intervention that also changes how the target depends "
        "on its parents, or how much it varies.",
        value=value,
        threshold=threshold,
        client=client,
        regime=label,
    )


def batch_offset(client: str, value: float, threshold: float) -> Finding:
    """The means of the regimes differ in directions that no single target explains."""
    return Finding(
        "batch-offset",
        "warning",
        "the means of the regimes differ in directions that no intervention on one target "
        "explains, as they do when regimes are measured in different batches",
        "The means are not used, only the covariances. Name the column with the batch of each row "
        "(--batch), and measure control rows in every batch.",
        value=value,
        threshold=threshold,
        client=client,
    )


def leaning_lines(client: str, label: str, value: float, threshold: float) -> Finding:
    """A target with a single direction leans on another one, which no linear system explains."""
    return Finding(
        "leaning-lines",
        "info",
        "the line of this target, which has a single direction, leans on that of another target, "
        "which a linear system with these latents does not explain",
        "None for a few labels: a second direction is too small to be seen. If the lines of many "
        "labels lean, nothing is stated.",
        value=value,
        threshold=threshold,
        client=client,
        regime=label,
    )


def not_linear(clients: Sequence[str]) -> Finding:
    """More labels have leaning lines than chance explains, or most clients other signs."""
    return Finding(
        "not-linear",
        "warning",
        f"the regimes of {pluralise(len(clients), 'client')} contradict a linear system: the "
        "system or the sensors are not linear, or some latents are not counted; nothing is stated "
        "about ancestors",
        "Hard interventions that shift the mean would settle it in a system that is not linear. "
        "If the sensors are not, transform the features so that they respond linearly; or say with "
        "n_latent (in study.toml, per client) that some latents have no label.",
        value=float(len(clients)),
    )


def saturated(client: str, unclear: int, labels: int) -> Finding:
    """Most regimes of a client with light tails move more directions than one target explains."""
    return Finding(
        "not-linear",
        "error",
        f"{unclear} of {pluralise(labels, 'regime')} move more directions than one target "
        "explains, and the features have light tails: the system or the sensors are not linear",
        "Transform the features so that they respond linearly. If the system bends and not the "
        "sensors, use hard interventions that shift the mean, and say that they are hard.",
        value=round(unclear / labels, 2),
        threshold=0.5,
        client=client,
    )


def label_differs(client: str, label: str) -> Finding:
    """What the site says about the label contradicts what all others say about it."""
    return Finding(
        "label-differs",
        "warning",
        "the label seems to mean something else here than at the other sites: several pairs of it "
        "contradict what the others say together; they are left out",
        "Check what the site applied under this label, and whether two labels are exchanged.",
        client=client,
        regime=label,
    )


def not_hard(client: str, label: str, value: float, threshold: float) -> Finding:
    """The intervention is called hard, and effects run both ways between it and another label."""
    return Finding(
        "not-hard",
        "warning",
        "the intervention is called hard, but effects then run both ways between its label and "
        "another one, so its target still listens to its causes",
        'It counts as soft, and no effect on it is given. Call it "soft" if its target could '
        "still respond to its causes.",
        value=value,
        threshold=threshold,
        client=client,
        regime=label,
    )


def not_hard_across(label: str, value: float) -> Finding:
    """The interventions are called hard, and the sites find different effects on their target."""
    return Finding(
        "not-hard",
        "warning",
        f"the interventions on {label!r} are called hard, but the sites' effects on it differ "
        "beyond chance, so its target still listens to its causes at some of them, or the systems "
        "differ",
        'They count as soft at every site. Call an intervention "hard" only if its target could '
        "not respond to its causes.",
        value=value,
        regime=label,
    )


def effects_apart(client: str, far: int, pairs: int) -> Finding:
    """The effects of a site stand apart from those of the other sites in many pairs."""
    return Finding(
        "effects-apart",
        "warning",
        "the effects that its hard interventions show stand apart from those of the other sites: "
        f"{far} of {pluralise(pairs, 'effect')} differ by more than two standard errors",
        "None of its effects is used. Check its labels, which of its interventions are hard, and "
        "whether it measures the same system.",
        value=round(far / max(pairs, 1), 2),
        client=client,
    )


def sites_differ(
    ancestor: str, descendant: str, having: Sequence[str], lacking: Sequence[str], factor: float
) -> Finding:
    """Some sites have an effect of one label on another that others lack."""
    return Finding(
        "sites-differ",
        "warning",
        f"{few(having)} {'shows' if len(having) == 1 else 'show'} an effect of {ancestor!r} on "
        f"{descendant!r}, and {few(lacking)} {'shows' if len(lacking) == 1 else 'show'} none: that "
        f"sites differ is {factor:,.0f} times as probable as one truth for all",
        "The verdict on this pair is an average over the sites. Ask what differs between them, or "
        "recover them apart.",
        value=round(factor, 1),
    )


def nonlinear_response(client: str, label: str, value: float, threshold: float) -> Finding:
    """Other latents do not respond linearly to the target; the label is read without linearity."""
    return Finding(
        "nonlinear-response",
        "info",
        "what depends on this label does not respond linearly: its regime moves more than one "
        f"target does in a linear system (probability by chance 1e-{value:.0f})",
        "None. The labels of this client are read from the last effects up, which needs no linear "
        "responses; effects are averages at the dose that was applied.",
        value=value,
        threshold=threshold,
        client=client,
        regime=label,
    )


def no_shift(client: str, label: str, value: float, threshold: float) -> Finding:
    """The system is not linear, and the label's intervention is not hard or moves no mean."""
    return Finding(
        "no-shift",
        "warning",
        "the system is not linear, and this intervention is not called hard or does not clearly "
        "shift the mean of its target: nothing is said about its label",
        "Apply a hard intervention that shifts the mean; in a system that is not linear nothing "
        "else settles the label.",
        value=value,
        threshold=threshold,
        client=client,
        regime=label,
    )


def after_recovery(
    client: str, findings: Iterable[Finding], labels: frozenset[str], unread: Iterable[Unread]
) -> tuple[Finding, ...]:
    """The findings of the checks, in agreement with what recovery could and could not read.

    The checks compare each regime with the control rows alone. Recovery estimates the control from
    all regimes, so it sees more: of the labels that it was given, which are weak and which have
    several targets is its decision. Where the rows give another reason for what looks like several
    targets, a regime that is read is not doubted, and one that is not is called unclear.
    """
    told = list(unread)
    refused = {u.label for u in told if u.check in ("several-targets", "off-target")}
    weak = {f.regime: f for f in findings if f.check == "weak-intervention"}
    seen = {*(f.check for f in findings), *(u.check for u in told)}
    signs = tuple(sign for sign in SIGNS if sign in seen)
    kept = []
    for f in findings:
        if f.check == "several-targets" and f.regime in labels:
            if f.regime not in refused and not signs:
                kept.append(several_targets(client, f.regime, min(f.value or 0.0, CLEARLY)))
        elif f.check != "weak-intervention":
            kept.append(f)
    unclear = {u.label for u in told if u.check == "several-targets"}
    if any(u.check == "nonlinear-response" for u in told):
        # The checks compare regimes with what one target moves in a linear system.
        kept = [f for f in kept if f.check not in ("several-targets", "light-tails")]
        return (*kept, *(_not_read(client, u, weak.get(u.label), signs) for u in told))
    if "light-tails" in signs and 2 * len(unclear) > len(labels):
        kept.append(saturated(client, len(unclear), len(labels)))
    return (*kept, *(_not_read(client, u, weak.get(u.label), signs) for u in told))


def _not_read(client: str, u: Unread, weak: Finding | None, signs: tuple[str, ...]) -> Finding:
    """The finding about something that recovery did not use, or used in part."""
    if u.label is None:
        about = excess_spread if u.check == "excess-spread" else batch_offset
        return about(client, u.value, u.threshold)
    if signs and u.check in ("off-target", "several-targets"):
        return unclear_regime(client, u.label, signs, u.value, u.threshold, u.other)
    match u.check:
        case "leaning-lines":
            return leaning_lines(client, u.label, u.value, u.threshold)
        case "not-hard":
            return not_hard(client, u.label, u.value, u.threshold)
        case "nonlinear-response":
            return nonlinear_response(client, u.label, u.value, u.threshold)
        case "no-shift":
            return no_shift(client, u.label, u.value, u.threshold)
        case "mean-only":
            return mean_only(client, u.label, u.value, threshold=u.threshold)
        case "off-target":
            return off_target(client, u.label, u.other, u.value, threshold=u.threshold)
        case "several-targets":
            limit = u.threshold
            return several_targets(client, u.label, u.value, threshold=limit, clearly=limit)
    return weak or weak_intervention(client, u.label, u.value, threshold=u.threshold)
