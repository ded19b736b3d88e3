"""Reading YAML that people write: what cannot be meant is refused in words."""

from typing import Any

import yaml

# Far more than any settings need; a value that holds itself has no end.
_MAX_DEPTH = 50
_MAX_VALUES = 100_000


class _Loader(yaml.SafeLoader):
    """Refuses a mapping that has a key twice, of which YAML would quietly take the last."""

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
    """Read plain values, lists and mappings.

    Raises
    ------
    ValueError
        It is no YAML, has a key twice or a character that no file can hold, is nested too
        deeply, or holds itself. The message is part of a sentence.
    """
    try:
        value = yaml.load(text, _Loader)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    # A date that no calendar has is a ValueError.
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(" ".join(str(error).split()).rstrip(".")) from error
    except (LookupError, AttributeError, TypeError) as error:
        raise ValueError("a value does not fit the tag before it, such as `!!int`") from error
    _check(value)
    return value


def _check(whole: Any) -> None:
    """Go through all values, without recursion, for one may hold itself through an alias."""
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
