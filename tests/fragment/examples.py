"""Fragments for tests: one with every field filled, and a strategy for any fragment."""

import json

import numpy as np
from hypothesis import strategies as st

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.labels import label_fault, label_key, normal_label
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.fragment.fragment import Fragment, Statements

LABELS = ("a", "b", "c", "d")
BLOCKS = (frozenset("ab"), frozenset("c"), frozenset("d"))
ORDER = PartialOrder.from_pairs(BLOCKS, [(BLOCKS[0], BLOCKS[1]), (BLOCKS[1], BLOCKS[2])])
DISTRICTS = (frozenset("a"), frozenset("b"), frozenset("c"), frozenset("d"))


def evidence(seed=0, size=4):
    rng = np.random.default_rng(seed)
    ancestor, district = rng.normal(size=(2, size, size)) * 9, rng.normal(size=(size, size))
    ancestor[:, 0, 1] = np.nan
    for matrix in ancestor:
        np.fill_diagonal(matrix, np.nan)
    lean = np.abs(rng.normal(size=(size, size)))
    lean[0, 1] = lean[1, 0] = np.nan
    single = tuple(rng.random(size) < 0.5)
    return BayesFactors((0.5, 0.05), ancestor, district + district.T, lean + lean.T, single)


def statements():
    ancestor = np.zeros((4, 4), dtype=np.int8)
    ancestor[0, 2], ancestor[0, 1], ancestor[1, 0] = 1, -1, -1
    spouses = frozenset([frozenset("ab")])
    return Statements(ancestor, ((frozenset("ab"), "d"),), spouses)


def fragment(client="lab-1", **changes):
    whole = {
        "client": client,
        "method": "null-cone",
        "labels": LABELS,
        "blocks": BLOCKS,
        "block_order": ORDER,
        "districts": DISTRICTS,
        "bayes": evidence(),
        "n_samples": {"control": 100, "a": 50},
        "findings": (
            Finding("weak", "warning", "seen", "do", 0.25, None, client, "a"),
            Finding("odd", "info", "seen", "", None, 3.0, client),
        ),
        "basis": np.arange(24.0).reshape(4, 6),
        **changes,
    }
    return Fragment(**whole)


def document(**changes):
    written = json.loads(fragment().to_json())
    if isinstance(changes.get("client"), str):
        written["findings"] = [{**f, "client": changes["client"]} for f in written["findings"]]
    return {**written, **changes}


def assert_same(one, two):
    assert one.to_json() == two.to_json()
    for name in ("client", "method", "labels", "outcome", "findings", "districts", "blocks"):
        assert getattr(one, name) == getattr(two, name)
    assert one.block_order == two.block_order
    assert np.array_equal(one.evidence, two.evidence, equal_nan=True)
    assert (one.n_samples is None) == (two.n_samples is None)
    assert dict(one.n_samples or {}) == dict(two.n_samples or {})


@st.composite
def fragments(draw):
    text = st.text(min_size=1, max_size=8).map(normal_label).filter(lambda s: not label_fault(s))
    labels = draw(st.lists(text, min_size=1, max_size=6, unique_by=label_key))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    group = rng.integers(0, len(labels), len(labels))
    blocks = tuple(
        frozenset(x for x, g in zip(labels, group, strict=True) if g == value)
        for value in np.unique(group)
    )
    relation = np.triu(rng.random((len(blocks),) * 2) < 0.5, 1)
    return Fragment(
        draw(text),
        "null-cone",
        tuple(labels),
        blocks,
        PartialOrder.from_matrix(blocks, relation),
        bayes=evidence(int(rng.integers(1e9)), len(labels)) if len(labels) > 1 else None,
    )


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=8,
)

# With lone surrogates, which JSON can escape and UTF-8 cannot hold.
_ANY_TEXT = st.text(st.characters(), max_size=8)


@st.composite
def mutations(draw, text):
    """The text of a JSON object with a few characters or one field changed."""
    if draw(st.booleans()):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(start + 8, len(text))))
        return text[:start] + draw(_ANY_TEXT) + text[end:]
    document = json.loads(text)
    field = draw(st.sampled_from(sorted(document)) | _ANY_TEXT)
    if draw(st.booleans()):
        document[field] = draw(JSON_VALUES | _ANY_TEXT)
    else:
        document.pop(field, None)
    return json.dumps(document)


def assert_one_line(error, client=None):
    """The message is one line of readable length that can be written to a file."""
    assert client is None or error.client == client
    text = str(error)
    assert "\n" not in text
    assert len(text) < 1000
    text.encode("utf-8")
