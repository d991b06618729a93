"""Which labels would share a district if a client accessed a given set? Compiled.

In a directed graph, two accessed labels are joined if some label that is not accessed reaches both
through labels that are not accessed. Districts are the connected components.
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.compiled import compiled

__all__ = ["chances", "mismatch", "swap_gains"]


@compiled(kept=False)
def _root(parent, i):  # type: ignore[no-untyped-def]
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@compiled(kept=False)
def _districts(source, target, first, last, accessed, touched, parent):  # type: ignore[no-untyped-def]
    """Fill `parent` with a union-find of districts.

    Edges `first` to `last` run from `source` to `target`, descendants before their ancestors, so
    that what a hidden label reaches is complete before its parents need it. All that one hidden
    label reaches is one district, so `touched` keeps one representative.
    """
    for i in range(parent.shape[0]):
        parent[i] = i
        touched[i] = -1
    for e in range(first, last):
        s, t = source[e], target[e]
        if accessed[s]:
            continue
        reached = t if accessed[t] else touched[t]
        if reached < 0:
            continue
        if touched[s] < 0:
            touched[s] = reached
        else:
            parent[_root(parent, touched[s])] = _root(parent, reached)


@compiled()
def chances(source, target, bounds, accessed, a, d):  # type: ignore[no-untyped-def]
    """Share of the graphs in which labels a[i] and d[i] are accessed and in different districts.

    Parameters
    ----------
    source, target : array of int, shape (n_edges,)
        Edges of all graphs, one graph after the other; within each, descendants come first.
    bounds : array of int, shape (n_graphs + 1,)
    accessed : array of bool, shape (p,)
    a, d : array of int, shape (n_pairs,)
    """
    p = accessed.shape[0]
    touched, parent = np.empty(p, dtype=np.int64), np.empty(p, dtype=np.int64)
    out = np.zeros(a.shape[0])
    for g in range(bounds.shape[0] - 1):
        _districts(source, target, bounds[g], bounds[g + 1], accessed, touched, parent)
        for i in range(a.shape[0]):
            if accessed[a[i]] and accessed[d[i]]:
                out[i] += _root(parent, a[i]) != _root(parent, d[i])
    return out / (bounds.shape[0] - 1)


@compiled()
def swap_gains(source, target, bounds, accessed, a, d, worth, leave, enter):  # type: ignore[no-untyped-def]
    """Expected worth of the separated pairs after label leave[i] is replaced by enter[i].

    -1 stands for no label, so that labels can also be added.
    """
    p = accessed.shape[0]
    touched, parent = np.empty(p, dtype=np.int64), np.empty(p, dtype=np.int64)
    out = np.zeros(leave.shape[0])
    trial = accessed.copy()
    for c in range(leave.shape[0]):
        if leave[c] >= 0:
            trial[leave[c]] = False
        if enter[c] >= 0:
            trial[enter[c]] = True
        total = 0.0
        for g in range(bounds.shape[0] - 1):
            _districts(source, target, bounds[g], bounds[g + 1], trial, touched, parent)
            for i in range(a.shape[0]):
                if trial[a[i]] and trial[d[i]] and _root(parent, a[i]) != _root(parent, d[i]):
                    total += worth[i]
        out[c] = total / (bounds.shape[0] - 1)
        if enter[c] >= 0:
            trial[enter[c]] = False
        if leave[c] >= 0:
            trial[leave[c]] = True
    return out


@compiled()
def mismatch(source, target, bounds, views, found):  # type: ignore[no-untyped-def]
    """Number of pairs on which each graph and the clients' districts differ, shape (n_graphs,).

    Parameters
    ----------
    views : array of bool, shape (n_clients, p)
        The labels each client accesses.
    found : array of int, shape (n_clients, p)
        The district the client found for each of them.
    """
    p = views.shape[1]
    touched, parent = np.empty(p, dtype=np.int64), np.empty(p, dtype=np.int64)
    out = np.zeros(bounds.shape[0] - 1)
    for g in range(bounds.shape[0] - 1):
        for k in range(views.shape[0]):
            _districts(source, target, bounds[g], bounds[g + 1], views[k], touched, parent)
            for i in range(p):
                if views[k, i]:
                    for j in range(i + 1, p):
                        if views[k, j]:
                            one = _root(parent, i) == _root(parent, j)
                            out[g] += one != (found[k, i] == found[k, j])
    return out
