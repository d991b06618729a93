"""Rows of a simulated client seen through many sensors."""

import numpy as np

import jigsaw_crl as jc


def wide_regimes(columns, n=300, *, latents=5, noise=0.3, unequal=0.5, seed=0):
    """Rows by regime, the control first, through many sensors of unequal noise.

    `noise` is relative to the signal of a typical sensor.
    """
    world = jc.simulate.random_world(n_latent=latents, n_clients=1, coverage=1.0, seed=seed)
    control, others = world.rows(0, n)
    regimes = {"control": control, **dict(sorted(others.items()))}
    rng = np.random.default_rng([seed, columns])
    mixing = rng.normal(size=(control.shape[1], columns))
    typical = np.sqrt(np.mean((control @ mixing).var(axis=0)))
    sizes = noise * typical * np.exp(unequal * rng.normal(size=columns))
    return {k: x @ mixing + rng.normal(size=(len(x), columns)) * sizes for k, x in regimes.items()}


def probabilities(fragment):
    """What the evidence says, with even odds before; 0.5 where it says nothing."""
    return np.nan_to_num(1 / (1 + np.exp(-fragment.evidence)), nan=0.5)
