"""Readings of clients, and what is true of them, for tests."""

import numpy as np

from jigsaw_crl.client.white import whiten
from jigsaw_crl.nullcone import reading

__all__ = ["read", "relations", "true_lines"]


def read(client, **options):
    """The reading of a client, without checks."""
    return reading.read(reading.see(whiten(client)), len(client.labels), **options)


def true_lines(truth, labels, W):
    """The unit q of each label in the coordinates W, `q_j = W G b_j` by row."""
    effects = np.linalg.inv(np.eye(len(truth.labels)) - truth.marginal.A)
    q = (W @ truth.mixing @ effects).T[[truth.labels.index(x) for x in labels]]
    return np.asarray(q / np.linalg.norm(q, axis=1, keepdims=True))


def relations(truth, labels):
    """Pairs of labels that lie in one district, and those that are ancestor and descendant."""
    home = {x: i for i, group in enumerate(truth.districts) for x in group}
    same = np.array([[home[a] == home[d] for d in labels] for a in labels])
    return same, truth.order.restrict(labels).matrix
