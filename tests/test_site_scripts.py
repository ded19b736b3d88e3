"""The scripts that make the site of the documentation: pages of notebooks, and pictures."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY

DOCS = REPOSITORY / "docs"
SITE = runpy.run_path(str(DOCS / "stage_site.py"))
RUNNER = runpy.run_path(str(DOCS / "run_tutorials.py"))


def printed(*pieces: str) -> dict[str, Any]:
    return {"output_type": "stream", "text": [*pieces]}


def shown(**data: str) -> dict[str, Any]:
    return {
        "output_type": "display_data",
        "data": {name.replace("_", "/"): text for name, text in data.items()},
    }


def test_a_notebook_becomes_a_page() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "See [next](next.ipynb#a)."]},
        {"cell_type": "code", "source": "%%sh\nls", "outputs": [printed("a\n", "b\n")]},
        {"cell_type": "markdown", "source": "The [source](https://a.org/x.ipynb)."},
        {"cell_type": "code", "source": ["print(1)"], "outputs": []},
    ]
    assert SITE["write_page"]({"cells": cells}, "first") == (
        "# Title\n\n*This page is a [notebook](first.ipynb), run when the site was built.*\n\n"
        "See [next](next.md#a).\n\n"
        "``` { .sh .input }\nls\n```\n\n"
        "``` { .text .output .wrap }\na\nb\n```\n\n"
        "The [source](https://a.org/x.ipynb).\n\n"
        "``` { .python .input }\nprint(1)\n```\n"
    )


def test_marks_inside_a_block_do_not_end_it() -> None:
    cell = {"cell_type": "code", "source": 'x = "```"', "outputs": [printed("````\n")]}
    page = SITE["write_page"]({"cells": [{"cell_type": "markdown", "source": "# T"}, cell]}, "t")
    assert '```` { .python .input }\nx = "```"\n````\n' in page
    assert "````` { .text .output .wrap }\n````\n`````" in page


@pytest.mark.parametrize(
    ("outputs", "blocks"),
    [
        # What is printed before and after a table is two blocks; blank text is none.
        (
            [printed("a"), shown(text_plain="x", text_html="<b>x</b>"), printed("b", "c")],
            [
                "``` { .text .output .wrap }\na\n```",
                '<div class="output">\n<b>x</b>\n</div>',
                "``` { .text .output .wrap }\nbc\n```",
            ],
        ),
        ([printed(" \n"), shown(text_plain="")], []),
        ([shown(text_markdown="**a**")], ["**a**"]),
        ([printed("\x1b[1mbold\x1b[0m")], ["``` { .text .output .wrap }\nbold\n```"]),
        ([printed(f"{DOCS}/tutorials/x/y")], ["``` { .text .output .wrap }\nx/y\n```"]),
        # Columns stay, and prose beside them is wrapped.
        (
            [printed("name   n\n" + "word " * 20)],
            [f"``` {{ .text .output }}\nname   n\n{'word ' * 17}word\nword word\n```"],
        ),
    ],
)
def test_outputs_of_a_cell(outputs: list[dict[str, Any]], blocks: list[str]) -> None:
    assert SITE["write_outputs"](outputs) == blocks


@pytest.mark.parametrize("cell", [{"outputs": [printed("a")]}, {"execution_count": 1}])
def test_a_tutorial_with_outputs_is_not_run(tmp_path: Path, cell: dict[str, Any]) -> None:
    path = tmp_path / "first.ipynb"
    path.write_text(json.dumps({"cells": [{"source": "1", **cell}]}), encoding="utf-8")
    with pytest.raises(SystemExit, match="has outputs: clear them"):
        RUNNER["check_no_outputs"](path)


def test_no_tutorial_has_outputs() -> None:
    for path in sorted((DOCS / "tutorials").glob("*.ipynb")):
        RUNNER["check_no_outputs"](path)


def test_the_last_screen_of_a_terminal_has_no_progress_bars() -> None:
    pytest.importorskip("playwright")
    last_screen = runpy.run_path(str(DOCS / "make_gallery.py"))["last_screen"]
    bars = "\x1b[?25l10 %\r\n20 %\r\x1b[2K\x1b[1A\x1b[2K30 %\r\n40 %"
    assert last_screen(f"first\r\n{bars}\r\x1b[2K\x1b[1A\x1b[2Klast \x1b[?25h\n") == "first\nlast"
