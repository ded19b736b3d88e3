"""Docstrings, files and tests keep to the rules that CONTRIBUTING.md states."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.fixtures.cases import read_tables

REPOSITORY = Path(__file__).parents[1]
PACKAGES = (
    "graphrag_nlp",
    "graphrag_index",
    "graphrag_query",
    "graphrag_server",
    "graphrag_evaluation",
)
MAX_FIRST_LINE = 90  # characters
# First words that begin a relative clause instead of naming the thing.
CLAUSE = re.compile(r"(?:what|which|where|how|that|those)\b", re.IGNORECASE)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def sources(folder: str) -> list[Path]:
    return sorted((REPOSITORY / folder).rglob("*.py"))


@cache
def first_lines(path: Path) -> list[tuple[int, str]]:
    """Return the line number and the first line of every docstring of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        (node.body[0].lineno, docstring.splitlines()[0])
        for node in ast.walk(tree)
        if isinstance(node, DOCUMENTED) and (docstring := ast.get_docstring(node))
    ]


def place(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_begin_with_a_verb_or_a_noun(package: str) -> None:
    wrong = [
        f"{place(path)}:{number}: {line}"
        for path in sources(package)
        for number, line in first_lines(path)
        if CLAUSE.match(line)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", PACKAGES)
def test_first_lines_of_docstrings_are_short(package: str) -> None:
    wrong = [
        f"{place(path)}:{number}: {len(line)} characters"
        for path in sources(package)
        for number, line in first_lines(path)
        if len(line) > MAX_FIRST_LINE
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", PACKAGES)
def test_file_names_are_unique_within_a_package(package: str) -> None:
    files = [path for path in sources(package) if path.name != "__init__.py"]
    counts = Counter(path.name for path in files)
    wrong = [place(path) for path in files if counts[path.name] > 1]
    assert not wrong, "\n".join(sorted(wrong, key=lambda name: name.rpartition("/")[2]))


@pytest.mark.parametrize("package", PACKAGES)
def test_the_map_has_every_module_and_folder_of_a_package(package: str) -> None:
    guide = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = guide.partition(f"| `{package}/` | |\n")[2].partition("\n\n")[0].splitlines()
    mapped = {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}
    files = [*sources(package), *(REPOSITORY / package).rglob("*.txt")]
    parts = [path.relative_to(REPOSITORY / package).parts for path in files]
    present = {f"{first}/" if rest else first for first, *rest in parts}
    assert mapped == present - {"__init__.py"}


def test_no_test_imports_another() -> None:
    wrong = []
    for path in sources("tests"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            if any(part.startswith("test_") for name in names for part in name.split(".")):
                wrong.append(f"{place(path)}:{node.lineno}")
    assert not wrong, "\n".join(wrong)


def test_tables_beside_a_module_belong_to_its_tests() -> None:
    wrong = [
        f"{place(path)}: {name}"
        for path in (REPOSITORY / "tests").rglob("test_*.yaml")
        for name in read_tables(path)
        if f"def {name}(" not in path.with_suffix(".py").read_text(encoding="utf-8")
    ]
    assert not wrong, "\n".join(wrong)
