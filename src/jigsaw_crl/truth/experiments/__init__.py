"""The paper's experiments: six scenarios against n, and three sensitivity tables.

`plan` has the worlds, sample sizes, replicates, their seeds and the numbers that the paper prints,
`reproduce` runs them, and `pages` compares the results with the printed numbers.
"""
