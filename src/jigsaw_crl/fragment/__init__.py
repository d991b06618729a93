"""The fragment: what a client says, and all that leaves it.

==============  ====================================================================
`fragment`      `Fragment` and its parts
`file`          the JSON documents
`reading`       fragment files, written at a site and read by a coordinator
`latents`       rows to latents, and which sensors carry which latent
==============  ====================================================================
"""
