"""From files and tables to clients.

>>> import pathlib, tempfile
>>> import numpy as np, pandas as pd
>>> import jigsaw_crl as jc
>>> rng = np.random.default_rng(0)
>>> frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["left", "right"])
>>> frame["regime"] = ["control"] * 40 + ["pump"] * 20
>>> with tempfile.TemporaryDirectory() as folder:
...     frame.to_csv(pathlib.Path(folder) / "lab-1.csv", index=False)
...     study = jc.read_study(folder)
>>> study["lab-1"].n_samples
{'control': 40, 'pump': 20}
"""

from jigsaw_crl.study.folder import Study
from jigsaw_crl.study.moments_file import merge_clients, write_moments
from jigsaw_crl.study.reading import client_from_table, read_client, read_one, read_study

__all__ = [
    "Study",
    "client_from_table",
    "merge_clients",
    "read_client",
    "read_one",
    "read_study",
    "write_moments",
]
