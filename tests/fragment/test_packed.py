"""Packed fragments: the same fragment in a tenth of the space, or refused in one line."""

from __future__ import annotations

import json
import lzma
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.evidence.effects import Effects, Sizes
from jigsaw_crl.federated.disclosure import rounded
from jigsaw_crl.fragment.fragment import BayesFactors
from jigsaw_crl.fragment.keys import generate_key, read_private_key, read_site_keys
from jigsaw_crl.fragment.packed import PACKED, pack, packable, unpack
from jigsaw_crl.fragment.signing import json_text, open_signed, pack_text, sign_fragment

from .examples import assert_one_line, assert_same, fragment, fragments, statements

FOR = {"study": "reactor", "round_name": "first"}


def sizes(seed, *, error=1.0):
    rng = np.random.default_rng(seed)
    value, errors = rng.normal(size=(4, 4)), error * rng.uniform(0.001, 0.4, (4, 4))
    value[0, 1] = errors[0, 1] = np.nan
    return Sizes(value, errors)


def effects(**options):
    hard = (True, False, True, True)
    total = sizes(1, **options)
    known = np.where(hard, total.value, np.nan), np.where(hard, total.error, np.nan)
    return Effects(hard, (1, 0, 1, 1), Sizes(*known), sizes(2, **options))


def repacked(content):
    """A file with this content, as `pack` compresses it."""
    return PACKED + lzma.compress(content)


def with_head(change, rest=None):
    """The packed example with a changed head."""
    content = lzma.decompress(pack(fragment())[len(PACKED) :])
    size = int.from_bytes(content[:4], "little")
    head = json.loads(content[4 : 4 + size])
    change(head)
    text = json.dumps(head).encode()
    tables = content[4 + size :] if rest is None else rest
    return repacked(len(text).to_bytes(4, "little") + text + tables)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"shares": sizes(3)},
        {"shares": sizes(3), "hard": effects()},
        {"hard": effects(error=0.0), "bayes": None, "statements": statements()},
        {"shares": Sizes(np.full((4, 4), -0.0), np.full((4, 4), 1e3)), "districts": None},
        {"bayes": None, "statements": statements(), "n_samples": None},
    ],
)
def test_a_packed_fragment_is_read_as_it_was_written(changes):
    piece = packable(fragment(**changes))
    assert_same(unpack(pack(piece)).fragment, piece)


@given(fragments())
@settings(max_examples=50)
def test_any_fragment_is_read_as_it_was_written(piece):
    assert_same(unpack(pack(piece)).fragment, packable(piece))


def test_what_a_site_writes_by_default_loses_nothing():
    # `jigsaw fragment` rounds to a sixteenth itself.
    piece = rounded(fragment().without_basis())
    assert_same(unpack(pack(piece)).fragment, piece)


def test_large_factors_keep_their_differences():
    ancestor = np.array([[[0, 9000.0], [-9000, 0]], [[0, 8990.5], [-9000, 0]]])
    district = np.array([[0, 8998.0], [8998, 0]])
    names = ("a", "b")
    blocks = (frozenset("a"), frozenset("b"))
    piece = fragment(
        labels=names,
        blocks=blocks,
        districts=blocks,
        block_order=jc.PartialOrder.from_pairs(blocks, [blocks]),
        bayes=BayesFactors((0.5, 0.08), ancestor, district),
        basis=None,
    )
    bayes = unpack(pack(piece)).fragment.bayes
    assert bayes.ancestor[0, 0, 1] - bayes.ancestor[1, 0, 1] == 9.5
    assert bayes.ancestor[0, 0, 1] - bayes.district[0, 1] == 2.0
    whole, less = piece.bayes.bounded(), bayes.bounded()
    assert np.allclose(whole.ancestor, less.ancestor)
    assert np.allclose(whole.district, less.district)


def test_packing_hardly_moves_a_verdict():
    world = jc.simulate.random_world(12, 6, 0.7, 3)
    pieces = [jc.recover_fragment(c).without_basis() for c in world.clients(5_000)]
    packed = [unpack(pack(piece)).fragment for piece in pieces]
    one, other = jc.assemble(pieces), jc.assemble(packed)
    assert (one.verdicts == other.verdicts).mean() > 0.98
    # Both opposite verdicts on one pair would be more than a change near a threshold.
    assert not (np.abs(one.probabilities - other.probabilities) > 0.2).any()


def test_real_fragments_take_an_eighth_or_less():
    world = jc.simulate.random_world(60, 1, 0.8, 0)
    piece = rounded(jc.recover_fragment(world.client(0, n_samples=4_000)).without_basis())
    assert len(piece.to_json()) > 8 * len(pack(piece))


# -- files ----------------------------------------------------------------------------------------


