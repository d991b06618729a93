"""Run the code of a page or notebook in order, in an empty folder, and compare the output.

    python tests/docs/pages.py README.md docs/report.md docs/notebooks/*.ipynb   # show what it is

- A cell of a notebook is plain Python: what it prints is a stream, and its last expression is shown
  as text and, if it has a picture of itself (`_repr_html_`), as HTML.
- A ```python block runs in the namespace of the page. A ```text block directly after it shows its
  output.
- In a ```console block, lines that start with `$ jigsaw` are commands (`\\` at the end continues a
  line). The lines after a command show its output; without such lines, the output is not compared.
  `> FILE` and `>> FILE` write the output to a file. A failing command shows its message.
- A ```toml or ```csv block whose first line is `# file: NAME` is written to that file.
- In shown output, a SHA-256 digest stands for any other digest, and decimal numbers may differ by
  `TOLERANCE`.
"""

import ast
import io
import json
import math
import os
import re
import shlex
import sys
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
RUN, SHOWN, FILES = "python", "text", ("toml", "csv")
# Relative. Sampled probabilities differ slightly between linear algebra libraries; counts do not.
TOLERANCE = 0.02
_DECIMAL = r"[+-]?\d+(?:\.\d+(?:e[+-]?\d+)?|e[+-]?\d+)"
_DIGEST = r"[0-9a-f]{64}"
_NUMBER = r"([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_FENCE = re.compile(
    r"^(?P<fence>```+)(?P<language>[^\n`]*)\n(?P<body>.*?)^(?P=fence) *$", re.M | re.S
)


@dataclass(frozen=True)
class Block:
    """A fenced block with its language, text, the span of the text in the page, and line number."""

    language: str
    body: str
    start: int
    end: int
    line: int


@dataclass(frozen=True)
class Output:
    """The output of one block or command, and the output shown in the page (None if not shown)."""

    line: int
    code: str
    printed: str
    shown: str | None

    @property
    def agrees(self):
        """Whether the page shows what was printed, or shows nothing."""
        return self.shown is None or same_output(self.shown, self.printed)


def documentation_pages():
    """Return the README and every page of the site."""
    built = ROOT / "docs" / "_build"
    pages = [p for p in sorted((ROOT / "docs").rglob("*.md")) if not p.is_relative_to(built)]
    return [ROOT / "README.md", *pages]


def blocks_of(text):
    """Return the fenced blocks of a page."""
    return [
        Block(m["language"].strip(), m["body"], *m.span("body"), text.count("\n", 0, m.start()) + 1)
        for m in _FENCE.finditer(text)
    ]


def run_page(path):
    """Run the blocks of a page in the current folder and return their outputs."""
    text = path.read_text(encoding="utf-8")
    blocks, outputs = blocks_of(text), list[Output]()
    names: dict[str, Any] = {"__name__": "__main__"}
    for block, after in zip_longest(blocks, blocks[1:]):
        if block.language in FILES:
            _write_file(block)
        elif block.language == RUN:
            shown = after.body if after is not None and _shows(text, block, after) else None
            outputs.append(Output(block.line, block.body, _run_python(path, block, names), shown))
        elif block.language == "console":
            for command, expected in commands_of(block.body):
                outputs.append(Output(block.line, command, _run_command(command), expected))
    return outputs


def commands_of(body):
    """Yield the commands of a console block, each with the output shown after it."""
    command: str | None = None
    shown: list[str] = []
    lines = iter(body.splitlines())
    for line in lines:
        if not line.startswith("$ "):
            shown.append(line)
            continue
        if command is not None:
            yield command, "\n".join(shown) if shown else None
        command, shown = line[2:], []
        while command.endswith("\\"):
            command = command[:-1] + next(lines).strip()
    if command is None:
        raise ValueError(f"this console block has no command:\n{body}")
    yield command, "\n".join(shown) if shown else None


def same_output(shown, printed):
    """Return whether the shown output matches the printed one, as the top of this file says."""
    pieces = re.split(rf"({_DIGEST}|{_DECIMAL})", _trimmed(shown))
    texts, special = pieces[::2], pieces[1::2]
    decimals = [float(piece) for piece in special if re.fullmatch(_DECIMAL, piece)]
    wildcards = [_DIGEST if re.fullmatch(_DIGEST, piece) else _NUMBER for piece in special]
    pattern = "".join(map("".join, zip_longest(map(re.escape, texts), wildcards, fillvalue="")))
    match = re.fullmatch(pattern, _trimmed(printed), re.S)
    if match is None:
        return False
    found = zip(match.groups(), decimals, strict=True)
    return all(math.isclose(float(a), b, rel_tol=TOLERANCE) for a, b in found)


