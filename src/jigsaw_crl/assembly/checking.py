"""Is a certificate right? It is compared with that of a new assembly of the fragments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np

from jigsaw_crl.assembly.certificate import Certificate
from jigsaw_crl.assembly.conclusion import conclude
from jigsaw_crl.assembly.order import GlobalOrder, Method, Options
from jigsaw_crl.base.knowledge import NOTHING, Knowledge
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["CertificateChecker", "check_certificate"]


def check_certificate(
    certificate: Certificate,
    fragments: Iterable[Fragment],
    knowledge: Knowledge = NOTHING,
) -> str:
    """What is wrong with a certificate; the empty string if nothing is.

    The fragments are assembled again with the same seed. Steps, probability, reason, bound, effect
    and the client that the verdict rests on must be those that this gives.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import jigsaw_crl as jc
    >>> from jigsaw_crl.assembly import check_certificate
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> certificate = order.explain("z1", "z2")
    >>> check_certificate(certificate, order.fragments)
    ''
    >>> check_certificate(replace(certificate, probability=0.5), order.fragments)
    'the fragments give another probability'
    """
    return CertificateChecker(fragments, knowledge).check(certificate)


class CertificateChecker:
    """Checks many certificates of one set of fragments, which are assembled at most once.

    Parameters
    ----------
    fragments : iterable of Fragment
    knowledge : Knowledge
        What the user said.
    """

    def __init__(self, fragments: Iterable[Fragment], knowledge: Knowledge = NOTHING) -> None:
        self.knowledge = knowledge
        self.fragments = tuple(fragments)
        self._orders: dict[Options, GlobalOrder] = {}

    def check(self, certificate: Certificate) -> str:
        """What is wrong with the certificate; empty if nothing is."""
        method: Method = "paper" if certificate.mode == "paper" else "null-cone"
        options = Options(method, certificate.seed, certificate.smallest_effect, self.knowledge)
        if options not in self._orders:
            self._orders[options] = conclude(self.fragments, options=options).order
        order = self._orders[options]
        unknown = {certificate.ancestor, certificate.descendant}.difference(order.labels)
        if unknown:
            return f"no fragment has {', '.join(sorted(unknown))}"
        given = asdict(certificate)
        again = asdict(order.explain(certificate.ancestor, certificate.descendant))
        for name in given:
            if not _alike(given[name], again[name]):
                return f"the fragments give another {name.replace('_', ' ')}"
        return ""


def _alike(given: Any, other: Any) -> bool:
    """Are two values equal, numbers up to rounding?"""
    if isinstance(given, float) and isinstance(other, float):
        return given == other or bool(np.isclose(given, other))
    if isinstance(given, dict) and isinstance(other, dict):
        return given.keys() == other.keys() and all(_alike(given[k], other[k]) for k in given)
    if isinstance(given, tuple) and isinstance(other, tuple):
        return len(given) == len(other) and all(map(_alike, given, other))
    return bool(given == other)
