"""Federations: sites keep their data and send fragments, as files or through NVFlare.

NVFlare (``pip install '.[federated]'``) is needed by `executor`, `controller`, `kits`,
`running` and `simulator`; signed files work without it.
"""
