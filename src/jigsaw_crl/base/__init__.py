"""Building blocks that every other package may import; they import only each other.

==============  ====================================================================
`algebra`       pseudo-inverse and inverse root of a positive matrix
`arrays`        names of the array types in signatures
`documents`     closed JSON documents, checked by pydantic
`errors`        exceptions that say what is wrong, where, and what to do
`findings`      observations about the data, with a severity and a remedy
`frozen`        mappings and arrays that cannot be changed
`knowledge`     what the user knows about the order before the data
`labels`        the rule for labels and names, and how they are printed safely
`text`          plural forms, short lists, suggestions for mistyped names
`files`         atomic writes, locks; system errors become an `InputError` that names the file
`nulls`         null distributions of eigenvalues and of shifts of the mean
`order`         `PartialOrder`: closure, covers, restriction, relabelling
`problems`      several errors of a file or a study as one
`terminal`      answers, notes and progress of the commands
`threads`       clients that run at once; threads of linear algebra
==============  ====================================================================
"""
