"""A property that is found out when it is first asked for, and then known.

That of functools takes a lock each time until Python 3.12, which costs more than most of what
names find out about themselves.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    """Decorate a method without arguments; for use in one thread."""

    def __init__(self, find: Callable[[Any], T]) -> None:
        self.find = find
        self.name = find.__name__
        self.__doc__ = find.__doc__

    def __get__(self, instance: object, owner: type) -> T:
        # What stands in the instance is found before this is asked again.
        found = instance.__dict__[self.name] = self.find(instance)
        return found
