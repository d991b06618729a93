"""Read a result folder."""

from __future__ import annotations

import os
from pathlib import Path

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.result.document import order_from, proposal_from, with_groups
from jigsaw_crl.result.folder import COMPLETE, RESULT
from jigsaw_crl.result.result import Result

__all__ = ["load_result"]


def load_result(folder: str | os.PathLike[str]) -> Result:
    """Read a result folder that `Result.save` wrote.

    Parameters
    ----------
    folder : path

    Returns
    -------
    Result
        Without the latent bases, which never leave the clients.

    Examples
    --------
    >>> import tempfile
    >>> import jigsaw_crl as jc
    >>> result = jc.recover(jc.simulate.setting("A", 0).clients())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = jc.load_result(result.save(folder))
    >>> again.order.pairs() == result.order.pairs()
    True
    """
    # Imported here for start-up time: it loads pydantic.
    from jigsaw_crl.result.file import ResultDocument

    root = Path(folder)
    if not root.exists():
        raise InputError(
            "there is no such folder", "Pass a folder that `jigsaw recover --out` wrote.", path=root
        )
    path = next((p for p in (root / COMPLETE / RESULT, root / RESULT) if p.exists()), None)
    if path is None:
        raise InputError(
            f"this folder has no {RESULT}", "Pass a folder `jigsaw recover --out` wrote.", path=root
        )
    document = ResultDocument.from_file(path)
    try:
        fragments = [Fragment.from_document(f, path=path) for f in document.fragments]
        order = order_from(document.order.model_dump(), fragments)
        groups = {g.client: g.model_dump() for g in document.refined}
        return Result(
            {f.client: with_groups(f, groups[f.client]) for f in fragments},
            order,
            tuple(Finding(**f.model_dump()) for f in document.diagnostics),
            document.provenance,
            proposal_from(document.proposal and document.proposal.model_dump(), order),
        )
    except InputError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"the result does not hold together ({type(error).__name__}: {error})",
            "Run the recovery again.",
            path=path,
        ) from None
