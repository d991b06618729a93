"""All findings of the diagnostics: name → severity, message, remedy.

A check measures and decides; what is said then stands here. `finding` fills the words of a message
in. A name with a variant, such as "uneven-noise/unknown", is the finding "uneven-noise". To add a
check, add its rows here, and list it in `docs/reference/findings.md`.
"""

from __future__ import annotations

from typing import Any

from jigsaw_crl.base.findings import Finding, Severity

__all__ = ["FINDINGS", "finding"]

FINDINGS: dict[str, tuple[Severity, str, str]] = {
    # -- regimes ------------------------------------------------------------------------------
    "several-targets": (
        "error",
        "the regime moves more than one node: a third direction differs from the control",
        "Check what was applied; a regime that intervenes on several nodes is left out.",
    ),
    "off-target": (
        "warning",
        "the regime acts on {other!r} as well: without the direction of {other!r} it is that of "
        "one target, and so it is used",
        "Nothing is said about the pair {label!r} and {other!r} here; an intervention on one of "
        "them alone would tell.",
    ),
    "unclear-regime": (
        "error",
        "more directions of the regime change than one target explains, and it is left out: it "
        "acts on more than one node; or {reasons}",
        "See the other findings about this client; the data do not tell these reasons apart.",
    ),
    "unclear-regime/used": (
        "warning",
        "more directions of the regime change than one target explains, and it is used without "
        "the direction of {other!r}: it acts on more than one node; or {reasons}",
        "See the other findings about this client; the data do not tell these reasons apart.",
    ),
    "weak-intervention": (
        "warning",
        "the regime cannot be told from the control, so nothing is said about its label",
        "Apply it more strongly, or take more rows{need}.",
    ),
    "weak-intervention/moved": (
        "warning",
        "the regime differs from the control ({how}), but not clearly in the directions that the "
        "latents show, so nothing is said about its label",
        "Check the units of the features, apply it more strongly, or take more rows.",
    ),
    "weak-intervention/discounted": (
        "warning",
        "the regime differs from the control in its rows as they are, but no more than what the "
        "other findings about this client take off; nothing is said about its label",
        "See the other findings about this client.",
    ),
    "no-signal/moved": (
        "error",
        "regimes differ from the control ({how}), but none clearly in the directions that the "
        "latents show: the order cannot be read from that",
        "Check the units of the features; otherwise intervene more strongly or take more rows.",
    ),
    "no-signal": (
        "error",
        "no regime differs from the control: the data carry no signal about the order",
        "Check that the regime column is right; otherwise intervene more strongly or take more "
        "rows.",
    ),
    "mean-only": (
        "warning",
        "the regime moves the mean of its target, and no change of the covariance shows: hidden "
        "common causes can be seen, but nothing is said about the ancestors of its label",
        "To learn its ancestors, apply an intervention that also changes how the target depends "
        "on its parents, or how much it varies.",
    ),
    "duplicated-regime": (
        "error",
        "the regime holds the same rows as {other!r}",
        "Replace the copy by the rows that belong there.",
    ),
    "like-regimes": (
        "warning",
        "the regime cannot be told from {other!r}, though both differ from the control: they may "
        "be one intervention under two labels, or act on one pathway",
        "Check the labels. Rows of these two regimes do not tell which comes first.",
    ),
    "swapped-control": (
        "error",
        "{control!r} and {label!r} look swapped: with {label!r} as the control every regime moves "
        "one node, as given they do not",
        "Check which rows are observational.",
    ),
    "leaning-lines": (
        "info",
        "the line of this target, which has a single direction, leans on that of another target, "
        "which a linear system with these latents does not explain",
        "None for a few labels: a second direction is too small to be seen. If the lines of many "
        "labels lean, nothing is stated.",
    ),
    "nonlinear-response": (
        "info",
        "what depends on this label does not respond linearly: its regime moves more than one "
        "target does in a linear system (probability by chance 1e-{value:.0f})",
        "None. The labels of this client are read from the last effects up, which needs no linear "
        "responses; effects are averages at the dose that was applied.",
    ),
    "no-shift": (
        "warning",
        "the system is not linear, and this intervention is not called hard or does not clearly "
        "shift the mean of its target: nothing is said about its label",
        "Apply a hard intervention that shifts the mean; in a system that is not linear nothing "
        "else settles the label.",
    ),
    "not-hard": (
        "warning",
        "the intervention is called hard, but effects then run both ways between its label and "
        "another one: its target still listens to its causes, or noise of the sensors or a "
        "response that is not linear makes it look so",
        'It counts as soft, and no effect on it is given. Call it "soft" if its target could '
        "still respond to its causes.",
    ),
    # -- clients ------------------------------------------------------------------------------
    "excess-spread": (
        "warning",
        "the regimes differ from the control in all directions, {value:.2g} times as much as "
        "independent rows do: rows of one subject or run are alike and are not named, or the "
        "sensors' gains drift, or the sensors are not linear",
        "Errors are taken as that much larger, and means are not used. Name the column with the "
        "subject or run of each row (--group), and check the sensors.",
    ),
    "batch-offset": (
        "warning",
        "the means of the regimes differ in directions that no intervention on one target "
        "explains, as they do when regimes are measured in different batches or sensors are not "
        "linear",
        "The means are not used, only the covariances. Name the column with the batch of each row "
        "(--batch) and measure control rows in every batch, or transform sensors that bend.",
    ),
    "batch-wander": (
        "info",
        "the means of batches differ by about {size:.2g} standard deviations{where}, which is more "
        "than chance allows",
        "Nothing to do: shifts of the mean are taken against control rows of the same batch.",
    ),
    "batch-is-regime": (
        "warning",
        "{labels}: no other regime shares a batch with it, so an offset of the batch cannot be "
        "told from a shift of the mean; {cost}",
        "Measure control rows in every batch.",
    ),
    "batch-without-control": (
        "warning",
        "{labels}: some or all rows are in batches without control rows; {cost}",
        "Measure control rows in every batch.",
    ),
    "drifting-gains": (
        "error",
        "the sensors' gains differ between regimes, by about {percent:.2g} %: every regime then "
        "seems to move all of its labels",
        "Calibrate the sensors, or take control rows with each intervention and divide by the "
        "gains that they show.",
    ),
    "not-linear/client": (
        "error",
        "{unclear} of {regimes} move more directions than one target explains, and the features "
        "have light tails: the system or the sensors are not linear",
        "Transform the features so that they respond linearly. If the system bends and not the "
        "sensors, use hard interventions that shift the mean, and say that they are hard.",
    ),
    "light-tails": (
        "info",
        "the features have lighter tails than linear responses to Gaussian noise (kurtosis "
        "{least:.3g} in the regime where it is least): sensors or the system saturate, or the "
        "noise is bounded",
        "None by itself. If sensors are clipped or saturate, transform the features so that they "
        "respond linearly; a system that saturates can be read by hard interventions that shift "
        "the mean.",
    ),
    "uneven-noise": (
        "info",
        "the sensors' noise is uneven: of the variance of its feature it is {most} at the noisiest "
        "and {least} at the quietest; each feature is divided by the size of its noise",
        "None needed. Average repeated readings of the noisiest sensors for a sharper answer.",
    ),
    "uneven-noise/unknown": (
        "warning",
        "the sensors' noise is uneven, and {why}, so equal noise is taken off: effects may be "
        "stated that are not there",
        "{what}, or divide each feature by the size of its noise.",
    ),
    "uneven-units": (
        "warning",
        "the feature {feature!r} spreads {value:.3g} times as widely as another, so the noise "
        "floor is that of the widest",
        "Leave it out with --ignore if it is a time or an index; otherwise divide each column by "
        "its standard deviation in the control.",
    ),
    "reduced-columns": (
        "info",
        "{what}; units and the noise of single columns are taken off, and single columns are not "
        "checked for outliers, copies or gains that differ",
        "Nothing to do. To check single columns, read a choice of fewer than {wide} of them.",
    ),
    "sensor-noise": (
        "info",
        # Findings leave the client: ratios only, no variance in the data's own units.
        "the sensors add noise of {percent} of the signal's variance{gap}; in the weakest "
        "direction {weakest} of all variance is noise",
        "The floor is subtracted. For a sharper answer, average repeated readings or add features.",
    ),
    "sensor-noise/above": (
        "error",
        "the sensors add noise of {percent} of the signal's variance, and {why}: what is read "
        "could be noise, and the client is left out",
        "Average repeated readings, or leave out features that hardly respond.",
    ),
    "fewer-latents": (
        "warning",
        "only {value:.0f} of {threshold:.0f} directions stand out of the sensors' noise",
        "Take more rows, or measure features that show the missing latents.",
    ),
    "more-latents": (
        "info",
        "{labels}, but the features carry {directions}: {used} are used",
        "Nothing, if some latents have no label; otherwise {state}.",
    ),
    "more-latents/rows": (
        "warning",
        "{labels}, but the features carry {directions}: too many for the control rows; {used} are "
        "used",
        "Take more control rows. Or {state}.",
    ),
    "more-latents/given": (
        "warning",
        "the features carry {directions}, but n_latent is {used}: {used} are used",
        "{state}, or leave n_latent out.",
    ),
    "unseen-latents": (
        "info",
        "{features} for {labels}: a latent without a label could not be {seen}, and none is "
        "assumed",
        "If there is one: {state}. Or measure at least {threshold:.0f} features.",
    ),
    "unseen-latents/unfit": (
        "info",
        "no number of latents fits the features with noise of its own in each sensor, so that none "
        "beside the {labels} is assumed",
        "If there is one: {state}.",
    ),
    # -- rows ---------------------------------------------------------------------------------
    "outliers": (
        "error",
        "a few rows carry the variance of {feature!r}: it is that of {value:.1f} rows",
        "Look for outliers; {what}.",
    ),
    "missing-code": (
        "error",
        "{feature!r} is {code} in about {share} of the rows and ordinary in the others: the number "
        "seems to stand for a reading that is missing",
        'Write na = ["{code}"] in study.toml, or replace it by an empty cell, and leave such rows '
        'out with --drop-missing (missing="drop").',
    ),
    "clipped": (
        "warning",
        "the readings of {feature!r} stop at about {stop}, its {side} value, in {regimes}, with up "
        "to {share} of the rows there: the sensor is clipped at the end of its range, and does not "
        "respond linearly",
        "Record it with a wider range, or leave the feature out with --ignore.",
    ),
    "heavy-tails": (
        "warning",
        "rows have heavy tails ({feature!r} has kurtosis {value:.3g}): its {rows:,} rows count as "
        "{worth:,.0f}{more}",
        "Errors use the smaller number. If some rows are spoilt, leave them out with --trim 0.05 "
        "(trim=0.05).",
    ),
    "dependent-rows": (
        "warning",
        "{alike}: {rows:,} rows of {regime!r} count as {n:,} for covariances and {mean_rows:,.0f} "
        "for means",
        "Errors use the smaller numbers. {what}",
    ),
    "few-groups": (
        "warning",
        "rows of {named} are of few groups ({value:.0f} at least): {cost}",
        "Record rows of at least {threshold:.0f} groups in every regime; or name the column with "
        "--batch instead, if groups differ only by an offset.",
    ),
    "covariate-differs": (
        "warning",
        "the covariate {named} has another mean or spread here than in the control",
        "If rows were taken at other times, nothing. If the intervention acts on it, it is no "
        "covariate: leave it among the features.",
    ),
    "missing-values": (
        "info",
        "{gaps:,} of {rows:,} rows have missing values, which the others fill in by EM; it costs "
        "most in {regime!r}: {own:,} rows count as {worth:,} complete ones for covariances and "
        "{of_means:,.0f} for means",
        "Nothing to do: this was asked for. It holds where a value's absence does not depend on "
        "the value itself.",
    ),
    "drifting-control": (
        "warning",
        "{what} from the beginning of the file to its end, by more than chance allows",
        "Compare each intervention with control rows of its own time, or remove the trend.",
    ),
    "drifting-control/mostly": (
        "error",
        "{what}, by more than its rows vary, from the beginning of the file to its end, by more "
        "than chance allows",
        "Compare each intervention with control rows of its own time, or remove the trend.",
    ),
    # -- several clients ----------------------------------------------------------------------
    "duplicated-client": (
        "error",
        "its control rows are those of client {other!r}",
        "Keep one of the two: the same rows must not count twice.",
    ),
    "near-copy": (
        "warning",
        "its regimes are closer to those of client {other!r} than independent rows can be: most "
        "rows seem to be the same",
        "Keep one of the two if they are: the same rows must not count twice.",
    ),
    "disconnected": (
        "warning",
        "the clients fall into {value:.0f} groups without a common label ({parts})",
        "Add a client with labels of two groups; `jigsaw design` proposes one.",
    ),
    "lonely-labels": (
        "info",
        "{what} known to one client only: {shown}",
        "Check their spelling; no other client can confirm what that client says about them.",
    ),
    "unseen-pairs": (
        "info",
        "{what}, so only other relations can settle {them}: {shown}",
        "Add a client that has both labels; `jigsaw design` proposes one.",
    ),
    "always-confounded": (
        "info",
        "{what} confounded in every client that has both{sure}: {shown}",
        "Add a client that also accesses the hidden cause; `jigsaw design` proposes one.",
    ),
    "not-linear": (
        "warning",
        "the regimes of {clients} contradict a linear system: the system or the sensors are not "
        "linear, or some latents are not counted; nothing is stated about ancestors",
        "Hard interventions that shift the mean would settle it in a system that is not linear. "
        "If the sensors are not, transform the features so that they respond linearly; or say with "
        "n_latent (in study.toml, per client) that some latents have no label.",
    ),
    "label-differs": (
        "warning",
        "the label seems to mean something else here than at the other sites: several pairs of it "
        "contradict what the others say together; they are left out",
        "Check what the site applied under this label, and whether two labels are exchanged.",
    ),
    "not-hard/across": (
        "warning",
        "the interventions on {regime!r} are called hard, but the sites' effects on it differ "
        "beyond chance, so its target still listens to its causes at some of them, or the systems "
        "differ",
        'They count as soft at every site. Call an intervention "hard" only if its target could '
        "not respond to its causes.",
    ),
    "effects-apart": (
        "warning",
        "the effects that its hard interventions show stand apart from those of the other sites: "
        "{far} of {effects} differ by more than two standard errors",
        "None of its effects is used. Check its labels, which of its interventions are hard, and "
        "whether it measures the same system.",
    ),
    "sites-differ": (
        "warning",
        "{having} an effect of {ancestor!r} on {descendant!r}, and {lacking} none: that sites "
        "differ is {value:,.0f} times as probable as one truth for all",
        "The verdict on this pair is an average over the sites. Ask what differs between them, or "
        "recover them apart.",
    ),
    "knowledge-contradicted": (
        "warning",
        "the data contradict what you said: {said}; without your word they decide the opposite",
        "Your word stands. Check the direction of the arrow, the tiers and the labels.",
    ),
}


def finding(
    name: str, value: float | None = None, threshold: float | None = None, /, **words: Any
) -> Finding:
    """The finding of this name in `FINDINGS`, with its measurement, its place and its words.

    Parameters
    ----------
    name : str
    value, threshold : float, optional
    **words
        `client` and `regime`, where it was observed; `severity`, where the measurement decides it;
        and what the message and the remedy name. Both may also name the numbers and the regime.

    Examples
    --------
    >>> from jigsaw_crl.diagnostics.findings import finding
    >>> finding("like-regimes", 0.4, 1.0, client="lab-1", regime="pump", other="valve").severity
    'warning'
    """
    severity, message, remedy = FINDINGS[name]
    client, regime = words.get("client"), words.get("regime")
    known = {"value": value, "threshold": threshold, "label": regime, **words}
    return Finding(
        name.split("/")[0],
        words.get("severity", severity),
        message.format(**known),
        remedy.format(**known),
        value,
        threshold,
        client,
        regime,
    )
