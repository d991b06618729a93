"""One small client by each constructor."""

import numpy as np

import jigsaw_crl as jc
from jigsaw_crl.moments.regime import Moments

RNG = np.random.default_rng(0)
X0, X1, X2 = (RNG.normal(size=(60, 4)) * scale for scale in (1, 2, 3))
C0, C1, C2 = (np.cov(x.T, bias=True) for x in (X0, X1, X2))


def from_samples(**changes):
    arguments = {"observational": X0, "interventions": {"valve": X1, "pump": X2}, **changes}
    return jc.Client.from_samples("lab-1", **arguments)


def from_covariances(**changes):
    arguments = {
        "observational": C0,
        "interventions": {"valve": C1, "pump": C2},
        "n_samples": 60,
        **changes,
    }
    return jc.Client.from_covariances("lab-1", **arguments)


def from_precisions(**changes):
    arguments = {
        "observational": np.linalg.inv(C0),
        "interventions": {"valve": np.linalg.inv(C1), "pump": np.linalg.inv(C2)},
        "n_samples": 60,
        "n_latent": 4,
        **changes,
    }
    return jc.Client.from_precisions("lab-1", **arguments)


def from_moments(**changes):
    arguments = {
        "control": Moments.from_rows(X0),
        "interventions": {"valve": Moments.from_rows(X1), "pump": Moments.from_rows(X2)},
        **changes,
    }
    return jc.Client.from_moments("lab-1", **arguments)
