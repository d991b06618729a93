"""The order as a graph for other programs: GraphML, DOT, node-link JSON and an adjacency table.

Each function takes a `GlobalOrder` and writes the Hasse diagram of its decided pairs, or with
``closure=True`` all of them, edges from ancestor to descendant. With ``direct=True`` it writes the
direct effects that hard interventions reveal, with weights and intervals. All can be read back by
networkx. `order_csv` writes every ordered pair with its verdict, `effects_csv` every total effect.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import networkx as nx
import numpy as np

from jigsaw_crl.assembly import GlobalOrder
from jigsaw_crl.assembly.tables import all_effects_frame, direct_graph
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import check_output, write_text
from jigsaw_crl.base.labels import csv_cell

__all__ = [
    "FORMATS",
    "effects_csv",
    "export_graph",
    "order_csv",
    "to_adjacency_csv",
    "to_dot",
    "to_graphml",
    "to_json",
]


def to_graphml(order: GlobalOrder, *, closure: bool = False, direct: bool = False) -> str:
    """GraphML text, nodes named by their labels.

    Examples
    --------
    >>> import networkx as nx
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> sorted(nx.parse_graphml(to_graphml(order)).edges) == sorted(order.hasse().edges)
    True
    """
    return "\n".join(nx.generate_graphml(_graph(order, closure, direct))) + "\n"


def to_dot(order: GlobalOrder, *, closure: bool = False, direct: bool = False) -> str:
    """DOT text for Graphviz; ancestors on top.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> print(to_dot(order).splitlines()[0])
    digraph order {
    """
    graph = _graph(order, closure, direct)
    lines = ["digraph order {", "  rankdir=TB;", "  node [shape=box, style=rounded];"]
    lines += [f"  {_quoted(label)};" for label in graph]
    for a, d, about in graph.edges(data=True):
        if direct:
            style = "solid" if about["verdict"] == "direct" else "dashed"
            said = f'label="{about["weight"]:+.2f}", style={style}'
        else:
            said = f"probability={about['probability']:.4f}"
        lines.append(f"  {_quoted(a)} -> {_quoted(d)} [{said}];")
    return "\n".join([*lines, "}"]) + "\n"


def to_json(order: GlobalOrder, *, closure: bool = False, direct: bool = False) -> str:
    """Node-link JSON, as `networkx.node_link_graph(..., edges="edges")` reads it.

    Examples
    --------
    >>> import json
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> sorted(json.loads(to_json(order)))
    ['directed', 'edges', 'graph', 'multigraph', 'nodes']
    """
    document = nx.node_link_data(_graph(order, closure, direct), edges="edges")
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def to_adjacency_csv(order: GlobalOrder, *, closure: bool = False, direct: bool = False) -> str:
    """CSV table with one row and one column per label: 1 where the row is above the column.

    A label that a spreadsheet would take as a formula begins with an apostrophe.
    For direct effects it has their weights, and 0 where there is no edge or it is undetermined.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> to_adjacency_csv(order).splitlines()[0]
    ',z1,z2,z3,z4,z5'
    """
    graph = _graph(order, closure, direct)
    if direct:
        open_edges = [(a, d) for a, d in graph.edges if graph[a][d]["verdict"] != "direct"]
        graph.remove_edges_from(open_edges)
    table = nx.to_pandas_adjacency(graph, dtype=np.dtype(float if direct else int))
    table = table.rename(index=csv_cell, columns=csv_cell)
    return str(table.to_csv(lineterminator="\n", float_format="%.6g"))


def order_csv(order: GlobalOrder) -> str:
    """The table of `GlobalOrder.to_frame` as CSV, numbers with four decimals.

    A label that a spreadsheet would take as a formula begins with an apostrophe.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> order_csv(order).splitlines()[1]
    'z1,z2,ancestor,1.0000,2,0,,,,False'
    """
    frame = order.to_frame()
    for column in ("ancestor", "descendant"):
        frame[column] = frame[column].map(csv_cell)
    return str(frame.to_csv(index=False, lineterminator="\n", float_format="%.4f"))


def effects_csv(order: GlobalOrder) -> str:
    """The table of `Result.effects` as CSV, numbers with six digits."""
    table = all_effects_frame(order)
    for column in ("cause", "effect"):
        table[column] = table[column].map(csv_cell)
    return str(table.to_csv(index=False, lineterminator="\n", float_format="%.6g"))


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
    text = write(order, closure=closure, direct=direct)
    beginning = re.compile(_BEGINNINGS[target.suffix.lower()])
    check_output(target, lambda seen: bool(beginning.match(seen)), force=force, what="such a graph")
    return write_text(target, text)


def _graph(order: GlobalOrder, closure: bool, direct: bool = False) -> nx.DiGraph[str]:
    if direct:
        if closure:
            raise InputError("closure and direct name two graphs", "Pass one of them.")
        if order.effects is None:
            raise InputError(
                "there are no direct effects: no intervention is said to be hard",
                'If the interventions are, recover with interventions="hard".',
            )
        return direct_graph(order)
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
