"""The paper's experiments: six scenarios against n, and three sensitivity tables.

==============  ===============================================================================
`published`     the numbers that the paper prints
`scenarios`     plans: worlds, sample sizes, replicates, and the seed of each
`replicate`     the methods that are compared, and one task: a calibration run or an evaluation
`execution`     many tasks on several processes, or on a cluster
`results`       means and standard errors, and the results file
`plots`         one picture per scenario or table
`pages`         the comparison with the printed numbers, in Markdown
`reproduce`     the whole run: `reproduce.run("tables", out="reproduce/")`
==============  ===============================================================================
"""
