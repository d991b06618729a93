"""Run the notebooks of the site in an empty folder, and compare or store their output.

    python tests/docs/notebooks.py docs/notebooks/*.ipynb      # run again, store the output

Cells are plain Python: what a cell prints is a stream, and its last expression is shown as text
and, if it has a picture of itself (`_repr_html_`), as HTML.
"""

import ast
import io
import json
import os
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def run_notebook(path: Path) -> dict[str, Any]:
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


def text_of(notebook: dict[str, Any]) -> list[str]:
    """The text that each code cell shows."""
    return [
        "".join(
            "".join(out["text"] if "text" in out else out["data"]["text/plain"])
            for out in cell["outputs"]
        )
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def _run_cell(source: str, names: dict[str, Any], number: int, where: str) -> list[dict[str, Any]]:
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
            {"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())}
        )
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        outputs.append(
            {
                "data": data,
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _rewrite(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        notebook = run_notebook(path)
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "80")
    for name in sys.argv[1:]:
        _rewrite(Path(name).resolve())
