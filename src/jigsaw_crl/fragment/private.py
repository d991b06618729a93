"""A site's own copy of its fragment: with the basis, so that latents can be had after a restart.

The file is a JSON document for the site alone: beside the fragment it holds the names of the
features, the mean of the control rows and the directions Q̂. It is readable by its owner only, and
no command takes it in place of a fragment.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from jigsaw_crl.base.documents import Document, Number
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import check_output, is_document, write_text
from jigsaw_crl.fragment.file import FragmentDocument
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["load_private", "save_private"]

FORMAT = "jigsaw-crl/private-fragment"
VERSION = 1


class PrivateDocument(Document):
    """The fields of a site's own file."""

    kind = "private fragment"
    remedy = "Recover the fragment at the site again, and save it with `save_private`."
    # 5,000 directions of 10,000 features, at about 20 characters each.
    largest_file = 1 << 30

    format: Literal["jigsaw-crl/private-fragment"]
    version: Literal[1]
    fragment: FragmentDocument
    features: list[str] | None
    centre: list[Number] | None
    basis: list[list[Number]] = Field(min_length=1)


def save_private(fragment: Fragment, path: str | Path, *, force: bool = False) -> Path:
    """Write a fragment with its latent basis, for the site that recovered it.

    Parameters
    ----------
    fragment : Fragment
        As `recover_fragment` or `recover` returns it.
    path : path
        An earlier file of this kind is replaced.
    force : bool
        Replace a file of another kind as well.

    Returns
    -------
    Path
        The file, which its owner alone can read. Do not share it: it holds the names of the
        features and the directions of the latents.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> fragment = jc.recover_fragment(world.client(0, n_samples=500))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = jc.save_private(fragment, Path(folder) / "lab-1.private.json")
    ...     again = jc.load_private(file)
    >>> rows, _ = world.rows(0, 9)
    >>> bool((again.transform(rows) == fragment.transform(rows)).all())
    True
    """
    if fragment.basis is None:
        raise InputError(
            "the fragment has no latent basis to save",
            "Save it where it was recovered: a fragment that was sent or loaded has none.",
            client=fragment.client,
        )
    target = Path(path)
    check_output(target, is_document("private-fragment"), force=force, what="a private fragment")
    document = {
        "format": FORMAT,
        "version": VERSION,
        "fragment": fragment.to_document(),
        "features": None if fragment.features is None else list(fragment.features),
        "centre": None if fragment.centre is None else fragment.centre.tolist(),
        "basis": fragment.basis.tolist(),
    }
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return write_text(target, text, private=True)


def load_private(path: str | Path) -> Fragment:
    """A fragment with its latent basis, as `save_private` wrote it.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> try:
    ...     jc.load_private("lab-1.private.json")
    ... except jc.InputError as error:
    ...     print(error)
    file 'lab-1.private.json': there is no such file. Check the path.
    """
    given = Path(path)
    document = PrivateDocument.from_file(given)
    fragment = document.fragment.fragment(given)
    width = len(document.basis[0])
    beside = (*document.basis, document.centre, document.features)
    if width == 0 or any(part is not None and len(part) != width for part in beside):
        raise InputError("basis, centre and features differ in length", document.remedy, path=given)
    try:
        return replace(
            fragment,
            basis=np.array(document.basis, dtype=np.float64),
            features=None if document.features is None else tuple(document.features),
            centre=None if document.centre is None else np.array(document.centre),
        )
    except InputError as error:
        raise error.located(path=given) from None
