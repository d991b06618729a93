"""Feed broken files to the readers: every one is read, or refused in one line.

Inputs are valid files of every format that were changed at random: bytes, JSON fields, values in
TOML, headers of arrays, names of columns. A reader may raise an `InputError` of one line and
nothing else, may take a few seconds at most, and the whole run stays below a gigabyte of memory.

    python benchmarks/fuzz.py                       # 120,000 inputs
    python benchmarks/fuzz.py --count 3000 --kind npz --seed 7
    python benchmarks/fuzz.py --kind csv --only 1234    # one input once more, with its traceback
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import jigsaw_crl as jc
from jigsaw_crl.federated.answer import check_answer
from jigsaw_crl.federated.keys import (
    KeyList,
    generate_key,
    public_text,
    read_private_key,
)
from jigsaw_crl.federated.ledger import Ledger
from jigsaw_crl.federated.settings import (
    COORDINATOR_FILE,
    CoordinatorSettings,
    coordinator_settings,
)
from jigsaw_crl.federated.signing import Received, open_signed, sign_fragment
from jigsaw_crl.federated.verifying import verify_result
from jigsaw_crl.result.folder import texts_of
from jigsaw_crl.study import write_moments

Rng = np.random.Generator
MEGABYTE = 1 << 20
MOST_MEMORY = 1 << 30
# Seconds of the processor for one input; on the clock, a busy machine takes any time.
MOST_SECONDS = 10.0

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 5_000, 2**31, 2**53 + 1, 10**30, 0.5, -0.5, 1e308, 1e-320),
    float("inf"),
    *(
        "",
        " ",
        "a",
        "3.5",
        "1",
        "nan",
        "x" * 600,
        "\x00",
        "\x1b[2J",
        "\u202e",
        "\ud800",
        "ﬁ",
        "=1+1",
    ),
    *([], {}, [[]], [None], [[0, 1]], {"a": 1}, [[[0.0]]], "jigsaw-crl/fragment", [0] * 5_000),
)
NAMES = (
    "regime",
    "x1",
    "",
    " ",
    "x1 ",
    '"',
    "a,b",
    "a;b",
    "é",
    "\ufeff",
    "\x00",
    "\x0b",
    "=1",
    "x" * 300,
)
TOML_VALUES = (
    *("", '""', "1", "-1", "9" * 5_000, "1e400", "nan", "true", "[]", "{}", "1979-05-27", '"a"'),
    *('["a", 1]', '"../x.csv"', '"/etc/passwd"', r'"\u202e"', r'"\u0000"', '"~"', '{ a = "b" }'),
    *('["z5 -> z4"]', '["z4 -> z4"]', '[["z5"], ["z4"]]', "[" * 500, f'"{"x" * 3_000}"', "{a.b=1}"),
    *('"hard"', '"soft"', '{ z4 = "hard" }', '"regime"', '"ed25519:AAAA"', '"*.csv"', r'"a\nb"'),
)


# -- changes ------------------------------------------------------------------------------------


def change_bytes(data: bytes, rng: Rng) -> bytes:
    """Flip, cut, repeat or insert a few bytes."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(0, len(changed) + 1))
        size = int(2 ** rng.integers(0, 9))
        match int(rng.integers(0, 6)):
            case 0 if at < len(changed):
                changed[at] ^= 1 << int(rng.integers(0, 8))
            case 1:
                del changed[at : at + size]
            case 2:
                changed[at:at] = rng.bytes(min(size, 16))
            case 3:
                changed[at:at] = changed[at : at + size]
            case 4:
                changed[at : at + 4] = int(rng.choice([0, 255, 2**31 - 1, 2**32 - 1])).to_bytes(
                    4, "little"
                )
            case _:
                changed = changed[: max(at, 1)]
    return bytes(changed)


