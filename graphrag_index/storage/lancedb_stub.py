"""Stubs of modules that lancedb imports but that local tables never use."""

import sys
from types import ModuleType

_CATALOGUE_CLIENT = (
    "lance_namespace_urllib3_client",
    "lance_namespace_urllib3_client.models",
    "lancedb.namespace",
)


class _EmptyClasses(ModuleType):
    """Stub of a module: every name is an empty class."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def stub_unused_imports() -> None:
    """Replace the modules that lancedb imports most slowly by stubs.

    The client of a remote catalogue has two hundred generated modules, a third of the time of a
    first question. `overrides` reads the bytecode of each class, a tenth of that time
    (`benchmarks/start.py`). Only command lines may call this function: a library must not change
    the imports of the program that uses it.
    """
    for name in _CATALOGUE_CLIENT:
        sys.modules.setdefault(name, _EmptyClasses(name))
    overrides = _EmptyClasses("overrides")
    overrides.override = lambda method: method  # type: ignore[attr-defined]
    sys.modules.setdefault("overrides", overrides)
