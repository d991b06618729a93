"""Which sensors carry which label, site by site: a picture and a table.

Only a result that was made from rows has them: loadings stay where the columns are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jigsaw_crl.base.text import signed
from jigsaw_crl.result.result import Result

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Carriers", "carriers"]

# Sites, labels and sensors that are drawn; `result.loadings` has them all.
MOST_SITES, MOST_LABELS, MOST_SENSORS = 12, 40, 30
# Size of a cell, and room for the names of labels and sensors, in pixels.
CELL, LEFT, TOP = 24, 150, 110


@dataclass(frozen=True)
class Carriers:
    """What the page shows of the sensors of one site.

    Parameters
    ----------
    site : str
    width, height : int
        Size of the picture.
    labels, sensors : tuple of (str, int)
        Names and their places.
    cells : tuple of (int, int, float, bool, str)
        Place, share, whether the sensor rises, and what the cell says.
    rows : tuple of (str, str, str, str, str)
        Label, its sensor, what this does when the label rises, by how much, and the share.
    """

    site: str
    width: int
    height: int
    labels: tuple[tuple[str, int], ...]
    sensors: tuple[tuple[str, int], ...]
    cells: tuple[tuple[int, int, float, bool, str], ...]
    rows: tuple[tuple[str, str, str, str, str], ...]


def carriers(result: Result) -> list[Carriers]:
    """The sensors of each site whose rows were read here."""
    if all(fragment.carried is None for fragment in result.fragments.values()):
        return []
    frame = result.loadings
    return [_of_site(str(site), own) for site, own in frame.groupby("site")][:MOST_SITES]


def _of_site(site: str, frame: pd.DataFrame) -> Carriers:
    labels = list(dict.fromkeys(frame["label"]))[:MOST_LABELS]
    frame = frame[frame["label"].isin(labels)]
    largest = frame.groupby("sensor", sort=False)["share"].max().sort_values(ascending=False)
    sensors = list(largest.index[:MOST_SENSORS])
    x = {name: LEFT + CELL * i for i, name in enumerate(sensors)}
    y = {name: TOP + CELL * i for i, name in enumerate(labels)}
    cells: list[tuple[int, int, float, bool, str]] = []
    rows: dict[str, tuple[str, str, str, str, str]] = {}
    for _, row in frame.iterrows():
        label, sensor, share, response = (row[x] for x in ("label", "sensor", "share", "response"))
        rises = bool(response > 0)
        if sensor in x:
            says = f"{share:.0%} of {sensor} comes from {label}"
            cells.append((x[sensor], y[label], min(float(share), 1.0), rises, says))
        if row["up"] or label not in rows:
            size = f"{signed(response)} {row['unit']}".strip() + f" per {row['per']}"
            named = f"{sensor} (named by you)" if row["up"] else sensor
            rows[label] = (label, named, "rises" if rises else "falls", size, f"{share:.0%}")
    return Carriers(
        site,
        LEFT + CELL * len(sensors) + 8,
        TOP + CELL * len(labels) + 8,
        tuple(y.items()),
        tuple(x.items()),
        tuple(cells),
        tuple(rows.values()),
    )
