"""The order as a graph for other programs: GraphML, DOT, node-link JSON and an adjacency table.

Each function takes a `GlobalOrder` and writes the Hasse diagram of its decided pairs, or with
``closure=True`` all of them, edges from ancestor to descendant. All can be read back by networkx.
`order_csv` writes every ordered pair with its verdict.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import networkx as nx
import numpy as np

from jigsaw_crl.assembly import GlobalOrder
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import check_output, write_text
from jigsaw_crl.base.labels import csv_cell

__all__ = [
    "FORMATS",
    "export_graph",
    "order_csv",
    "to_adjacency_csv",
    "to_dot",
    "to_graphml",
    "to_json",
]


def to_graphml(order: GlobalOrder, *, closure: bool = False) -> str:
    """GraphML text, nodes named by their labels.

    Examples
    --------
    >>> import networkx as nx
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> sorted(nx.parse_graphml(to_graphml(order)).edges) == sorted(order.hasse().edges)
    True
    """
    return "\n".join(nx.generate_graphml(_graph(order, closure))) + "\n"


def to_dot(order: GlobalOrder, *, closure: bool = False) -> str:
    """DOT text for Graphviz; ancestors on top.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> print(to_dot(order).splitlines()[0])
    digraph order {
    """
    graph = _graph(order, closure)
    lines = ["digraph order {", "  rankdir=TB;", "  node [shape=box, style=rounded];"]
    lines += [f"  {_quoted(label)};" for label in graph]
    for a, d, about in graph.edges(data=True):
        lines.append(f"  {_quoted(a)} -> {_quoted(d)} [probability={about['probability']:.4f}];")
    return "\n".join([*lines, "}"]) + "\n"


def to_json(order: GlobalOrder, *, closure: bool = False) -> str:
    """Node-link JSON, as `networkx.node_link_graph(..., edges="edges")` reads it.

    Examples
    --------
    >>> import json
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> sorted(json.loads(to_json(order)))
    ['directed', 'edges', 'graph', 'multigraph', 'nodes']
    """
    document = nx.node_link_data(_graph(order, closure), edges="edges")
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def to_adjacency_csv(order: GlobalOrder, *, closure: bool = False) -> str:
    """CSV table with one row and one column per label: 1 where the row is above the column.

    A label that a spreadsheet would take as a formula begins with an apostrophe.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> to_adjacency_csv(order).splitlines()[0]
    ',z1,z2,z3,z4,z5'
    """
    table = nx.to_pandas_adjacency(_graph(order, closure), dtype=np.dtype(int))
    table = table.rename(index=csv_cell, columns=csv_cell)
    return str(table.to_csv(lineterminator="\n"))


def order_csv(order: GlobalOrder) -> str:
    """The table of `GlobalOrder.to_frame` as CSV, numbers with four decimals.

    A label that a spreadsheet would take as a formula begins with an apostrophe.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> order_csv(order).splitlines()[1]
    'z1,z2,ancestor,1.0000,2,0,,'
    """
    frame = order.to_frame()
    for column in ("ancestor", "descendant"):
        frame[column] = frame[column].map(csv_cell)
    return str(frame.to_csv(index=False, lineterminator="\n", float_format="%.4f"))


FORMATS = {".graphml": to_graphml, ".dot": to_dot, ".json": to_json, ".csv": to_adjacency_csv}

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
    text = write(order, closure=closure)
    beginning = re.compile(_BEGINNINGS[target.suffix.lower()])
    check_output(target, lambda seen: bool(beginning.match(seen)), force=force, what="such a graph")
    return write_text(target, text)


def _graph(order: GlobalOrder, closure: bool) -> nx.DiGraph[str]:
    if not closure:
        return order.hasse()
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(order.labels)
    for a, d in sorted(order.pairs()):
        graph.add_edge(a, d, probability=order.probability(a, d))
    return graph


def _quoted(label: str) -> str:
    """A label as a DOT string, with quotes, backslashes and line breaks escaped."""
    inner = label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inner}"'
