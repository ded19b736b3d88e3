"""Imports point one way, and what is cheap to import stays cheap."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
# What takes long to import, and only some commands need.
HEAVY = {
    *("polars", "numpy", "scipy", "pyarrow", "lancedb", "pandas", "onnxruntime", "tokenizers"),
    *("igraph", "leidenalg", "networkx", "graspologic_native", "openai", "rich", "pydantic"),
    *("yaml", "tiktoken", "charset_normalizer"),
}
# From which parts of the program each part may import; a part may always import itself.
CORE = "graphrag_index.core"
PARTS = {
    CORE: set(),
    "graphrag_index.graph": {CORE},
    "graphrag_index.communities": {CORE, "graphrag_index.graph"},
    "graphrag_index.linguistics": {CORE},
    "graphrag_index.earlier_text_units": {CORE},
    "graphrag_index.extraction": {CORE, "graphrag_index.linguistics"},
    "graphrag_index.readers": {CORE},
    "graphrag_index.given_graph": {
        *(CORE, "graphrag_index.readers", "graphrag_index.extraction"),
    },
    "graphrag_index.resolution": {CORE, "graphrag_index.linguistics"},
    "graphrag_index.reports": {CORE},
    "graphrag_index.imports": {CORE, "graphrag_index.reports"},
    "graphrag_index.show": {CORE},
    "graphrag_index.show_html": {CORE, "graphrag_index.graph", "graphrag_index.show"},
    "graphrag_index.step": {CORE},
    "graphrag_index.steps": {
        *(CORE, "graphrag_index.step", "graphrag_index.graph", "graphrag_index.linguistics"),
        *("graphrag_index.readers", "graphrag_index.extraction", "graphrag_index.reports"),
        "graphrag_index.communities",
        *("graphrag_index.resolution", "graphrag_index.earlier_text_units"),
        *("graphrag_index.given_graph", "graphrag_index.imports"),
    },
    "graphrag_index.workflow": {CORE, "graphrag_index.step", "graphrag_index.steps"},
    "graphrag_index.run": {CORE, "graphrag_index.step", "graphrag_index.workflow"},
    "graphrag_index.terminal": {CORE, "graphrag_index.step", "graphrag_index.run"},
    "graphrag_index.project": {
        *(CORE, "graphrag_index.step", "graphrag_index.workflow", "graphrag_index.resolution"),
    },
    "graphrag_index.status": {CORE},
    "graphrag_index.estimate": {
        *(CORE, "graphrag_index.step", "graphrag_index.workflow", "graphrag_index.run"),
        *("graphrag_index.project", "graphrag_index.status", "graphrag_index.imports"),
    },
    "graphrag_index.changes": {CORE},
    "graphrag_index.plan": {CORE, "graphrag_index.run", "graphrag_index.workflow"},
    "graphrag_index.dry_run": {
        *(CORE, "graphrag_index.changes", "graphrag_index.plan", "graphrag_index.run"),
        *("graphrag_index.estimate", "graphrag_index.steps", "graphrag_index.workflow"),
    },
    "graphrag_index.input": {
        *(CORE, "graphrag_index.given_graph", "graphrag_index.steps", "graphrag_index.workflow"),
        "graphrag_index.imports",
    },
    "graphrag_index.check": {CORE, "graphrag_index.graph", "graphrag_index.show"},
    "graphrag_index.history": {
        *(CORE, "graphrag_index.workflow", "graphrag_index.run", "graphrag_index.changes"),
        "graphrag_index.steps",
    },
    "graphrag_index.options": {CORE, "graphrag_index.workflow"},
    "graphrag_index.history_commands": {
        *(CORE, "graphrag_index.history", "graphrag_index.options"),
    },
    "graphrag_index.export": {CORE, "graphrag_index.graph"},
    "graphrag_index.export_command": {
        *(CORE, "graphrag_index.export", "graphrag_index.history", "graphrag_index.options"),
        "graphrag_index.terminal",
    },
    "graphrag_index.importing": {
        *(CORE, "graphrag_index.imports", "graphrag_index.run", "graphrag_index.workflow"),
    },
    "graphrag_index.import_command": {
        *(CORE, "graphrag_index.imports", "graphrag_index.importing", "graphrag_index.options"),
        *("graphrag_index.project", "graphrag_index.run", "graphrag_index.terminal"),
    },
    "graphrag_index.from_microsoft": {
        *(CORE, "graphrag_index.project", "graphrag_index.extraction", "graphrag_index.options"),
    },
    "graphrag_index.run_command": {
        *(CORE, "graphrag_index.options", "graphrag_index.run", "graphrag_index.project"),
        *("graphrag_index.terminal", "graphrag_index.status", "graphrag_index.steps"),
        *("graphrag_index.dry_run", "graphrag_index.input", "graphrag_index.history"),
        "graphrag_index.importing",
    },
    "graphrag_index.__main__": {
        "graphrag_index.run_command",
        *("graphrag_index.export_command", "graphrag_index.import_command"),
        "graphrag_index.from_microsoft",
        "graphrag_index.check",
        *(CORE, "graphrag_index.workflow", "graphrag_index.run", "graphrag_index.project"),
        *("graphrag_index.terminal", "graphrag_index.show", "graphrag_index.show_html"),
        *("graphrag_index.status", "graphrag_index.steps", "graphrag_index.estimate"),
        *("graphrag_index.dry_run", "graphrag_index.input"),
        "graphrag_index.resolution",
        *("graphrag_index.options", "graphrag_index.history", "graphrag_index.history_commands"),
    },
    "graphrag_query": {CORE},
    # The package itself holds no more than its version.
    "graphrag_index": set(),
}


def part_of(module: str) -> str:
    """The part of the program to which a module belongs."""
    while module not in PARTS:
        module = module.rpartition(".")[0]
    return module


def modules() -> Iterator[tuple[str, Path]]:
    for package in ("graphrag_index", "graphrag_query"):
        for path in sorted((REPOSITORY / package).rglob("*.py")):
            names = path.relative_to(REPOSITORY).with_suffix("").parts
            yield ".".join(name for name in names if name != "__init__"), path


def imports(source: str) -> Iterator[str]:
    """Every module of the program that a source imports, at the top or in a function."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the module in full"
            # `from package import module` imports the module, if it is one.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0].startswith("graphrag_"))


