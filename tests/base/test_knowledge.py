"""What the user knows: its forms, and what is refused."""

import numpy as np
import pytest

from jigsaw_crl import InputError, Knowledge


def test_tiers_and_pairs_become_facts():
    known = Knowledge([["a"], ["b", "c"], "d"], ["a -> d", ("b", "d")], ["b→c"])
    yes, no = known.facts("abcd")
    assert sorted(map(tuple, np.argwhere(yes).tolist())) == [(0, 3), (1, 3)]
    assert sorted(map(tuple, np.argwhere(no).tolist())) == [
        (1, 0), (1, 2), (2, 0), (3, 0), (3, 1), (3, 2),
    ]  # fmt: skip


def test_what_follows_through_a_label_that_is_gone_is_kept():
    known = Knowledge(ancestor=["a -> b", "b -> c"])
    yes, no = known.facts("ac")
    assert yes.tolist() == [[False, True], [False, False]]
    assert no.tolist() == [[False, False], [True, False]]


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"tiers": "ab"}, "not a list"),
        ({"tiers": [1]}, "not a list of labels"),
        ({"tiers": [["a", "b"], ["a"]]}, "two tiers"),
        ({"ancestor": "a -> b"}, "not a list"),
        ({"ancestor": ["a > b"]}, "names no two labels"),
        ({"ancestor": ["a -> a"]}, "names no two labels"),
        ({"ancestor": ["a -> b", "b -> c", "c -> a"]}, "cycle"),
        ({"ancestor": ["a -> b"], "not_ancestor": ["a -> b"]}, "contradicts itself"),
        ({"ancestor": ["b -> c", "c -> a"], "tiers": [["a"], ["b"]]}, "contradicts itself"),
        ({"ancestor": ["a -> b", "A -> c"]}, "spells one label"),
        ({"tiers": "x" * 3000}, "not a list"),
        ({"tiers": [{"x" * 3000: 1}]}, "not a list of labels"),
        ({"ancestor": ["x" * 3000]}, "names no two labels"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(given, word):
    with pytest.raises(InputError, match=word) as caught:
        Knowledge(**given)
    assert len(str(caught.value)) < 300


def test_a_field_and_a_label_that_are_unknown_are_named():
    with pytest.raises(InputError, match="Did you mean 'tiers'"):
        Knowledge.from_document({"tier": []})
    with pytest.raises(InputError, match=r"'pmp'.*Did you mean 'pump'"):
        Knowledge(ancestor=["pmp -> tank"]).check(["pump", "tank"])


def test_it_is_a_value():
    one, other = (Knowledge([["a"], ["b"]], ["a -> b"]) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert Knowledge.from_document(one.to_document()) == one
    assert str(one) == "tiers a | b; a -> b"
    assert not Knowledge()
