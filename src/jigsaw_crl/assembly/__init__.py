"""From fragments to one global order, with a verdict and a certificate for every pair.

==============  ====================================================================
`panel`         what the clients sent, never edited, and how far it is used
`evidence`      what each client says under a use, and all of them together
`suspicions`    clients that sent the same, or contradict a linear system
`dissent`       clients that stand against the others
`posterior/`    probabilities of orders, and trust in each client
`entailment`    what follows from facts, and how
`verdict`       the answers, and `decide`: the one rule of a verdict
`pairs`         `PairTable`: everything that is known about every pair, bounds too
`conclusion`    `conclude`: the one road from fragments to an order and its findings
`order`         `GlobalOrder`: the result
`effects`, `directions`, `graph`  sizes of effects
`explanation`   why a pair has its verdict, and is that right?
`design`, `futures`  what further data would settle
==============  ====================================================================
"""
