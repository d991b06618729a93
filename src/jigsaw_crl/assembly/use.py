"""How far what the clients sent is used: the one place where anything is set aside.

A `Panel` is never edited. Everything that is not believed, or not believed in full, is said here:
how far each client counts, which labels a client says nothing about, which labels were not
intervened on as hard as claimed, and whether ancestry is withheld altogether. Leaving one client
out is another `Use`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.assembly.panel import Panel
from jigsaw_crl.base.arrays import BoolArray, FloatArray

__all__ = ["FIRST_RATE", "Use"]

# Error rate of statements that come without one of their own, until the study tells.
FIRST_RATE = 0.02


@dataclass(frozen=True, eq=False)
class Use:
    """How a panel is used.

    Parameters
    ----------
    weights : array, shape (n_clients,)
        How far each client counts, from 0 (ignored) to 1.
    rate : float
        Error rate of statements that come without log Bayes factors.
    soft : frozenset of str
        Labels whose interventions are not believed to be hard.
    silent : frozenset of (str, str)
        Client and label: what the client says about pairs of this label does not count.
    withheld : frozenset of str
        Clients from which nothing is concluded about ancestors, as when the system is not linear.
    copies : tuple of tuple of int
        Clients that sent the same evidence. The first of a group counts, the others do not.
    """

    weights: FloatArray
    rate: float = FIRST_RATE
    soft: frozenset[str] = frozenset()
    silent: frozenset[tuple[str, str]] = frozenset()
    withheld: frozenset[str] = frozenset()
    copies: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def all_of(cls, panel: Panel) -> Use:
        """Everything counts."""
        return cls(np.ones(len(panel.rows)))

    def with_copies(self, k: int) -> list[int]:
        """Client k and everyone who sent the same evidence."""
        return next((list(group) for group in self.copies if k in group), [k])

    @property
    def shares(self) -> FloatArray:
        """What copies leave of each client's weight, shape (n_clients,): 0 or 1."""
        out = np.ones(len(self.weights))
        for _, *others in self.copies:
            out[others] = 0.0
        return out

    @property
    def trusted(self) -> BoolArray:
        """Clients that count at least half, shape (n_clients,)."""
        return np.asarray(self.weights >= 0.5)

    def labels_of(self, panel: Panel, k: int) -> tuple[BoolArray, BoolArray]:
        """Of client k: labels that are not believed hard, and labels about which it is silent."""
        names = [panel.labels[i] for i in panel.rows[k].members]
        silent = {label for client, label in self.silent if client == panel.rows[k].client}
        return (
            np.array([name in self.soft for name in names]),
            np.array([name in silent for name in names]),
        )
