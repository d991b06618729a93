"""Rows of a simulated client seen through many sensors."""

import numpy as np

import jigsaw_crl as jc


def wide_regimes(
    columns: int,
    n: int = 300,
    *,
    latents: int = 5,
    noise: float = 0.3,
    unequal: float = 0.5,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Rows by regime, the control first; `noise` is relative to the signal of each sensor."""
    world = jc.simulate.random_world(n_latent=latents, n_clients=1, coverage=1.0, seed=seed)
    control, regimes = world.rows(0, n)
    return seen_through(columns, {"control": control, **regimes}, noise, unequal, seed)


def seen_through(
    columns: int, regimes: dict[str, np.ndarray], noise: float, unequal: float, seed: int
) -> dict[str, np.ndarray]:
    """The same rows through many sensors of unequal noise."""
    rng = np.random.default_rng([seed, columns])
    mixing = rng.normal(size=(regimes["control"].shape[1], columns))
    typical = np.sqrt(np.mean((regimes["control"] @ mixing).var(axis=0)))
    sizes = noise * typical * np.exp(unequal * rng.normal(size=columns))
    return {k: x @ mixing + rng.normal(size=(len(x), columns)) * sizes for k, x in regimes.items()}


def client_from(regimes: dict[str, np.ndarray], **options: object) -> jc.Client:
    others = {label: rows for label, rows in sorted(regimes.items()) if label != "control"}
    return jc.Client.from_samples(
        "lab-1", observational=regimes["control"], interventions=others, **options
    )


def probabilities(fragment: jc.Fragment) -> np.ndarray:
    """What the evidence says, with even odds before; 0.5 where it says nothing."""
    return np.nan_to_num(1 / (1 + np.exp(-fragment.evidence)), nan=0.5)
