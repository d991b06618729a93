"""The data of the page's script, and what the page says about every pair.

The certificate of a pair is the text of `str(order.explain(a, d))`; sentences about its effect
follow. Texts are compressed per ancestor, so that a click decompresses one row. Of large orders not
all are in the page, which then says how to print the others.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly import GlobalOrder
from jigsaw_crl.assembly.effects import UNEQUAL, PooledEffects
from jigsaw_crl.assembly.verdict import NO, OPEN
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.text import few, signed
from jigsaw_crl.evidence.effects import INTERVAL
from jigsaw_crl.report.drawing import Picture
from jigsaw_crl.result.folder import graphml, order_csv

__all__ = ["pack_texts", "page_data"]

# Ordered pairs whose texts go into the page; 300 labels have 89,700. Of more, "not ancestor" is
# left out, and then what is undetermined.
MOST_PAIRS = 120_000
# Stands in the page for a text that is not in it.
LEFT_OUT = (
    "This certificate is not in the page, which would be too long. Print it with: jigsaw explain "
    "DIR ANCESTOR DESCENDANT"
)


def page_data(order: GlobalOrder, diagram: Picture, svg: str) -> dict[str, Any]:
    """The data that the page's script needs; `svg` is the diagram as a file."""
    pairs, p, n = order.table, len(order.labels), len(order.fragments)
    total, error = np.full((2, p, p), np.nan)
    sites = np.full((3, n, p, p), np.nan)
    for _, effects, some in order.known_effects:
        total[some], error[some] = effects.estimate[some], effects.error[some]
        by_site = effects.by_site, effects.site_error, effects.set_aside
        sites[:, :, some] = [table[:, some] for table in by_site]
    table: dict[str, npt.NDArray[Any]] = {
        "verdict": pairs.verdict + 1,
        "yes": pairs.yes,
        "no": pairs.no,
        "probability": pairs.probability,
        "evidence": pairs.evidence if order.mode == "evidence" else np.full((p, p), np.nan),
        "rests": pairs.rests_on,
        "contested": pairs.contested,
        "total": total,
        "error": error,
    }
    texts = {
        "order.csv": order_csv(order),
        "hasse.graphml": graphml(order.hasse()),
        "diagram.svg": svg,
    }
    places = [(shape.y, shape.x) for shape in diagram.shapes]
    return {
        "mode": order.mode,
        "labels": list(order.labels),
        "layered": sorted(range(p), key=lambda i: places[i]),
        "columns": list(table),
        "table": _tables(*table.values()),
        "texts": pack_texts(order),
        "left_out": LEFT_OUT,
        "clients": [_client(order, k, sites[:, k]) for k in range(n)],
        "interval": INTERVAL if order.known_effects else None,
        "effect": next((kind for kind, _, _ in order.known_effects), ""),
        "files": {name: _pack(text.encode()) for name, text in texts.items()},
    }


def _client(order: GlobalOrder, k: int, sizes: FloatArray) -> dict[str, Any]:
    """What one client brings: stance and evidence, and its effects if it measured any."""
    fragment, claims = order.panel.fragments[k], order.said.claims[k]
    if claims.bayes is not None:
        brought = np.where(claims.says, claims.log_factor, np.nan)
        np.fill_diagonal(brought, np.nan)
    else:
        rows = [fragment.index(order.labels[i]) for i in claims.members]
        brought = fragment.evidence[np.ix_(rows, rows)]
    tables, own = [claims.stance, brought], np.ix_(claims.members, claims.members)
    if not np.isnan(sizes[0][own]).all():
        tables += [table[own] for table in sizes]
    members = claims.members.tolist()
    return {"name": claims.client, "members": members, "table": _tables(*tables)}


def _tables(*tables: npt.NDArray[Any]) -> str:
    """Tables as floats, row by row and one after the other."""
    return _pack(b"".join(table.astype("<f8").tobytes() for table in tables))


def _pack(data: bytes) -> str:
    """Bytes compressed with gzip, in base64; the same bytes always give the same text."""
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode("ascii")


