"""The order as a graph for other programs, and its tables as CSV.

The graph is the Hasse diagram of the decided pairs, all of them, or the direct effects that hard
interventions reveal. `export_graph` writes it as GraphML, DOT, node-link JSON or an adjacency
table, which networkx can all read back.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from jigsaw_crl.assembly import GlobalOrder
from jigsaw_crl.assembly.tables import all_effects_frame, direct_graph, effects_of
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import check_output, write_text
from jigsaw_crl.base.labels import csv_cell

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FORMATS", "effects_csv", "export_graph", "graphml", "order_csv"]


def order_csv(order: GlobalOrder) -> str:
    """The table of `GlobalOrder.to_frame` as CSV, numbers with four decimals.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> order_csv(order).splitlines()[1]
    'z1,z2,ancestor,1.0000,2,0,,,,,0,False'
    """
    return _csv(order.to_frame(), "%.4f")


def effects_csv(order: GlobalOrder) -> str:
    """The table of `Result.effects` as CSV, numbers with six digits."""
    return _csv(all_effects_frame(order), "%.6g")


def _csv(table: pd.DataFrame, number: str) -> str:
    """A table whose first two columns are labels.

    A label that a spreadsheet would take as a formula begins with an apostrophe.
    """
    for column in table.columns[:2]:
        table[column] = table[column].map(csv_cell)
    return str(table.to_csv(index=False, lineterminator="\n", float_format=number))


def graphml(graph: nx.DiGraph[str]) -> str:
    """GraphML text, nodes named by their labels."""
    return "\n".join(nx.generate_graphml(graph)) + "\n"


def _dot(graph: nx.DiGraph[str]) -> str:
    """DOT text for Graphviz; ancestors on top."""
    lines = ["digraph order {", "  rankdir=TB;", "  node [shape=box, style=rounded];"]
    # Strings have the same escapes as in JSON.
    quoted = {label: json.dumps(label, ensure_ascii=False) for label in graph}
    lines += [f"  {name};" for name in quoted.values()]
    for a, d, about in graph.edges(data=True):
        if "weight" in about:
            style = "solid" if about["verdict"] == "direct" else "dashed"
            said = f'label="{about["weight"]:+.2f}", style={style}'
        else:
            said = f"probability={about['probability']:.4f}"
        lines.append(f"  {quoted[a]} -> {quoted[d]} [{said}];")
    return "\n".join([*lines, "}"]) + "\n"


def _node_link(graph: nx.DiGraph[str]) -> str:
    """Node-link JSON, as `networkx.node_link_graph(..., edges="edges")` reads it."""
    document = nx.node_link_data(graph, edges="edges")
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _adjacency(graph: nx.DiGraph[str]) -> str:
    """CSV table with one row and one column per label: 1 where the row is above the column.

    For direct effects it has their weights, and 0 where there is no edge or it is undetermined.
    """
    about = nx.get_edge_attributes(graph, "verdict")
    left_out = [pair for pair, verdict in about.items() if verdict == "undetermined"]
    kept = nx.restricted_view(graph, [], left_out)
    table = nx.to_pandas_adjacency(kept, dtype=np.dtype(float if about else int))
    table = table.rename(index=csv_cell, columns=csv_cell)
    return str(table.to_csv(lineterminator="\n", float_format="%.6g"))


FORMATS = {".graphml": graphml, ".dot": _dot, ".json": _node_link, ".csv": _adjacency}

# How the files of each format begin.
_BEGINNINGS = {
    ".graphml": rb"<graphml |<\?xml [^>]*>\s*<graphml ",
    ".dot": rb"digraph order \{",
    ".json": rb'\{\s*"directed": true,\s*"multigraph": false,\s*"graph"',
    ".csv": rb",[^\r\n]*\r?\n[^\r\n]*,[01]\r?\n",
}


def export_graph(
    order: GlobalOrder,
    path: str | os.PathLike[str],
    *,
    closure: bool = False,
    force: bool = False,
    direct: bool = False,
) -> Path:
    """Write the order's graph in the format that the file's ending names.

    Parameters
    ----------
    order : GlobalOrder
    path : path
        Ending in .graphml, .dot, .json (node-link) or .csv (adjacency).
    closure : bool
        Every ancestor pair rather than the Hasse diagram.
    force : bool
        Overwrite an existing file even if it holds no such graph.
    direct : bool
        The graph of direct effects, as `Result.graph`; it needs hard interventions.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = jc.export_graph(order, Path(folder) / "order.dot")
    ...     written.read_text().splitlines()[0]
    'digraph order {'
    """
    target = Path(path)
    write = FORMATS.get(target.suffix.lower())
    if write is None:
        raise InputError(
            f"there is no graph format for the ending {target.suffix!r}",
            f"Use one of {', '.join(FORMATS)}.",
            path=target,
        )
    if direct and closure:
        raise InputError("closure and direct name two graphs", "Pass one of them.")
    if direct:
        effects_of(order)  # raises if there are none
        graph = direct_graph(order)
    else:
        graph = order.hasse()
    if closure:
        pairs = sorted(order.pairs())
        graph.add_edges_from((a, d, {"probability": order.probability(a, d)}) for a, d in pairs)
    beginning = re.compile(_BEGINNINGS[target.suffix.lower()])
    check_output(target, lambda seen: bool(beginning.match(seen)), force=force, what="such a graph")
    return write_text(target, write(graph))