@pytest.mark.parametrize(("module", "path"), [pytest.param(*m, id=m[0]) for m in modules()])
def test_imports_point_one_way(module: str, path: Path) -> None:
    own = part_of(module)
    allowed = {own, "graphrag_index", *PARTS[own]}
    wrong = {
        name for name in imports(path.read_text(encoding="utf-8")) if part_of(name) not in allowed
    }
    assert not wrong, f"{module} must not import {', '.join(sorted(wrong))}"


def test_imports_in_functions_are_seen_too() -> None:
    source = "def f():\n    import graphrag_index.workflow\n    from graphrag_index import steps\n"
    assert [*imports(source)] == ["graphrag_index.workflow", "graphrag_index.steps"]
    assert part_of("graphrag_index.core.settings.Settings") == CORE


@pytest.mark.parametrize(
    ("statements", "heavy"),
    [
        ("import graphrag_index, graphrag_query", set()),
        ("import graphrag_index.core.errors, graphrag_index.core.command_line", set()),
        ("import graphrag_index.__main__, graphrag_query.__main__", set()),
        ("from graphrag_index.core import settings", {"pydantic", "yaml"}),
        # Opening an index needs tables and settings; vectors and models come with a question.
        ("from graphrag_query import knowledge_model", {"pydantic", "yaml", "polars"}),
        # All steps: what asks models, reads vectors or draws comes with the step that runs.
        (
            "import graphrag_index.run, importlib\n"
            "from graphrag_index.steps import STEPS\n"
            "for name in STEPS: importlib.import_module(f'graphrag_index.steps.{name}')",
            {"pydantic", "yaml", "polars", "numpy", "pyarrow"},
        ),
    ],
)
def test_what_is_cheap_to_import_imports_nothing_heavy(statements: str, heavy: set[str]) -> None:
    assert imported_by(statements) <= heavy


@pytest.mark.parametrize("command", ["graphrag_index", "graphrag_query"])
def test_help_imports_nothing_heavy(command: str) -> None:
    statements = (
        f"import sys, contextlib, {command}.__main__ as m\n"
        "sys.argv = ['command', '--help']\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(None):\n"
        "    m.app()\n"
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
