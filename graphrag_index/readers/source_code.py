"""Reading of source code in Python as Markdown."""

import ast
import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from textwrap import dedent
from warnings import catch_warnings

from graphrag_index.readers.document import NO_TEXT, Document, ReadFailure
from graphrag_index.readers.encodings import read_text
from graphrag_index.readers.text_html_pdf_office import make_document
from graphrag_index.schema.settings.step_sections import LoadDocuments

_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# A line with a comment of words alone; other comments stay in the code.
_COMMENT = re.compile(r"\s*#+:? +(?=\S*[^\W\d_]{2})(.*)")
_CODING = re.compile(rb"coding[:=]\s*([-\w.]+)")


def read_python(path: Path, name: str, settings: LoadDocuments) -> Iterator[Document | ReadFailure]:
    """Read a module: a heading for each class and function, its docstring, comments and code.

    A file that is not valid Python is read as text.
    """
    source = read_text(path, name, settings.encoding, _CODING)
    if not source.strip():
        # Packages have such modules on purpose.
        yield ReadFailure(NO_TEXT, is_skipped=True)
        return
    try:
        with catch_warnings(action="ignore"):
            module = ast.parse(source)
    except (SyntaxError, ValueError, MemoryError):
        yield make_document(source, "", name, settings)
        return
    blocks = _write_scope(module, path.stem, source.split("\n"), 1, 0)
    text = "\n\n".join(block for block in blocks if block.strip())
    yield make_document(text, "", name, settings)


def _write_scope(
    scope: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
    title: str,
    lines: list[str],
    depth: int,
    start: int,
) -> Iterator[str]:
    """Yield the blocks of a module, class or function, whose first line has the index `start`."""
    yield f"{'#' * min(depth, 6)} {title}"
    docstring = ast.get_docstring(scope, clean=False)
    end = len(lines) if isinstance(scope, ast.Module) else scope.end_lineno
    # Functions inside functions, and those under a condition, stay in the code.
    has_headings = isinstance(scope, ast.Module | ast.ClassDef)
    inner = [one for one in scope.body if has_headings and isinstance(one, _DEFINITIONS)]
    reached = start
    if docstring is not None:
        first = scope.body[0]
        # A docstring may stand in the line of its function.
        head = max(first.lineno - 1, 0 if isinstance(scope, ast.Module) else scope.lineno)
        yield from _write_code(lines[reached:head])
        yield cleandoc(docstring)
        reached = first.end_lineno or first.lineno
    for one in inner:
        begin = min([one.lineno, *(mark.lineno for mark in one.decorator_list)]) - 1
        yield from _write_code(lines[reached:begin])
        inner_title = one.name if isinstance(scope, ast.Module) else f"{title}.{one.name}"
        yield from _write_scope(one, inner_title, lines, depth + 1, begin)
        reached = one.end_lineno or one.lineno
    yield from _write_code(lines[reached:end])


def _write_code(lines: list[str]) -> Iterator[str]:
    """Yield lines of code as fenced blocks, and the comments between them as paragraphs."""
    code: list[str] = []
    comment: list[str] = []
    for line in [*lines, ""]:
        found = _COMMENT.fullmatch(line)
        if (found is None and comment) or (found and code):
            yield from _end_code(code, comment)
            code, comment = [], []
        if found:
            comment.append(found[1])
        else:
            code.append(line)
    yield from _end_code(code, comment)


def _end_code(code: list[str], comment: list[str]) -> Iterator[str]:
    text = dedent("\n".join(code)).strip("\n").replace("```", "` ` `")
    if text.strip():
        yield f"```python\n{text}\n```"
    if comment:
        yield "\n".join(comment)
