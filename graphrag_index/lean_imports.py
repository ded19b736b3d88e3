"""Lets a command that lives for two seconds start in one, by leaving out what it never uses.

lancedb loads, at its own import, the client of a service for remote catalogues (some two hundred
modules), and pandas where there is one: two thirds of the time that lancedb takes. Our tables
lie in a folder. Of what is left a third goes to a library by which its classes check, reading the
bytecode of their callers, that what they override is there. For commands only: a library must not
change what its host can import.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_CLIENT = "lance_namespace_urllib3_client"
_CHECKS = "overrides"


class _EmptyModules(MetaPathFinder, Loader):
    """Finds no pandas, for the client modules in which every name is an empty class, and checks
    that check nothing.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is left out", name=name)
        if name == _CHECKS:
            return ModuleSpec(name, self)
        if name != _CLIENT and not name.startswith(_CLIENT + "."):
            return None
        return ModuleSpec(name, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        def empty_class(name: str) -> type:
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {})

        module.__getattr__ = empty_class  # type: ignore[method-assign]
        if module.__name__ == _CHECKS:
            vars(module)["override"] = lambda method: method


_FINDER = _EmptyModules()


def leave_out_unused() -> None:
    """Let the catalogue's client be empty, `overrides` check nothing, and `pandas` be missing."""
    sys.meta_path.insert(0, _FINDER)


def leave_out_nothing() -> None:
    """Let all that is installed be found again: code that is not ours is about to be loaded."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
