"""Stubs for the modules that lancedb imports and local tables never use."""

import sys
from types import ModuleType

_CATALOGUE_CLIENT = (
    "lance_namespace_urllib3_client",
    "lance_namespace_urllib3_client.models",
    "lancedb.namespace",
)


class _EmptyClasses(ModuleType):
    """Module in which every name is an empty class."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def stub_unused_imports() -> None:
    """Replace the modules that take most of the import of lancedb by stubs.

    These are the client of a remote catalogue, two hundred generated modules, and `overrides`,
    which reads the bytecode of each class: a third and a tenth of a cold question
    (`benchmarks/start.py`). For command lines only, since a library must not change the imports
    of its host.
    """
    for name in _CATALOGUE_CLIENT:
        sys.modules.setdefault(name, _EmptyClasses(name))
    overrides = _EmptyClasses("overrides")
    overrides.override = lambda method: method  # type: ignore[attr-defined]
    sys.modules.setdefault("overrides", overrides)
