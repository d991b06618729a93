"""All findings of the diagnostics: name → severity, message, remedy.

A check measures and decides; what is said then stands here. `finding` fills the words of a message
in. A name with a variant, such as "uneven-noise/unknown", is the finding "uneven-noise". To add a
check, add its rows here, and list it in `docs/reference/findings.md`. Findings leave the client:
they have ratios, and no number in the units of the data but those of a column that they name.
"""

from __future__ import annotations

from typing import Any

from jigsaw_crl.base.findings import Finding, Severity
from jigsaw_crl.base.text import number

# Factors below this are not worth a line.
NOTICEABLE = 2.0

# An error excludes the regime or the client that it names.
ERRORS = {
    "several-targets": (
        "the regime moves more than one latent: a third direction differs from the control",
        "Check what was applied; a regime that intervenes on several latents is left out.",
    ),
    "unclear-regime": (
        "more directions of the regime change than one target explains, and it is {used}: it acts "
        "on more than one latent; or {reasons}",
        "See the other findings about this client; the data do not tell these reasons apart.",
    ),
    "no-signal/moved": (
        "regimes differ from the control ({how}), but none clearly in the directions of the "
        "latents: the order cannot be read from that",
        "Check the units of the features; otherwise intervene more strongly or take more rows.",
    ),
    "no-signal": (
        "no regime differs from the control: the data carry no signal about the order",
        "Check the regime column; otherwise intervene more strongly or take more rows.",
    ),
    "duplicated-regime": (
        "the regime holds the same rows as {other!r}",
        "Replace the copy by the rows that belong there.",
    ),
    "swapped-control": (
        "{control!r} and {label!r} look swapped: with {label!r} as the control every regime moves "
        "one latent, as given they do not",
        "Check which rows are observational.",
    ),
    "drifting-gains": (
        "the sensors' gains differ between regimes, by about {percent:.2g} %: every regime then "
        "seems to move all of its labels",
        "Calibrate the sensors, or take control rows with each intervention.",
    ),
    "not-linear/client": (
        "{unclear} of {regimes} move more directions than one target explains, and the features "
        "have light tails: the system or the sensors are not linear",
        "Transform the features so that they respond linearly. If the system bends and not the "
        "sensors, apply hard interventions that shift the mean, and say that they are hard.",
    ),
    "not-linear/sensors": (
        "its regimes contradict a linear system, and the linear relations between the features do "
        "not hold either ({amount} times what chance allows): the sensors bend, or their gains or "
        "offsets change between regimes; the client is left out",
        "Transform the features so that they respond linearly, calibrate the sensors, or name the "
        "column with the batch of each row (--batch).",
    ),
    "sensor-noise/above": (
        "the sensors add noise of {percent} of the signal's variance, not all of which can be told "
        "from the signal: what is read could be noise, and the client is left out",
        "Average repeated readings, or leave out features that hardly respond.",
    ),
    "outliers": (
        "a few rows carry the variance of {feature!r}: it is that of {value:.1f} rows",
        "Look for outliers; {what}.",
    ),
    "missing-code": (
        "{feature!r} is {code} in some rows: it seems to mean a missing reading",
        'Write na = ["{code}"] in study.toml, and leave such rows out with --drop-missing '
        '(missing="drop").',
    ),
    "duplicated-client": (
        "its control rows are those of client {other!r}",
        "Keep one of the two: the same rows must not count twice.",
    ),
}
WARNINGS = {
    "bent-sensor": (
        "the feature {feature!r} breaks the linear relations between the features ({value:.3g} "
        "times what chance allows), and without it they hold in all regimes: it bends, or its "
        "gain, offset or noise changes; the null-cone method reads the client without it",
        "None, if the others are enough. Otherwise transform it so that it responds linearly.",
    ),
    "off-target": (
        "the regime acts on {other!r} as well; it is used without the direction of {other!r}",
        "Nothing is said about {label!r} and {other!r} here: intervene on one of them alone.",
    ),
    "weak-intervention": (
        "the regime cannot be told from the control, so nothing is said about its label{need}",
        "Apply it more strongly, or take more rows.",
    ),
    "weak-intervention/moved": (
        "the regime differs from the control ({how}), but not clearly in the directions of the "
        "latents, so nothing is said about its label",
        "Check the units of the features, apply it more strongly, or take more rows.",
    ),
    "weak-intervention/discounted": (
        "the regime differs from the control in its rows as they are, but not beyond what other "
        "findings about this client take off; nothing is said about its label",
        "See the other findings about this client.",
    ),
    "mean-only": (
        "the regime moves the mean, and in the directions that are read as latents the covariance "
        "does not clearly change: nothing is said about the ancestors of its label",
        "Apply one that also changes how much the target varies, or depends on its parents.",
    ),
    "no-shift": (
        "the system is not linear, and this intervention is not called hard or does not clearly "
        "shift the mean of its target: nothing is said about its label",
        "Apply a hard intervention that shifts the mean.",
    ),
    "not-hard": (
        "the intervention is called hard, but effects then run both ways between its label and "
        "another one: its target still listens to its causes, or noise of the sensors or a "
        "response that is not linear makes it look so",
        'It counts as soft. Call it "soft" if its target could still respond to its causes.',
    ),
    "excess-spread": (
        "the regimes differ from the control in all directions, {amount} times as much as "
        "independent rows do: rows of one subject are alike, gains drift, or sensors bend",
        "Errors are taken as that much larger, and means are not used. Name the column with the "
        "subject or run of each row (--group), and check the sensors.",
    ),
    "batch-offset": (
        "the means of the regimes differ in directions that no intervention on one target "
        "explains: regimes were measured in different batches, or sensors are not linear",
        "The means are not used. Name the column with the batch of each row (--batch) and measure "
        "control rows in every batch, or transform sensors that bend.",
    ),
    "batch-without-control": (
        "{labels}: some or all rows are in batches without control rows; {cost}",
        "Measure control rows in every batch.",
    ),
    "uneven-noise/unknown": (
        "the sensors' noise is uneven, and {why}, so equal noise is taken off: effects may be "
        "stated that are not there",
        "{what}, or divide each feature by the size of its noise.",
    ),
    "uneven-units": (
        "the feature {feature!r} spreads {amount} times as widely as another; where the noise of "
        "single sensors cannot be told, the noise floor is that of the widest",
        "Leave it out with --ignore if it is a time or an index; otherwise divide each column by "
        "its standard deviation in the control.",
    ),
    "fewer-latents": (
        "only {value:.0f} of {threshold:.0f} directions stand out of the sensors' noise",
        "Take more rows, or measure features that show the missing latents.",
    ),
    "more-latents/given": (
        "the features carry {directions}, but n_latent is {used}: {used} are used",
        "Write {state}, or leave n_latent out.",
    ),
    "clipped": (
        "the readings of {feature!r} stop at about {stop}, its {side} value, in {regimes}, with "
        "up to {share} of the rows there: the sensor is clipped and does not respond linearly",
        "Record it with a wider range, or leave the feature out with --ignore.",
    ),
    "heavy-tails": (
        "rows have heavy tails ({feature!r} has kurtosis {amount}): its {rows:,} rows count as "
        "{worth:,.0f}{more}",
        "Errors use the smaller number. Leave spoilt rows out with --trim 0.05 (trim=0.05).",
    ),
    "dependent-rows": (
        "{alike}: {rows:,} rows of {where!r} count as {n:,} for covariances and {mean_rows:,.0f} "
        "for means",
        "Errors use the smaller numbers. {what}: more rows of the same kind add little.",
    ),
    "few-groups": (
        "rows of {named} come from few groups (as few as {value:.0f}): {cost}",
        "Record at least {threshold:.0f} groups in every regime; or name the column with --batch.",
    ),
    "covariate-differs": (
        "the covariate {named} has another mean or spread here than in the control",
        "If the intervention acts on it, it is no covariate: leave it among the features.",
    ),
    "drifting-control": (
        "the mean of the control rows moves from the beginning of the file to its end, by more "
        "than {than}",
        "Compare each intervention with control rows of its own time, or remove the trend.",
    ),
    "disconnected": (
        "the clients fall into {value:.0f} groups without a common label ({parts})",
        "Add a client with labels of two groups; `jigsaw design` proposes one.",
    ),
    "not-linear": (
        "the regimes of {clients} contradict a linear system: the system or the sensors are not "
        "linear, or some latents are not counted; nothing is stated about ancestors",
        "Hard interventions that shift the mean would settle it. If the sensors are not linear, "
        "transform the features; or say with n_latent (in study.toml, per client) that some "
        "latents have no label.",
    ),
    "label-differs": (
        "the label seems to mean something else here than at the other clients: several of its "
        "pairs contradict them",
        "Check what the client applied under this label, and whether two labels are exchanged.",
    ),
    "not-hard/across": (
        "the interventions on {regime!r} are called hard, but the clients' effects on it differ "
        "beyond chance: its target still listens to its causes at some of them, or the systems "
        "differ",
        'They count as soft at every client. Call one "hard" only if its target could not respond '
        "to its causes.",
    ),
    "effects-apart": (
        "{far} of {effects} of its hard interventions differ from those of the other clients by "
        "more than two standard errors",
        "None of its effects is used. Check its labels, and which interventions are hard.",
    ),
    "sites-differ": (
        "{having} an effect of {ancestor!r} on {descendant!r}, and {lacking} none: that clients "
        "differ is {value:,.0f} times as probable as one truth for all",
        "The verdict is an average over the clients. Ask what differs between them, or recover "
        "them apart.",
    ),
    "knowledge-contradicted": (
        "the data contradict what you said: {said}; without your word they decide the opposite",
        "Your word stands. Check the direction of the arrow, the tiers and the labels.",
    ),
}
INFORMATION = {
    "like-regimes": (
        "the regime cannot be told from {other!r}, though both differ from the control: they may "
        "be one intervention under two labels, or act on one pathway",
        "Check the labels. Rows of these two regimes do not tell which comes first.",
    ),
    "idle-sensors": (
        "{named}: constant within every regime, or another feature again, perhaps in other units; "
        "the null-cone method reads the client without",
        "Nothing to do, unless a sensor is stuck, or a column was copied by mistake.",
    ),
    "leaning-lines": (
        "the line of this target leans on that of another target by more than a linear system "
        "with these latents explains",
        "None by itself. Where most clients have such lines and light tails, nothing is stated.",
    ),
    "nonlinear-response": (
        "what depends on this label does not respond linearly: its regime moves more than one "
        "target does in a linear system (probability by chance 1e-{value:.0f})",
        "None, unless sensors bend: those must be transformed. It is read without linearity; its "
        "effects are averages at the dose applied.",
    ),
    "batch-wander": (
        "the means of batches differ by about {size:.2g} standard deviations{where}, which is more "
        "than chance allows",
        "Nothing to do: shifts of the mean are taken against control rows of the same batch.",
    ),
    "light-tails": (
        "the features have lighter tails than linear responses to Gaussian noise (kurtosis "
        "{least:.3g} at the least): sensors or the system saturate, or the noise is bounded",
        "None by itself. If sensors saturate, transform the features so that they respond "
        "linearly; a system that saturates can be read by hard interventions that shift the mean.",
    ),
    "uneven-noise": (
        "the sensors' noise is {most} of the variance of its feature at the noisiest and {least} "
        "at the quietest; each feature is divided by the size of its noise",
        "None needed. Average repeated readings of the noisiest sensors for a sharper answer.",
    ),
    "reduced-columns": (
        "{what}; single columns are not checked for outliers, copies or gains that differ",
        "Nothing to do. To check single columns, read fewer than {wide} of them.",
    ),
    "sensor-noise": (
        "the sensors add noise of {percent} of the signal's variance{gap}; in the weakest "
        "direction {weakest} of all variance is noise",
        "The floor is subtracted. For a sharper answer, average repeated readings or add features.",
    ),
    "more-latents": (
        "{labels}, but the features carry {directions}{why}: {used} are used",
        "{todo} write {state}.",
    ),
    "unseen-latents": (
        "{features} for {labels}: a latent without a label could not be {seen}, and none is "
        "assumed",
        "If there is one: write {state}.{more}",
    ),
    "missing-values": (
        "{gaps:,} of {rows:,} rows have missing values, which the others fill in by EM; it costs "
        "most in {where!r}: {own:,} rows count as {worth:,} complete ones for covariances and "
        "{of_means:,.0f} for means",
        "Nothing to do, if a value's absence does not depend on the value itself.",
    ),
    "lonely-labels": (
        "{what} known to one client only: {shown}",
        "Check their spelling; no other client can confirm what is said about them.",
    ),
    "unseen-pairs": (
        "{what} {are} in no client together, so only other relations can settle {them}: {shown}",
        "Add a client that has both labels; `jigsaw design` proposes one.",
    ),
    "always-confounded": (
        "{what} confounded in every client that has both{sure}: {shown}",
        "Add a client that also accesses the hidden cause; `jigsaw design` proposes one.",
    ),
}
FINDINGS: dict[str, tuple[Severity, str, str]] = {
    **{name: ("error", *texts) for name, texts in ERRORS.items()},
    **{name: ("warning", *texts) for name, texts in WARNINGS.items()},
    **{name: ("info", *texts) for name, texts in INFORMATION.items()},
}


def finding(
    name: str, value: float | None = None, threshold: float | None = None, /, **words: Any
) -> Finding:
    """The finding of this name in `FINDINGS`, with its measurement, its place and its words.

    The words are `client` and `regime`, where it was observed; `severity`, where the measurement
    decides it; and what the message and the remedy name beside the numbers.

    Examples
    --------
    >>> from jigsaw_crl.diagnostics.findings import finding
    >>> finding("off-target", 2.4, 1.5, client="lab-1", regime="pump", other="valve").severity
    'warning'
    """
    severity, message, remedy = FINDINGS[name]
    client, regime = words.get("client"), words.get("regime")
    amount = "" if value is None else number(value)
    known = {"value": value, "amount": amount, "threshold": threshold, "label": regime, **words}
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