def test_the_name_of_the_file_chooses(tmp_path):
    piece = packable(fragment())
    packed = jc.save_fragment(piece, tmp_path / "lab-1.fragment.bin")
    plain = jc.save_fragment(piece, tmp_path / "lab-1.fragment.json")
    assert packed.read_bytes().startswith(PACKED)
    assert plain.read_text() == piece.to_json()
    for path in (packed, plain):
        assert_same(jc.read_fragment(path), piece)
        jc.save_fragment(piece, path)  # an earlier fragment is replaced


def test_other_files_are_not_replaced(tmp_path):
    path = tmp_path / "notes.bin"
    path.write_text("mine")
    with pytest.raises(InputError, match=r"notes\.bin"):
        jc.save_fragment(fragment(), path)
    assert path.read_text() == "mine"


# -- signatures -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    """The text of a signed fragment, and the list of keys."""
    folder = tmp_path_factory.mktemp("keys")
    line = generate_key("lab-1", folder / "lab-1.key")
    (folder / "keys.toml").write_text(f'study = "reactor"\n[sites]\n{line}\n')
    key = read_private_key(folder / "lab-1.key")
    text = sign_fragment(packable(fragment()), key, **FOR)
    return text, read_site_keys(folder / "keys.toml")


def test_a_packed_signature_is_that_of_the_json_text(signed):
    text, keys = signed
    packed = pack_text(text)
    opened, plain = open_signed(packed, keys, **FOR), open_signed(text, keys, **FOR)
    assert opened.fragment.to_json() == plain.fragment.to_json()
    assert (opened.digest, opened.signature) == (plain.digest, plain.signature)
    assert json_text(packed) == text


def test_an_altered_packed_fragment_is_refused(signed):
    text, keys = signed
    envelope = json.loads(text)
    inner = json.loads(envelope["fragment"])
    inner["bayes"]["district"][0][0] = 12.0
    envelope["fragment"] = json.dumps(inner)
    with pytest.raises(InputError, match="altered after the site signed it"):
        open_signed(pack_text(json.dumps(envelope, separators=(",", ":"))), keys, **FOR)


def test_signed_and_unsigned_files_are_not_confused(signed, tmp_path):
    text, keys = signed
    path = tmp_path / "lab-1.bin"
    path.write_bytes(pack_text(text))
    with pytest.raises(InputError, match="the fragment is signed"):
        jc.read_fragment(path)
    with pytest.raises(InputError, match="the fragment is not signed"):
        open_signed(pack(fragment()), keys, **FOR)


# -- hostile files --------------------------------------------------------------------------------


def test_a_bomb_is_refused_before_it_is_unpacked():
    labels = [f"x{i}" for i in range(5_000)]

    def grow(head):
        head["fragment"] |= {
            "labels": labels,
            "blocks": [[i] for i in range(5_000)],
            "districts": None,
        }
        head["fragment"]["bayes"]["single"] = []

    data = with_head(grow, rest=bytes(200_000_000))
    tracemalloc.start()
    with pytest.raises(InputError, match="unpacks to more than 100 times its size") as caught:
        unpack(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_one_line(caught.value)
    assert peak < 50e6


@pytest.mark.parametrize(
    "data",
    [
        PACKED,
        PACKED + b"rubbish",
        pack(fragment())[:-9],
        pack(fragment()) + b"more",
        repacked(b""),
        repacked((1 << 31).to_bytes(4, "little")),
        repacked((1 << 20).to_bytes(4, "little") + b"{}"),
        repacked((2).to_bytes(4, "little") + b"{}"),
        repacked((2).to_bytes(4, "little") + b"[]"),
        repacked((4).to_bytes(4, "little") + b"null"),
        with_head(lambda head: head.update(signed=3)),
        with_head(lambda head: head.update(written=[])),
        with_head(lambda head: head["written"].clear()),
        with_head(lambda head: head["fragment"].update(labels=["a"])),
        with_head(dict, rest=b""),
        with_head(dict, rest=bytes(10_000)),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(data):
    with pytest.raises(InputError) as caught:
        unpack(data, path="lab-1.bin")
    assert_one_line(caught.value)
    assert "lab-1.bin" in str(caught.value)


@given(st.data())
@settings(max_examples=300)
def test_changed_bytes_are_refused_in_one_line(data):
    whole = pack(fragment())
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[at] ^= data.draw(st.integers(1, 255))
    try:
        piece = unpack(bytes(changed)).fragment
    except InputError as error:
        assert_one_line(error)
        return
    assert_same(piece, packable(fragment()))  # a byte that says nothing


@given(st.binary(max_size=3_000))
@settings(max_examples=200)
def test_any_content_is_refused_in_one_line(content):
    with pytest.raises(InputError) as caught:
        unpack(repacked(content))
    assert_one_line(caught.value)


@given(st.binary(max_size=400))
@settings(max_examples=200)
def test_any_tables_are_a_fragment_or_refused_in_one_line(tables):
    try:
        unpack(with_head(dict, rest=tables))
    except InputError as error:
        assert_one_line(error)


def test_more_labels_than_allowed_are_refused():
    with pytest.raises(InputError, match="it has 4 labels, 3 are allowed"):
        unpack(pack(fragment()), most_labels=3)
