"""Assembly of fragments that are read one at a time, for very many labels."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import check_output, write_file
from jigsaw_crl.base.terminal import print_json, say, working
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.fragment.fragment import Fragment

if TYPE_CHECKING:
    from jigsaw_crl.assembly import GlobalOrder

__all__ = ["assemble_in_passes", "check_size"]

HEADER = b"ancestor,descendant,verdict,probability\n"


def check_size(fragments: Iterable[Fragment]) -> None:
    """Refuse a result folder of more labels than orders are sampled of."""
    from jigsaw_crl.assembly.panel import MOST_SAMPLED

    labels = {label for fragment in fragments for label in fragment.labels}
    if len(labels) > MOST_SAMPLED:
        raise InputError(
            f"there are {len(labels):,} labels, and a result has {MOST_SAMPLED:,} at most",
            "Pass --pairs FILE, which writes the decided pairs alone.",
        )


def _is_table(seen: bytes) -> bool:
    return seen.startswith(HEADER)


def assemble_in_passes(
    paths: list[Path],
    output: Path,
    options: dict[str, Any],
    signed: tuple[Path, str, bool] | None,
    cluster: str | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Assemble the fragments, and write the decided pairs.

    Parameters
    ----------
    paths : list of Path
        Fragments.
    output : Path
    options : dict
        For `assemble`.
    signed : (path, str, bool) or None
        List of the sites' keys, name of the round, and whether its result is made again; None for
        unsigned fragments.
    cluster : str or None
        Address of a Dask scheduler.
    force, as_json : bool
    """
    check_output(output, _is_table, inputs=paths, force=force, what="a table of decided pairs")
    with ExitStack() as stack:
        given: Any = paths
        if signed is not None:
            from jigsaw_crl.federated.received import as_files, in_a_spool, receive_signed

            keys, round_name, again = signed
            keep: Any = in_a_spool if cluster is None else as_files
            receiving = receive_signed(paths, keys, round_name, keep, again=again)
            received = stack.enter_context(receiving)
            given = received.fragments
        stack.enter_context(working(f"assembling {pluralise(len(paths), 'fragment')}"))
        order = _written(given, output, options | {"cluster": cluster})
        if signed is not None:
            # Last, so that a run that was killed before can be repeated.
            received.seen.save()
    _tell(order, len(paths), output, as_json)


def _written(given: Any, output: Path, options: dict[str, Any]) -> GlobalOrder:
    from jigsaw_crl.assembly import assemble
    from jigsaw_crl.result.exports import decided_csv

    order = assemble(given, **options)
    write_file(output, lambda file: file.writelines(x.encode() for x in decided_csv(order)))
    return order


def _tell(order: GlobalOrder, n_clients: int, output: Path, as_json: bool) -> None:
    from jigsaw_crl.assembly.order import tally

    if as_json:
        print_json(
            {
                "output": str(output),
                "labels": len(order),
                "counts": dict(order.counts),
                "client_weights": dict(order.client_weights),
                "notes": list(order.notes),
            }
        )
        return
    typer.echo(
        f"{pluralise(len(order), 'label')} of {pluralise(n_clients, 'client')}: "
        f"{tally(order.counts)}"
    )
    for text in order.notes:
        say(f"note: {text}")
    typer.echo(f"written to {output}")
