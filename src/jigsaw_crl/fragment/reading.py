"""Fragment files: written at a site, read as a coordinator receives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import check_output, is_document, read_file, readable, write_text
from jigsaw_crl.base.findings import spelling_notes
from jigsaw_crl.base.labels import respelt
from jigsaw_crl.base.text import few
from jigsaw_crl.fragment.fragment import Fragment

# Does a file with this beginning hold a fragment?
is_fragment = is_document("fragment", "signed-fragment")


def save_fragment(fragment: Fragment, path: str | Path, *, force: bool = False) -> Path:
    """Write a fragment as it leaves its site: without the latent basis.

    An earlier fragment is replaced; a file of another kind with `force` only.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import jigsaw_crl as jc
    >>> fragment = jc.recover_fragment(jc.simulate.setting("A", 0).client(0, n_samples=500))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = jc.save_fragment(fragment, Path(folder) / "lab-1.fragment.json")
    ...     again = jc.read_fragment(file)
    >>> again.labels == fragment.labels
    True
    """
    target = Path(path)
    check_output(target, is_fragment, force=force, what="a fragment")
    return write_text(target, fragment.to_json())


def read_fragment_files(paths: Iterable[str | Path]) -> dict[str, Fragment]:
    """Read unsigned fragments, by client; see `fragments_by_client` for what is refused."""
    return fragments_by_client((path, read_fragment(path)) for path in paths)


def read_fragment(path: str | Path) -> Fragment:
    """Read one unsigned fragment; everything in it is checked.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> try:
    ...     jc.read_fragment("lab-1.fragment.json")
    ... except jc.InputError as error:
    ...     print(error)
    file 'lab-1.fragment.json': there is no such file. Check the path.
    """
    data = read_bytes(path)
    if is_document("signed-fragment")(data):
        remedy = "Pass the list of the sites' keys: --keys FILE."
        raise InputError("the fragment is signed", remedy, path=path)
    return Fragment.from_json(data, path=path)


def read_bytes(path: str | Path) -> bytes:
    """The content of a fragment file; a folder or a file that is too large is refused."""
    # Imported here for start-up time: it loads pydantic.
    from jigsaw_crl.fragment.file import FragmentDocument

    return read_file(Path(path), FragmentDocument.largest_file, FragmentDocument.kind)


def fragments_by_client(
    fragments: Iterable[tuple[str | Path | None, Fragment]],
    *,
    known: Iterable[str] = (),
    signed: bool = False,
) -> dict[str, Fragment]:
    """Fragments by client, from pairs of a file's path (None without one) and the fragment in it.

    Two fragments of one client are refused. Labels that differ only in spelling are one, with a
    note: the spelling of `known` labels counts, or the most frequent one. What is signed is not
    changed, so such labels of signed fragments are refused.
    """
    found: dict[str, Fragment] = {}
    for path, fragment in fragments:
        if fragment.client in found:
            raise InputError(
                "another file holds a fragment of the same client",
                "Keep one fragment per client, the newest.",
                client=fragment.client,
                path=path,
            )
        found[fragment.client] = fragment
    pieces = one_spelling(list(found.values()), known=known, signed=signed)
    return {piece.client: piece for piece in pieces}


def one_spelling(
    fragments: Sequence[Fragment], *, known: Iterable[str] = (), signed: bool = False
) -> list[Fragment]:
    """The fragments with one spelling of each label; see `fragments_by_client`."""
    others = respelt((piece.labels for piece in fragments), known)
    pairs = list(zip(fragments, others, strict=True))
    if signed and any(others):
        named = [f"{x!r} of {f.client} is {y!r}" for f, names in pairs for x, y in names.items()]
        raise InputError(
            f"labels differ only by case, spaces, _ or -, or as 1 and 1.0 do: {few(named)}",
            "Labels are shared between clients: [rename] them in study.toml, and sign again.",
        )
    return [_relabelled(piece, names) if names else piece for piece, names in pairs]


def _relabelled(fragment: Fragment, names: Mapping[str, str]) -> Fragment:
    """The fragment with other names for some labels, and a note of it."""
    # Imported here for start-up time: it loads pydantic.
    from jigsaw_crl.fragment.file import FragmentDocument

    document = replace(fragment, findings=()).to_document()
    document["labels"] = [names.get(x, x) for x in fragment.labels]
    if fragment.n_samples is not None:
        document["n_samples"] = {names.get(x, x): n for x, n in fragment.n_samples.items()}
    own = (replace(f, regime=names.get(f.regime or "", f.regime)) for f in fragment.findings)
    return replace(
        FragmentDocument.from_document(document).fragment(),
        findings=(*own, *spelling_notes(names, fragment.client)),
        basis=fragment.basis,
        features=fragment.features,
        centre=fragment.centre,
    )


def fragment_paths(given: Iterable[str | Path]) -> list[Path]:
    """The files themselves, and the ``.json`` files of folders, by name."""
    paths: list[Path] = []
    for path in map(Path, given):
        if not path.is_dir():
            paths.append(path)
            continue
        with readable(path):
            inside = sorted(path.iterdir())
        found = [p for p in inside if p.suffix == ".json" and p.name[0] != "."]
        if not found:
            raise InputError(
                "the folder has no fragments", "Their names end with .json.", path=path
            )
        paths += found
    return paths
