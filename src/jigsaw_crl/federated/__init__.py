"""Sites keep their data; a coordinator gets fragments, as files or through NVFlare.

Only the modules `executor`, `controller` and `simulator` need NVFlare
(``pip install 'jigsaw-crl[federated]'``); the way of files does without it.
"""
