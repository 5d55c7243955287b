"""Executes the cells of an example in the current folder, and writes results.json: what each cell printed, and its pictures.

python scripts/run_cells.py examples/NAME.py
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

from site_examples import cells


def main(path: str) -> None:
    source = Path(path).read_text(encoding="utf-8")
    sys.argv = [path]
    sys.path.insert(0, str(Path(path).parent))
    names: dict[str, Any] = {"__name__": "__main__", "__file__": path}
    results = []
    for number, (kind, content) in enumerate(cells(source)):
        printed, seen = io.StringIO(), set(Path().rglob("*.png"))
        if kind == "code":
            with contextlib.redirect_stdout(printed):
                exec(compile(content, f"{Path(path).name}, cell {number}", "exec", dont_inherit=True), names)
        drawn = sorted(set(Path().rglob("*.png")) - seen) + figures(number)
        results.append({"printed": printed.getvalue(), "pictures": [str(each) for each in drawn], "alt": alt(content)})
    Path("results.json").write_text(json.dumps(results), encoding="utf-8")


def figures(number: int) -> list[Path]:
    """Saves the figures that pyplot has open."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    made = []
    for each in pyplot.get_fignums() if pyplot else ():
        made.append(Path(f"cell-{number}-{each}.png"))
        pyplot.figure(each).savefig(made[-1], dpi=100)
        pyplot.close(each)
    return made


def alt(content: str) -> str:
    """The comment above the code, which describes the picture."""
    first = content.splitlines()[0] if content else ""
    return first.removeprefix("#").strip() if first.startswith("#") else "Picture drawn by the code above"


if __name__ == "__main__":
    main(sys.argv[1])
