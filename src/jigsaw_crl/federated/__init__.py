"""Federations: sites keep their data and send fragments, as files or through NVFlare.

Keys and signatures are in `keys` and `signing`; the log of used fragments and signed files in
`ledger`; what leaves a site in `disclosure`, and what it answers in `answer`; a round at the
coordinator in `round`; checks of a result in `verifying`. NVFlare (``pip install '.[federated]'``)
is needed by `components`, which it runs, by `kits`, the files of a federation, and by `running`.
"""
