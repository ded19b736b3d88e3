"""Parsing of YAML files that people write, with readable errors."""

from typing import Any

import yaml

# Far more than settings need; a value that contains itself has no end.
_MAX_DEPTH = 50
_MAX_VALUES = 100_000


class _Loader(yaml.SafeLoader):
    """A loader that rejects duplicate keys, of which YAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} stands there twice",
                    problem_mark=key.start_mark,
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(text: str) -> Any:
    """Parse plain values, lists and mappings.

    Raises
    ------
    ValueError
        It is not valid YAML, has a duplicate key or a null character, is nested too deeply, or
        contains itself. The message is part of a sentence.
    """
    try:
        value = yaml.load(text, _Loader)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    # An impossible date is a ValueError.
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(" ".join(str(error).split()).rstrip(".")) from error
    except (LookupError, AttributeError, TypeError) as error:
        raise ValueError("a value does not fit the tag before it, such as `!!int`") from error
    _check(value)
    return value


def _check(whole: Any) -> None:
    """Check all values, without recursion, since one may contain itself by an alias."""
    left, n_values = [(whole, 0)], 0
    while left:
        value, depth = left.pop()
        n_values += 1
        if depth > _MAX_DEPTH:
            raise ValueError("it is nested too deeply, or an alias stands inside of its own anchor")
        if n_values > _MAX_VALUES:
            raise ValueError(f"it has more than {_MAX_VALUES:,} values")
        if isinstance(value, str) and "\0" in value:
            raise ValueError(f"{value!r} has a null character, which no name or text can have")
        if isinstance(value, dict):
            left += [(part, depth + 1) for item in value.items() for part in item]
        elif isinstance(value, list):
            left += [(part, depth + 1) for part in value]
