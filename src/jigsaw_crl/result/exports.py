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
from jigsaw_crl.base.files import write_text

__all__ = [
    "FORMATS",
    "export_graph",
    "order_csv",
    "to_adjacency_csv",
    "to_dot",
    "to_graphml",
    "to_json",
]

# Characters that XML cannot hold, whatever the escaping.
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_graphml(order: GlobalOrder, *, closure: bool = False) -> str:
    """GraphML text, nodes named by their labels.

    A character that XML cannot hold becomes U+FFFD.

    Examples
    --------
    >>> import networkx as nx
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> sorted(nx.parse_graphml(to_graphml(order)).edges) == sorted(order.hasse().edges)
    True
    """
    graph = _graph(order, closure)
    clean = {label: _NOT_IN_XML.sub("\ufffd", label) for label in graph}
    if len(set(clean.values())) < len(clean):
        raise InputError(
            "two labels differ only in characters that XML cannot hold",
            "Use DOT, JSON or CSV, or rename the labels.",
        )
    return "\n".join(nx.generate_graphml(nx.relabel_nodes(graph, clean))) + "\n"


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

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> to_adjacency_csv(order).splitlines()[0]
    ',z1,z2,z3,z4,z5'
    """
    table = nx.to_pandas_adjacency(_graph(order, closure), dtype=np.dtype(int))
    return str(table.to_csv(lineterminator="\n"))


def order_csv(order: GlobalOrder) -> str:
    """The table of `GlobalOrder.to_frame` as CSV, numbers with four decimals.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> order_csv(order).splitlines()[1]
    'z1,z2,ancestor,1.0000,2,0,,'
    """
    table = order.to_frame().to_csv(index=False, lineterminator="\n", float_format="%.4f")
    return str(table)


FORMATS = {".graphml": to_graphml, ".dot": to_dot, ".json": to_json, ".csv": to_adjacency_csv}


def export_graph(
    order: GlobalOrder, path: str | os.PathLike[str], *, closure: bool = False
) -> Path:
    """Write the order's graph in the format that the file's ending names.

    Parameters
    ----------
    order : GlobalOrder
    path : path
        Ending in .graphml, .dot, .json (node-link) or .csv (adjacency).
    closure : bool
        Every ancestor pair rather than the Hasse diagram.

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
    return write_text(target, write(order, closure=closure))


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