def change_json(data: bytes, rng: Rng) -> bytes:
    """Set, drop or repeat values somewhere in a JSON document."""
    document = json.loads(data)
    for _ in range(int(rng.integers(1, 4))):
        place: Any = document
        for _ in range(int(rng.integers(0, 5))):
            inner = place[_key(place, rng)] if place else None
            if not isinstance(inner, dict | list) or not inner:
                break
            place = inner
        if not place:
            continue
        key = _key(place, rng)
        match int(rng.integers(0, 4)):
            case 0:
                del place[key]
            case 1 if isinstance(place, list):
                place.extend(place[:1] * int(rng.integers(1, 300)))
            case 2 if isinstance(place, dict):
                place[str(_value(rng))[:40]] = _value(rng)
            case _:
                place[key] = _value(rng)
    # A number that is read as infinite, not the word that no JSON text has.
    return json.dumps(document, separators=(",", ":")).replace("Infinity", "1e999").encode()


def _key(place: Any, rng: Rng) -> Any:
    keys = list(place) if isinstance(place, dict) else range(len(place))
    return keys[int(rng.integers(len(keys)))]


def _value(rng: Rng) -> Any:
    value = VALUES[int(rng.integers(len(VALUES)))]
    return json.loads(json.dumps(value))


def change_archive(data: bytes, rng: Rng) -> bytes:
    """Change headers, names, methods or contents of the arrays of an archive."""
    if rng.random() < 0.4:
        return change_bytes(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = list(members)
    for _ in range(int(rng.integers(1, 3))):
        name = names[int(rng.integers(len(names)))]
        match int(rng.integers(0, 6)):
            case 0:
                members.pop(name, None)
            case 1:
                members[name] = change_bytes(members.get(name, b"x"), rng)
            case 2:
                members[
                    str(rng.choice(["X.npy", "regime.npy", "..", "a", "/etc/x.npy", "\x1b.npy"]))
                ] = members.get(name, b"")
            case 3:
                members[name] = _claim(rng) + members.get(name, b"")[128:]
            case 4 if "header.npy" in members:
                members["header.npy"] = _change_header(members["header.npy"], rng)
            case _:
                made = io.BytesIO()
                np.save(made, _array(rng))
                members[name] = made.getvalue()
    made = io.BytesIO()
    method = int(
        rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    )
    with warnings.catch_warnings(), zipfile.ZipFile(made, "w", method) as archive:
        warnings.simplefilter("ignore")
        for name, content in members.items():
            archive.writestr(name, content)
    return change_bytes(made.getvalue(), rng) if rng.random() < 0.1 else made.getvalue()


def _change_header(data: bytes, rng: Rng) -> bytes:
    """Change the JSON text in the header of a moments file."""
    try:
        text = str(np.load(io.BytesIO(data)))
        changed = change_json(text.encode(), rng).decode("utf-8", "replace")
    except Exception:  # it was changed before
        return change_bytes(data, rng)
    made = io.BytesIO()
    np.save(made, np.array(changed.replace("\x00", " ")))
    return made.getvalue()


def _claim(rng: Rng) -> bytes:
    """The header of an array that claims any shape and type."""
    size = [0, 1, 3, 60, 10**6, 10**10, 2**62, -1]
    shape = tuple(int(x) for x in rng.choice(size, int(rng.integers(0, 4))))
    kinds = ["<f8", ">f4", "<i8", "|b1", "<U9", "<U0", "|S5", "|O", "<c16", "|V7", "<M8[s]", "<f2"]
    about = {
        "descr": str(rng.choice(kinds)),
        "fortran_order": bool(rng.integers(0, 2)),
        "shape": shape,
    }
    head = io.BytesIO()
    np.lib.format.write_array_header_2_0(head, about)
    data = head.getvalue()
    if rng.random() < 0.3:
        data = data[:8] + int(rng.integers(0, 2**32)).to_bytes(4, "little") + data[12:]
    return data


def _array(rng: Rng) -> Any:
    shapes = [(0,), (3,), (60, 3), (20, 3), (1, 1), (3, 3, 3), (60, 0), ()]
    shape = shapes[int(rng.integers(len(shapes)))]
    values = rng.choice([0.0, 1.0, np.nan, np.inf, 1e300, -1e-300], shape)
    kind = str(rng.choice(["f8", "f4", "i8", "U5", "?", "c16"]))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(values).astype(kind)


def change_toml(data: bytes, rng: Rng) -> bytes:
    """Change values, names and lines of a TOML text."""
    if rng.random() < 0.3:
        return change_bytes(data, rng)
    lines = data.decode().splitlines()
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(lines)))
        name, _, value = lines[at].partition(" = ")
        other = TOML_VALUES[int(rng.integers(len(TOML_VALUES)))]
        match int(rng.integers(0, 5)):
            case 0 if len(lines) > 1:
                del lines[at]
            case 1:
                lines.insert(at, lines[int(rng.integers(len(lines)))])
            case 2:
                lines[at] = f"{other[:40]} = {value}"
            case _:
                lines[at] = f"{name} = {other}"
    return "\n".join(lines).encode()