def pack_texts(order: GlobalOrder) -> list[str]:
    """For each ancestor, a compressed JSON list with the texts of each descendant.

    The first text of a pair is its certificate, the others are sentences about it. A pair without
    a certificate in the page has no texts.
    """
    wanted = ~np.eye(len(order.labels), dtype=bool)
    for said in (NO, OPEN):
        if wanted.sum() > MOST_PAIRS:
            wanted &= order.verdicts != said
    rows = []
    for a in range(len(order.labels)):
        texts: list[list[str]] = [[] for _ in order.labels]
        for d in np.flatnonzero(wanted[a]).tolist():
            texts[d] = [str(order.certificate(a, d)), *_about(order, a, d)]
        rows.append(_pack(json.dumps(texts, ensure_ascii=False).encode()))
    return rows


def _about(order: GlobalOrder, a: int, d: int) -> list[str]:
    """What the certificate of a pair does not say: about its bound, and about its effect."""
    said, effects, sentences = order.verdicts[a, d], order.effects, []
    if said == NO and order.mode == "exact":
        sentences.append("Exact moments exclude an effect of any size.")
    elif said == NO and np.isnan(order.table.bounds.value[a, d]):
        sentences.append(
            "No client measured this pair: the verdict follows from other pairs, and excludes no "
            "size of effect by itself."
        )
    if effects is None:
        return sentences
    if not effects.known[a, d]:
        if said != NO:
            sentences.append(
                "The size of its effect is unknown: no client with hard interventions on both "
                "labels measured it."
            )
        return sentences
    if said == NO:
        measured = _with_interval(effects.estimate[a, d], INTERVAL * effects.error[a, d])
        sentences.append(
            f"Measured: {measured} standard deviations. It counts as zero, because "
            f"{order.labels[a]} is not an ancestor of {order.labels[d]}."
        )
    else:
        sentences.append(_direct(order, a, d))
    sentences.append(_agreement(effects, a, d))
    if effects.set_aside[:, a, d].any():
        sentences.append("×: set aside, because it stands far apart from the other clients.")
    if loose := [order.labels[i] for i in (a, d) if not effects.oriented[i]]:
        sentences.append(
            "The sign says nothing: no intervention shows in which direction it moved "
            f"{' and '.join(loose)}."
        )
    return sentences


def _with_interval(value: float, half: float) -> str:
    """An effect with its 95 % interval."""
    if half == 0:
        return f"{signed(value)} (exact)"
    return f"{signed(value)} ({signed(value - half)} to {signed(value + half)})"


def _direct(order: GlobalOrder, a: int, d: int) -> str:
    """Whether the effect of a pair is direct."""
    effects, direct = order.effects, order.direct_effects
    assert effects is not None
    assert direct is not None
    size = _with_interval(direct.weight[a, d], direct.half[a, d])
    verdict, between = direct.verdict(a, d), direct.through(a, d)
    if verdict == "direct":
        if between:
            return (
                f"There is a direct effect: {size}. A part of what was measured may pass through "
                f"{few(between)}."
            )
        if signed(direct.weight[a, d]) == signed(effects.estimate[a, d]):
            return "The effect is direct: it does not pass through other labels."
        return f"There is a direct effect, which does not pass through other labels: {size}."
    if verdict == "not direct":
        if order.verdicts[a, d] == OPEN:
            return (
                "There is no direct effect: if there is one at all, it passes through other labels."
            )
        return "The effect is not direct: it passes through other labels."
    if between:
        return f"This is the total effect; a path through {few(between)} is not excluded."
    return f"Whether it is direct is undetermined: the direct part is estimated at {size}."


def _agreement(effects: PooledEffects, a: int, d: int) -> str:
    """Whether the clients agree about the size of an effect."""
    if effects.sites[a, d] < 2:
        return "Only one client measured it, so that agreement between clients cannot be tested."
    p = float(effects.heterogeneity[a, d])
    odds = "less than 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
    by_chance = f"by chance, differences as large as theirs have a probability of {odds}."
    if p < UNEQUAL:
        return f"The clients differ: {by_chance} The interval includes the spread between clients."
    if p < 0.1:
        return f"The clients differ somewhat more than usual: {by_chance}"
    return f"The clients agree: {by_chance}"
