"""Pictures of the gallery: `python examples/plot_gallery.py FOLDER`.

Runs the code of each page of `docs/gallery` and draws the order that it found.
"""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from jigsaw_crl.report.drawing import draw_graph
from jigsaw_crl.report.writing import svg

PAGES = Path(__file__).resolve().parents[1] / "docs" / "gallery"


def main(folder: Path) -> None:
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        found: dict[str, Any] = {}
        for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
            with redirect_stdout(io.StringIO()):
                exec(block, found)
        if "result" in found:
            title = text.partition("\n")[0].removeprefix("# ")
            drawn = svg(draw_graph(found["result"].order), title)
            # A picture of a page has no colour of text to follow.
            target = folder / f"gallery-{page.stem}.svg"
            target.write_text(drawn.replace("display:block", "background:white"), encoding="utf-8")
            print(f"written to {target}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
