"""Copy the pages to build/docs, with executed notebooks as pages: the first half of `make docs`.

Links to a notebook become links to its page. Absolute paths in outputs are shortened.
"""

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
BUILD = DOCS.parent / "build"
STAGED, EXECUTED = BUILD / "docs", BUILD / "tutorials"
_NOTEBOOK_LINK = re.compile(r"(\]\([^)\s:]*)\.ipynb(?=\)|#)")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
WIDTH = 92  # characters of a line of output
_COLUMNS = re.compile(r"\S {2,}\S")
# The richest form of an output that a page can show comes first.
_FORMS = ("text/html", "image/svg+xml", "text/markdown", "text/plain")


def write_page(notebook: Mapping[str, Any], name: str) -> str:
    """Return the page of an executed notebook."""
    # A text of a notebook is a list of lines, or one string.
    sources = ["".join(cell["source"]) for cell in notebook["cells"]]
    title, _, rest = sources[0].partition("\n")
    source = f"*This page is a [notebook]({name}.ipynb), run when the site was built.*"
    parts = [title, source, link_pages(rest.strip())]
    for cell, source in zip(notebook["cells"][1:], sources[1:], strict=True):
        if cell["cell_type"] == "markdown":
            parts.append(link_pages(source))
            continue
        code = source.removeprefix("%%sh\n")
        parts.append(_fence(code, "python .input" if code == source else "sh .input"))
        parts += write_outputs(cell["outputs"])
    return "\n\n".join(parts) + "\n"


def write_outputs(outputs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the outputs of a cell; text that was printed in pieces is joined."""
    blocks: list[str] = []
    printed = ""
    for output in outputs:
        if output["output_type"] == "stream":
            printed += "".join(output["text"])
            continue
        blocks += _fence_output(printed)
        printed = ""
        form = next(form for form in _FORMS if form in output["data"])
        content = "".join(output["data"][form])
        if form == "text/plain":
            blocks += _fence_output(content)
        elif form == "text/markdown":
            blocks.append(content)
        else:
            blocks.append(f'<div class="output">\n{_shorten(content)}\n</div>')
    return blocks + _fence_output(printed)


def _fence_output(text: str) -> list[str]:
    """Return the block of an output; none if it is blank."""
    text = _ANSI.sub("", _shorten(text)).rstrip().strip("\n")
    # The browser wraps prose. Beside columns, which must stay, it is wrapped here.
    layout = " .wrap"
    if _COLUMNS.search(text):
        layout = ""
        lines = [line if _COLUMNS.search(line) else _wrap(line) for line in text.splitlines()]
        text = "\n".join(lines)
    return [_fence(text, f"text .output{layout}")] if text else []


def _fence(text: str, classes: str) -> str:
    marks = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`+", text))])
    return f"{marks} {{ .{classes} }}\n{text}\n{marks}"


def _wrap(line: str) -> str:
    return textwrap.fill(line, WIDTH, drop_whitespace=True) if len(line) > WIDTH else line


def _shorten(text: str) -> str:
    return text.replace(f"{DOCS / 'tutorials'}/", "")


def link_pages(text: str) -> str:
    """Return Markdown whose links to notebooks lead to their pages."""
    return _NOTEBOOK_LINK.sub(r"\1.md", text)


def main() -> None:
    shutil.rmtree(STAGED, ignore_errors=True)
    shutil.copytree(DOCS, STAGED, ignore=shutil.ignore_patterns("*.py", "tutorials", "__pycache__"))
    for page in STAGED.rglob("*.md"):
        page.write_text(link_pages(page.read_text(encoding="utf-8")), encoding="utf-8")
    (STAGED / "tutorials").mkdir()
    for path in (DOCS / "tutorials").glob("*.ipynb"):
        shutil.copy(path, STAGED / "tutorials")
        executed = EXECUTED / path.name
        if not executed.exists():
            sys.exit(f"{executed} is missing: run `make tutorials`.")
        page = write_page(json.loads(executed.read_text(encoding="utf-8")), path.stem)
        (STAGED / "tutorials" / f"{path.stem}.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
