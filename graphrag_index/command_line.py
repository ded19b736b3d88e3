"""Command lines: commands that explain an argument too many, and stubs for a fast start."""

import sys
from types import ModuleType
from typing import Any

from typer.core import TyperCommand

_CATALOGUE_MODULES = (
    "lance_namespace_urllib3_client",
    "lance_namespace_urllib3_client.models",
    "lancedb.namespace",
)


class ExplainingCommand(TyperCommand):
    """A command that explains how a project, or a question of several words, is given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, and end the program if there are too many."""
        ctx.allow_extra_args = True
        rest: list[str] = super().parse_args(ctx, args)
        if ctx.args:
            names = {name for param in self.params for name in (*param.opts, param.name)}
            hint = ""
            if "question" in names:
                hint = " Put a question of several words in quotes."
            elif "--root" in names:
                hint = f" A project is given by its folder: --root {ctx.args[0]}"
            ctx.fail(f"Unexpected argument {ctx.args[0]!r}.{hint}")
        return rest


class _StubModule(ModuleType):
    """Stub of a module: every name is an empty class."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def stub_unused_imports() -> None:
    """Replace modules by stubs that lancedb imports slowly and does not use for local tables.

    The client of a remote catalogue takes a third of the time of a first question, since it has
    two hundred modules. `overrides` takes a tenth, since it reads the bytecode of each class
    (`benchmarks/start.py`). Only command lines may call this function: a library must not change
    the imports of the program that uses it.
    """
    for name in _CATALOGUE_MODULES:
        sys.modules.setdefault(name, _StubModule(name))
    overrides = _StubModule("overrides")
    overrides.override = lambda method: method  # type: ignore[attr-defined]
    sys.modules.setdefault("overrides", overrides)
