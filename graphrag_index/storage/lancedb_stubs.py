"""Stubs of modules that lancedb imports but that local tables never use."""

import sys
from types import ModuleType

_CATALOGUE_MODULES = (
    "lance_namespace_urllib3_client",
    "lance_namespace_urllib3_client.models",
    "lancedb.namespace",
)


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
    (`benchmarks/start.py`). Only processes of this program may call this function, such as command
    lines and workers: a library must not change the imports of the program that uses it.
    """
    for name in _CATALOGUE_MODULES:
        sys.modules.setdefault(name, _StubModule(name))
    overrides = _StubModule("overrides")
    overrides.override = lambda method: method  # type: ignore[attr-defined]
    sys.modules.setdefault("overrides", overrides)
