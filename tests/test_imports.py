"""Imports point one way, and what is cheap to import stays cheap."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
# What takes long to import, and only some commands need.
HEAVY = {
    *("polars", "numpy", "scipy", "pyarrow", "lancedb", "pandas", "onnxruntime", "tokenizers"),
    *("igraph", "leidenalg", "networkx", "graspologic_native", "aiohttp", "rich", "pydantic"),
    *("yaml", "tiktoken", "charset_normalizer", "fastapi", "uvicorn", "mcp", "opentelemetry"),
    "openai",
}
# The modules that every part may import.
FOUNDATION = {"errors", "spans"}
# The parts of the program, and the parts that each may import.
PARTS = {
    # graphrag_nlp imports nothing of the other packages; they use its `text` everywhere.
    "text": "",
    # What works without a model: graphrag_nlp/names, reports and answers.
    "rules": "text",
    "schema": "text",
    "storage": "schema text",
    "step": "schema text storage",
    "llm": "schema text storage",
    "communities": "schema step text storage",
    "extraction": "schema step text storage llm",
    "resolution": "schema step text storage llm",
    "reports": "schema step text storage llm",
    "readers": "schema step text storage llm extraction",
    "microsoft": "schema text storage llm extraction reports",
    "steps": "schema step text storage llm communities rules extraction resolution "
    "reports readers microsoft",
    "pipeline": "schema step text storage llm resolution readers microsoft steps",
    "export": "schema step text storage communities",
    "health": "schema step text storage communities microsoft",
    "query": "schema text storage llm microsoft rules",
    "evaluation": "schema step text storage llm communities rules extraction "
    "resolution reports steps pipeline export health query",
    "server": "schema step text storage llm communities resolution readers microsoft steps "
    "pipeline export health query evaluation",
    "cli": "schema step text storage llm resolution microsoft steps pipeline export health query "
    "evaluation server",
}
# The first module lies beside the folders of the package.
ROOTS = {"__main__": "cli"}


def part_of(module: str) -> str:
    """Name the part of the program that a module belongs to; the foundation is part ""."""
    package, _, rest = module.partition(".")
    if package in ("graphrag_query", "graphrag_server", "graphrag_evaluation"):
        return package.removeprefix("graphrag_")
    folder = rest.partition(".")[0]
    if package == "graphrag_nlp":
        return "rules" if folder in ("names", "reports", "answers") else "text"
    return "" if folder in FOUNDATION else ROOTS.get(folder, folder if folder in PARTS else "")


def modules() -> Iterator[tuple[str, Path]]:
    for package in (
        "graphrag_nlp",
        "graphrag_index",
        "graphrag_query",
        "graphrag_server",
        "graphrag_evaluation",
    ):
        for path in sorted((REPOSITORY / package).rglob("*.py")):
            names = path.relative_to(REPOSITORY).with_suffix("").parts
            yield ".".join(name for name in names if name != "__init__"), path


@cache
def read_imports(path: Path) -> list[str]:
    return [*imports(path.read_text(encoding="utf-8"))]


def imports(source: str) -> Iterator[str]:
    """Yield the modules of the program that a source imports, also in functions and for types."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the module in full"
            # `from package import module` imports the module, if it is one.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.startswith("graphrag_"))


def test_imports_point_one_way() -> None:
    wrong = []
    for module, path in modules():
        own = part_of(module)
        allowed = {"", own, *PARTS.get(own, "").split()}
        wrong += [
            f"{module} must not import {name}"
            for name in read_imports(path)
            if part_of(name) not in allowed
        ]
    assert not wrong, "\n".join(wrong)


def test_parts_form_no_circle() -> None:
    assert len(PARTS) <= 22
    placed: set[str] = set()
    for part, allowed in PARTS.items():
        assert placed.issuperset(allowed.split()), f"{part} imports a part that comes after it"
        placed.add(part)


def import_graph() -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    paths = {module.removesuffix(".__init__"): path for module, path in modules()}
    return {
        module: {name if name in paths else name.rpartition(".")[0] for name in read_imports(path)}
        - {module}
        for module, path in paths.items()
    }


