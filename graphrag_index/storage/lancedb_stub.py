"""Stub for the remote catalogue client that lancedb imports and local tables never use."""

import sys
from types import ModuleType

_MODULES = (
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


def stub_remote_catalogue() -> None:
    """Replace the remote catalogue client of lancedb by empty modules.

    The client is two hundred generated modules: half of the import of lancedb, and a third of a
    cold question (`benchmarks/start.py`). For the command lines only, since a library must not
    change the imports of its host.
    """
    for name in _MODULES:
        sys.modules.setdefault(name, _EmptyClasses(name))