def _shows(text, block, after):
    """Return whether the next block is a text block with nothing written in between."""
    between = text[block.end : after.start].replace("`", "")
    return after.language == SHOWN and between.strip() == SHOWN


def _write_file(block):
    first, _, rest = block.body.partition("\n")
    if first.startswith("# file: "):
        target = Path(first.removeprefix("# file: ").strip())
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(rest, encoding="utf-8")


def _run_python(path, block, names):
    # Leading blank lines make a traceback show the line number of the page.
    code = compile("\n" * block.line + block.body, str(path), "exec")
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


def _run_command(command):
    from jigsaw_crl.cli.app import run

    command, to, target = re.match(r"(.*?)(?: (>>?) (\S+))?$", command).groups()  # type: ignore[union-attr]
    program, *arguments = shlex.split(command)
    if program not in ("jigsaw", "echo"):
        raise ValueError(f"only jigsaw commands and echo are run, not: {command}")
    printed, complaints = io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(complaints):
        code = run(_expanded(arguments)) if program == "jigsaw" else print(*arguments) or 0
    if code not in (0, 2):
        raise RuntimeError(f"exit code {code} from: {command}\n{complaints.getvalue()}")
    if code:
        return printed.getvalue() + complaints.getvalue()
    if to is None:
        return printed.getvalue()
    with Path(target).open("a" if to == ">>" else "w", encoding="utf-8") as file:
        file.write(printed.getvalue())
    return ""


def _expanded(arguments):
    """Replace an argument that contains `*` by the matching files, as a shell does."""
    out: list[str] = []
    for argument in arguments:
        out += sorted(str(p) for p in Path().glob(argument)) if "*" in argument else [argument]
    return out


def _trimmed(text):
    """Remove outer blank lines, and replace tabs and runs of spaces within a line by two spaces."""
    lines = (line.rstrip() for line in text.strip("\n").splitlines())
    return "\n".join(re.sub(r"(?<=\S)(\t+| {2,})", "  ", line) for line in lines) + "\n"


def _aligned(text):
    """Align tab-separated lines in columns, separately for each run of equally many columns."""
    rows = [line.split("\t") for line in text.strip("\n").splitlines()]
    out: list[str] = []
    for _, group in groupby(rows, key=len):
        table = list(group)
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for row in table:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            out.append("  ".join(cells).rstrip())
    return "\n".join(out)


def run_notebook(path):
    """The notebook with the output of its cells, run in order in the current folder."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            where = f"{path.name}, cell {number}"
            cell["execution_count"] = number
            cell["outputs"] = _run_cell("".join(cell["source"]), names, number, where)
    return notebook


def text_of(notebook):
    """The text that each code cell shows."""
    return [
        "".join(
            "".join(out["text"] if "text" in out else out["data"]["text/plain"])
            for out in cell["outputs"]
        )
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def _run_cell(source, names, number, where):
    tree = ast.parse(source, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(tree, where, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append(
            {"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(True)}
        )
    if value is not None:
        data = {"text/plain": repr(value).splitlines(True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(True)
        outputs.append(
            {
                "data": data,
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


def _rewrite(path):
    """Replace shown output that differs from the printed output."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        outputs = run_notebook(path) if path.suffix == ".ipynb" else run_page(path)
    if isinstance(outputs, dict):
        text = json.dumps(outputs, indent=1, ensure_ascii=False, sort_keys=True)
        path.write_text(text + "\n", encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    # From the end, so that the line numbers of earlier blocks stay valid.
    for output in reversed(outputs):
        if output.agrees or output.shown is None:
            continue
        old = output.shown.rstrip("\n")
        block = sum(map(len, text.splitlines(keepends=True)[: output.line]))
        where = text.index(old, block)
        text = text[:where] + _aligned(output.printed) + text[where + len(old) :]
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "80")
    for name in sys.argv[1:]:
        _rewrite(Path(name).resolve())