def find_circles(graph: dict[str, set[str]]) -> list[str]:
    """Return what lies in a circle, or leads to one."""
    left = dict(graph)
    while leaves := [name for name, names in left.items() if not names & left.keys()]:
        for name in leaves:
            del left[name]
    return sorted(left)


@pytest.mark.parametrize(
    ("step", "rules", "needs_rules"),
    [
        ("create_community_reports", "reports", False),
        ("resolve_entities", "names", False),
        ("extract_graph_nlp", "names", True),
    ],
)
def test_only_steps_without_a_model_need_rules(step: str, rules: str, needs_rules: bool) -> None:
    graph, found = import_graph(), set[str]()
    left = [f"graphrag_index.steps.{step}"]
    while left:
        found.add(name := left.pop())
        left += graph.get(name, set()) - found
    assert any(name.startswith(f"graphrag_nlp.{rules}") for name in found) is needs_rules


def test_no_modules_form_a_circle() -> None:
    assert not find_circles(import_graph())


def test_no_folders_form_a_circle() -> None:
    folders: dict[str, set[str]] = {}
    for module, names in import_graph().items():
        folder = folder_of(module)
        folders.setdefault(folder, set()).update({*map(folder_of, names)} - {folder})
    assert not find_circles(folders)


def folder_of(module: str) -> str:
    """Name the folder of a module inside its package; outside folders, the module itself."""
    return ".".join(module.split(".")[:2])


def test_circles_are_found() -> None:
    assert find_circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert find_circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]
    assert folder_of("graphrag_query.question.cues") == "graphrag_query.question"
    assert folder_of("graphrag_query.answer") == "graphrag_query.answer"


def test_imports_in_functions_and_for_types_are_seen_too() -> None:
    source = "def f():\n    import graphrag_index.step\n    from graphrag_index import steps\n"
    assert [*imports(source)] == ["graphrag_index.step", "graphrag_index.steps"]
    source = f"if TYPE_CHECKING:\n    from graphrag_index.step import Step\n{source}"
    assert "graphrag_index.step.Step" in imports(source)
    assert part_of("graphrag_index.schema.settings.project_settings.Settings") == "schema"


@pytest.mark.parametrize(
    ("statements", "heavy"),
    [
        ("import graphrag_index, graphrag_query, graphrag_server, graphrag_evaluation", set()),
        ("import graphrag_index.errors", set()),
        ("import graphrag_index.__main__, graphrag_query.__main__", set()),
        ("from graphrag_index.schema.settings import project_settings", {"pydantic", "yaml"}),
        # Opening an index needs tables and settings; vectors and models come with a question.
        (
            "from graphrag_query.store import index_store",
            {"pydantic", "yaml", "polars", "numpy"},
        ),
        # All steps: what asks models, reads vectors or draws comes with the step that runs.
        (
            "import graphrag_index.pipeline.run, importlib\n"
            "from graphrag_index.steps import STEPS\n"
            "for name in STEPS.values(): importlib.import_module(f'graphrag_index.steps.{name}')",
            {"pydantic", "yaml", "polars", "numpy", "pyarrow"},
        ),
    ],
)
def test_what_is_cheap_to_import_imports_nothing_heavy(statements: str, heavy: set[str]) -> None:
    assert imported_by(statements) <= heavy


@pytest.mark.parametrize("command", ["graphrag_index", "graphrag_query"])
def test_help_imports_nothing_heavy(command: str) -> None:
    statements = (
        f"import sys, io, contextlib, {command}.__main__ as m\n"
        "sys.argv = ['command', '--help']\n"
        "with contextlib.redirect_stdout(io.StringIO()) as shown:\n"
        "    with contextlib.suppress(SystemExit): m.app()\n"
        "assert 'Usage' in shown.getvalue()\n"
    )
    assert imported_by(statements) == set()


def imported_by(statements: str) -> set[str]:
    """The heavy modules that a fresh interpreter has imported after some statements."""
    code = f"{statements}\nimport sys\nprint(*(m for m in sys.modules if '.' not in m))"
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=REPOSITORY,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return HEAVY & set(result.stdout.split())
