"""The result of a recovery, its file and its exports.

==============  ====================================================================
`result`        `Result`
`summary`       what it leaves out, and the sentence that comes first
`provenance`    where it comes from
`difference`    what changed since an earlier one
`document`      `result.json`: schema, writer and reader
`folder`        the result folder, read and written in one step
==============  ====================================================================
"""
