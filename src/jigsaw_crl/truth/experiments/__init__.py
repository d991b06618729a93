"""The paper's experiments, run again: six scenarios against n, and three sensitivity tables.

==============  ===============================================================================
`published`     the numbers the paper prints, as data
`scenarios`     what is run: worlds, sample sizes, replicates, and the seed of each
`methods`       the recoveries that are compared
`replicate`     one piece of work: a calibration run, or an evaluation
`store`         finished pieces on disk, one file each
`execution`     many pieces on several processes, or on a cluster
`summary`       means and standard errors
`plots`         one picture per scenario
`pages`         the comparison with the printed numbers, in Markdown and HTML
`reproduce`     all of it: `reproduce.run("tables", out="reproduce/")`
==============  ===============================================================================
"""
