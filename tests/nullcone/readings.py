"""Readings of clients, and what is true of them, for tests."""

from typing import Any

import numpy as np

import jigsaw_crl as jc
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.client.white import whiten
from jigsaw_crl.nullcone import reading
from jigsaw_crl.truth.simulate.views import Truth

__all__ = ["read", "relations", "true_lines"]


def read(client: jc.Client, **options: Any) -> reading.Reading:
    """The reading of a client, without checks."""
    return reading.read(reading.see(whiten(client)), len(client.labels), **options)


def true_lines(truth: Truth, labels: tuple[str, ...], W: FloatArray) -> FloatArray:
    """The unit q of each label in the coordinates W, `q_j = W G b_j` by row."""
    effects = np.linalg.inv(np.eye(len(truth.labels)) - truth.marginal.A)
    q = (W @ truth.mixing @ effects).T[[truth.labels.index(x) for x in labels]]
    return np.asarray(q / np.linalg.norm(q, axis=1, keepdims=True))


def relations(truth: Truth, labels: tuple[str, ...]) -> tuple[BoolArray, BoolArray]:
    """Pairs of labels that lie in one district, and those that are ancestor and descendant."""
    home = {x: i for i, group in enumerate(truth.districts) for x in group}
    same = np.array([[home[a] == home[d] for d in labels] for a in labels])
    return same, truth.order.restrict(labels).matrix
