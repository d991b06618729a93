"""Random worlds of all kinds, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from jigsaw_crl.truth.simulate import FAMILIES, INTERVENTIONS, random_world

worlds = st.builds(
    random_world,
    n_latent=st.integers(2, 12),
    n_clients=st.integers(1, 3),
    coverage=st.sampled_from([0.3, 0.6, 0.9, 1.0]),
    seed=st.integers(0, 2**32 - 1),
    graph=st.sampled_from(sorted(FAMILIES)),
    intervention=st.sampled_from(sorted(INTERVENTIONS)),
)
