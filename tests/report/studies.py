"""Results to look at: small and large ones, and one whose labels try to break the page."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

import jigsaw_crl as jc
from jigsaw_crl import Fragment, PartialOrder
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.evidence.effects import Effects, Sizes
from jigsaw_crl.fragment.fragment import Statements
from jigsaw_crl.result.result import Result
from jigsaw_crl.truth.simulate import Intervention

from ..assembly.clients import noisy, weighs, with_totals

PLANT = ("pump", "valve", "flow", "tank", "heater", "mixer")
PLANT_EFFECTS = (
    ("pump", "valve", 0.9),
    ("pump", "flow", 0.5),
    ("valve", "flow", -1.1),
    ("tank", "flow", 0.8),
    ("heater", "mixer", 1.0),
    ("flow", "mixer", 0.7),
)
PLANT_SITES = {
    "north": ("pump", "valve", "tank", "flow"),
    "east": ("pump", "valve", "tank", "flow"),
    "south": ("pump", "valve", "tank", "flow"),
    "west": ("flow", "heater", "mixer", "tank"),
    "hill": ("pump", "valve", "heater"),
    "delta": ("valve", "flow", "tank", "mixer"),
    "coast": ("pump", "valve", "flow"),
}


HOSTILE = (
    "<script>window.broken = 1</script>",
    '"><img src=x onerror="window.broken = 2">',
    'it\'s "quoted" & <b>bold</b>',
    "🧩🔬 emoji",
    "long " + "x" * 195,
    "</script><script>window.broken = 3</script>",
    "{{ 7 * 7 }} ${7 * 7} \\u003c",
    "מימין לשמאל",
)


def chain_fragment(client, *labels):
    """A client that is sure of a chain, each label an ancestor of all that follow."""
    blocks = tuple(frozenset([x]) for x in labels)
    p = len(labels)
    return Fragment(
        client,
        "null-cone",
        labels,
        blocks,
        PartialOrder.from_pairs(blocks, list(pairwise(blocks))),
        blocks,
        statements=Statements(np.triu(np.ones((p, p), dtype=np.int8), 1)),
    )


def sized_fragment(client, *labels, error=0.05):
    """The same, with hard interventions: every label has an effect of ±0.5 on those that follow."""
    p = len(labels)
    sign = np.where(np.arange(p) % 2, -1.0, 1.0)
    value = 0.5 * np.triu(sign[:, None] * sign, 1)
    sizes = Sizes(value, np.full((p, p), error))
    hard = Effects((True,) * p, (1,) * p, sizes, sizes)
    return replace(chain_fragment(client, *labels), hard=hard)


def assembled(*fragments, **about):
    order = jc.assemble(fragments)
    return Result({f.client: f for f in fragments}, order, **about)  # type: ignore[arg-type]


def hostile_result():
    """Two clients with overlapping chains of hostile labels, under hostile names."""
    findings = tuple(
        Finding("check", "warning", f"saw {label}", f"do {label}", client=label, regime=label)
        for label in HOSTILE
    )
    return assembled(
        chain_fragment(HOSTILE[0], *HOSTILE[:5]),
        chain_fragment(HOSTILE[1], *HOSTILE[4:]),
        diagnostics=findings,
        provenance={"study": HOSTILE[0], "sources": {HOSTILE[0]: HOSTILE[1]}},
    )


def weighing_fragment(client, ancestor, descendant, evidence):
    """A client with evidence that one label is an ancestor of the other, and not the reverse."""
    factors = [[[0.0, evidence], [-9.0, 0.0]]]
    return weighs(client, (ancestor, descendant), factors, [[0.0, -30.0], [-30.0, 0.0]])


def contested_result():
    """Two clients, of which the second speaks against the verdict on (x, y)."""
    return assembled(
        weighing_fragment("one", "x", "y", 9.0), weighing_fragment("two", "x", "y", -3.2)
    )


def plant_world():
    """Seven sites of a plant, with hard interventions."""
    effects = np.zeros((6, 6))
    for cause, effect, strength in PLANT_EFFECTS:
        effects[PLANT.index(effect), PLANT.index(cause)] = strength
    return jc.simulate.world_from_graph(
        effects,
        list(PLANT_SITES.values()),
        (6,) * len(PLANT_SITES),
        seed=4,
        names=PLANT,
        client_names=list(PLANT_SITES),
        intervention=Intervention("hard", shift=1.0),
    )


def plant_result():
    """The plant, with one site whose effect of pump on valve stands apart."""
    found = jc.recover(plant_world().clients(n_samples=3_000), interventions="hard")
    fragments = dict(found.fragments)
    odd = fragments["coast"]
    value = odd.hard.total.value.copy()
    value[odd.index("pump"), odd.index("valve")] += 0.8
    fragments["coast"] = with_totals(odd, value)
    return assembled(*fragments.values(), provenance={"study": "plant"})


def random_result(n_latent, n_clients, coverage, seed=0):
    """Nearly perfect clients of a random world, assembled."""
    world = jc.simulate.random_world(n_latent, n_clients, coverage, seed=seed)
    about = {"study": f"{n_latent} latents", "seed": seed}
    return assembled(*noisy(world, 0.02, seed), provenance=about)
