"""Lets a command that lives for two seconds start in one, by leaving out what it never uses.

lancedb loads, at its own import, the client of a service for remote catalogues (more than a
hundred modules, most of the time that lancedb takes), and pandas where there is one. Our tables
lie in a folder. For commands only: a library must not change what its host can import. A
command that reads documents, or runs steps of the user's own, may need pandas.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_UNUSED = "lance_namespace_urllib3_client"


def leave_out_unused(*, pandas: bool) -> None:
    """Let the classes of the catalogue's client be empty, and if wanted `pandas` be missing."""
    sys.meta_path.insert(0, _EmptyModules(pandas))


class _EmptyModules(MetaPathFinder, Loader):
    """Finds modules in which every name is a class without contents."""

    def __init__(self, leaves_out_pandas: bool) -> None:
        self.leaves_out_pandas = leaves_out_pandas

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "pandas" and self.leaves_out_pandas:
            raise ModuleNotFoundError("pandas is left out", name=name)
        if name != _UNUSED and not name.startswith(_UNUSED + "."):
            return None
        return ModuleSpec(name, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        def empty_class(name: str) -> type:
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {})

        module.__getattr__ = empty_class  # type: ignore[method-assign]