def change_table(data: bytes, rng: Rng) -> bytes:
    """Change the header of a text table, its delimiter or its bytes."""
    if rng.random() < 0.3:
        return change_bytes(data, rng)
    delimiter = str(rng.choice([",", ";", "\t", "|", ", "]))
    count = int(rng.choice([0, 1, 2, 3, 4, 50, 3_000]))
    names = [str(rng.choice(NAMES)) if rng.random() < 0.3 else f"x{i}" for i in range(count)]
    if rng.random() < 0.8:
        names.insert(int(rng.integers(0, len(names) + 1)), "regime")
    cells = [
        "1",
        "0.5",
        "-2e3",
        "",
        "NA",
        "x",
        "1,5",
        "control",
        "pump",
        '"',
        "1e999",
        "nan",
        "true",
    ]
    rows = []
    for i in range(int(rng.choice([0, 1, 3, 30]))):
        own = [str(rng.normal()) if rng.random() < 0.97 else str(rng.choice(cells)) for _ in names]
        if "regime" in names:
            own[names.index("regime")] = ("control", "pump", "valve")[i % 3]
        if rng.random() < 0.02:
            own.append("1")
        rows.append(delimiter.join(own))
    ends = str(rng.choice(["\n", "\r\n", "\r", "\n\n"]))
    text = ends.join([delimiter.join(names), *rows]) + ends
    encoding = str(rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"]))
    return text.encode(encoding, "replace")


# -- kinds --------------------------------------------------------------------------------------


@dataclass
class Kind:
    """One reader, valid inputs and the way they are changed."""

    seeds: list[bytes]
    change: Callable[[bytes, Rng], bytes]
    read: Callable[[bytes], object]
    share: float

    def input(self, seed: int, i: int) -> bytes:
        rng = np.random.default_rng([seed, i])
        return self.change(self.seeds[int(rng.integers(len(self.seeds)))], rng)


def change_text(data: bytes, rng: Rng) -> bytes:
    return change_json(data, rng) if rng.random() < 0.7 else change_bytes(data, rng)


def change_log(data: bytes, rng: Rng) -> bytes:
    """Change one line of a log."""
    lines = data.split(b"\n")
    at = int(rng.integers(len(lines) - 1))
    lines[at] = change_text(lines[at], rng)
    return b"\n".join(lines)


MANIFEST = b"""\
name = "fuzz"
regime = "regime"
control = "control"
labels = ["z1", "z2", "z3", "z4", "z5", "z6", "z7", "z8", "z9"]
trim = 0.01
missing = "drop"
na = ["NA"]
[rename]
z9 = "z8"
[knowledge]
ancestor = ["z4 -> z5"]
tiers = [["z4"], ["z5"]]
[clients.s1]
file = "s1.csv"
n_latent = 2
interventions = "soft"
"""


def kinds(folder: Path) -> dict[str, Kind]:
    """The readers under test; files are written to `folder`."""
    world = jc.simulate.setting("A", 0)
    pieces = [
        jc.recover_fragment(world.client(0, n_samples=500, seed=1)),
        jc.recover_fragment(world.client(1)),
        jc.recover_fragment(world.client(2), method="paper"),
    ]
    line = generate_key(pieces[0].client, folder / "k.key")
    public = {name: [key] for name, key in [map(json.loads, line.split(" = "))]}
    keys = KeyList.from_document({"study": "fuzz", "sites": public})
    key = read_private_key(folder / "k.key")
    control, regimes = world.rows(0, 20)
    rows: dict[str, Any] = {
        "control": control[:, :3],
        **{k: v[:, :3] for k, v in list(regimes.items())[:2]},
    }
    wide, long = io.BytesIO(), io.BytesIO()
    np.savez(wide, **rows)
    labels = np.repeat(list(rows), 20)
    np.savez_compressed(
        long, X=np.vstack(list(rows.values())), regime=labels, features=["a", "b", "c"]
    )
    moments = write_moments(world.client(0, n_samples=200, seed=1), folder / "m.npz").read_bytes()
    in_batches = jc.Client.from_samples(
        "lab",
        observational=control,
        interventions=regimes,
        batch={name: ["p1", "p2"] * 10 for name in ("control", *regimes)},
    )
    batched = write_moments(in_batches, folder / "m.npz").read_bytes()
    table = "regime,a,b\n" + "".join(
        f"{('control', 'z1')[i % 2]},{i * i % 7},{i * 7 % 40}.5\n" for i in range(40)
    )

    def file(ending: str) -> Callable[[bytes], object]:
        path = folder / f"lab{ending}"

        def read(data: bytes) -> object:
            path.write_bytes(data)
            return jc.read_client(path)

        return read

    def document(name: str, read_path: Callable[[Path], object]) -> Callable[[bytes], object]:
        """A reader of a file with this name in a folder of its own."""
        path = folder / f"of-{name}" / name
        path.parent.mkdir()

        def read(data: bytes) -> object:
            path.write_bytes(data)
            return read_path(path)

        return read

    parquet = io.BytesIO()
    columns = {"regime": labels, **dict(zip("abc", np.vstack(list(rows.values())).T, strict=True))}
    pq.write_table(pa.table(columns), parquet)
    study_toml = document("study.toml", lambda path: jc.read_study(path.parent))
    pd.DataFrame(columns).to_csv(folder / "of-study.toml" / "s1.csv", index=False)
    texts = [piece.to_json().encode() for piece in pieces]
    envelope = sign_fragment(pieces[0], key, study="fuzz", round_name="first")
    received = open_signed(envelope, keys, "first")
    used = Ledger(folder / "log.jsonl").having([received, Received(pieces[1], 5)], "first", "fuzz")
    answer = [texts[0].decode(), received.serial, None]
    hub = CoordinatorSettings(sites=(pieces[0].client,), results=folder / "results")
    empty = Ledger(folder / "log.jsonl")
    settings = {
        "sites": ["lab-1", "lab-2"],
        "certificates": {"lab-1": "ab"},
        "results": "results",
        "keys": "keys.toml",
        "most_labels": 20,
    }
    result = jc.recover(world.clients(500, seed=1)).to_document()

    def use_result(path: Path) -> None:
        """What is done with somebody else's result: it is verified, and its files are written."""
        verify_result(path.parent)
        texts_of(jc.load_result(path.parent))

    return {
        "fragment": Kind(texts, change_text, jc.Fragment.from_json, 0.65),
        "envelope": Kind(
            [envelope.encode()],
            change_text,
            lambda data: open_signed(data, keys, "first"),
            0.15,
        ),
        "npz": Kind([wide.getvalue(), long.getvalue()], change_archive, file(".npz"), 0.12),
        "moments": Kind([moments, batched], change_archive, file(".npz"), 0.06),
        "csv": Kind([table.encode()], change_table, file(".csv"), 0.12),
        "parquet": Kind([parquet.getvalue()], change_bytes, file(".parquet"), 0.06),
        "manifest": Kind([MANIFEST], change_toml, study_toml, 0.06),
        "keys": Kind(
            [f'study = "fuzz"\n[sites]\n{line}\n"lab-2" = ["{public_text(key)}"]\n'.encode()],
            change_toml,
            document("keys.toml", KeyList.from_toml),
            0.04,
        ),
        "answer": Kind(
            [json.dumps(answer).encode()],
            change_text,
            lambda data: check_answer(
                data.decode("utf-8", "replace"), pieces[0].client, "first", hub, empty
            ),
            0.1,
        ),
        "log": Kind([used.text], change_log, document("log.jsonl", Ledger.read), 0.04),
        "settings": Kind(
            [json.dumps(settings).encode()],
            change_text,
            document(COORDINATOR_FILE, lambda path: coordinator_settings(path.parent)),
            0.04,
        ),
        "result": Kind(
            [json.dumps(result).encode()],
            change_text,
            document("result.json", use_result),
            0.1,
        ),
    }


@dataclass
class Tally:
    """What became of the inputs of one kind."""

    read: int = 0
    refused: int = 0
    slowest: float = 0.0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    @property
    def inputs(self) -> int:
        return self.read + self.refused + len(self.failures)


def attempt(kind: Kind, data: bytes, tally: Tally, what: str) -> None:
    """Read one input, and note what happened."""
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind.read(data)
        tally.read += 1
    except jc.InputError as error:
        text = str(error)
        if "\n" in text or len(text) > 3_000:
            tally.failures.append(f"{what}: not one readable line ({len(text)} characters)")
        else:
            tally.refused += 1
    except Exception as error:  # whatever it is, it is a finding
        tally.failures.append(f"{what}: {type(error).__name__}: {str(error)[:120]}")
    spent = time.process_time() - start
    tally.seconds += spent
    if spent > MOST_SECONDS:
        tally.failures.append(f"{what}: {spent:.1f} s")
    tally.slowest = max(tally.slowest, spent)


def run(
    chosen: dict[str, Kind], count: int, *, seed: int = 0, seconds: float = 3_600.0
) -> dict[str, Tally]:
    """Feed `count` inputs in all to the readers, for at most so many seconds."""
    whole = sum(kind.share for kind in chosen.values())
    tallies = {name: Tally() for name in chosen}
    end = time.perf_counter() + seconds
    for name, kind in chosen.items():
        for i in range(round(count * kind.share / whole)):
            if time.perf_counter() > end:
                break
            attempt(kind, kind.input(seed, i), tallies[name], f"{name} {i}")
    return tallies


def peak_memory() -> int:
    """Bytes that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=120_000)
    parser.add_argument("--seconds", type=float, default=3_600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append")
    parser.add_argument("--only", type=int, help="one input of the kind, with its traceback")
    options = parser.parse_args()
    # A defect should end this run, not the machine.
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, resource.RLIM_INFINITY))
    with tempfile.TemporaryDirectory() as folder:
        chosen = kinds(Path(folder))
        chosen = {name: chosen[name] for name in options.kind or chosen}
        if options.only is not None:
            for kind in chosen.values():
                data = kind.input(options.seed, options.only)
                sys.stdout.write(f"{data[:500]!r}\n")
                kind.read(data)
            return 0
        tallies = run(chosen, options.count, seed=options.seed, seconds=options.seconds)
    lines = [
        "| kind | inputs | read | refused | failed | slowest (s) | seconds |",
        "|---|" + "---:|" * 6,
    ]
    for name, t in tallies.items():
        cells = [name, t.inputs, t.read, t.refused, len(t.failures)]
        lines.append(f"| {' | '.join(map(str, cells))} | {t.slowest:.2f} | {t.seconds:.0f} |")
    lines += [failure for t in tallies.values() for failure in t.failures[:20]]
    peak = peak_memory()
    total = sum(t.inputs for t in tallies.values())
    lines.append(f"{total} inputs, at most {peak // MEGABYTE} MB of memory")
    sys.stdout.write("\n".join(lines) + "\n")
    return int(peak > MOST_MEMORY or any(t.failures for t in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
