"""One site: its moments in every regime, and the space of its latents.

==============  ====================================================================
`client`        `Client`: a control regime and labelled interventions
`checks`        checks on what a client is built from
`spectrum`      the leading space of a client's features and its noise floor
`extremes`      outermost eigenpairs of many regimes
==============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.client.client import CONTROL, Client

__all__ = ["CONTROL", "Client"]
