"""Building blocks that every other package may import; they import only each other.

==============  ====================================================================
`errors`        exceptions that say what is wrong, where, and what to do
`findings`      observations about the data, with a severity and a remedy
`text`          plural forms, short lists, suggestions for mistyped names
`files`         atomic writes; system errors become an `InputError` that names the file
`order`         `PartialOrder`: closure, covers, restriction, relabelling
`threads`       the number of threads that linear algebra uses
`compiled`      functions compiled by numba and cached on disk
==============  ====================================================================
"""
