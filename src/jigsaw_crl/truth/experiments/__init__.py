"""The paper's experiments: six scenarios against n, and three sensitivity tables.

`published` has the numbers that the paper prints, `plan` the worlds, sample sizes, replicates and
their seeds, `reproduce` runs them, and `pages` compares the results with the printed numbers.
"""
