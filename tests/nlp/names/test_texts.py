"""Names in texts of a few documents: their forms, types and mentions, exactly.

A file of `texts` has under each behaviour examples: the `texts`, a document each, and what is
expected of the names in them. `titles` are all; `names` all that are no noun phrases; `has` and
`lacks` some that are found or not; `no_part` stands in no title, and `no_word` is a word of none;
`often` are mentioned three times at least. Of single titles `mentioned` gives the number of
mentions, `aliases` the other forms, and `types` the type; `all_mentioned`, `all_types` and `named`
(of `names`) those of all.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fixtures.found_names import FoundNames

EXAMPLES = {
    f"{path.stem}: {behaviour} {number}": example
    for path in sorted(Path(__file__).with_name("texts").glob("*.yaml"))
    for behaviour, examples in yaml.load(path.read_bytes(), yaml.CSafeLoader).items()
    for number, example in enumerate(examples)
}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_names_of_texts_are_found_as_expected(example: dict[str, Any]) -> None:
    found = FoundNames(*example["texts"])
    titles = {*found.titles}
    for key, expected in example.items():
        match key:
            case "texts":
                continue
            case "titles":
                assert titles == {*expected}
            case "names":
                assert {*found.names} == {*expected}
            case "named":
                assert found.names == expected
            case "has":
                assert titles >= {*expected}
            case "lacks":
                assert not titles & {*expected}
            case "no_part":
                assert not [title for title in titles if any(part in title for part in expected)]
            case "no_word":
                assert not {word for title in titles for word in title.split()} & {*expected}
            case "often":
                assert not [name for name in expected if found.mentioned.get(name, 0) < 3]
            case "aliases":
                assert {name: found.aliases[name] for name in expected} == {
                    name: {*forms} for name, forms in expected.items()
                }
            case "types" | "mentioned":
                held = getattr(found, key)
                assert {name: held.get(name) for name in expected} == expected
            case "all_types" | "all_mentioned":
                assert getattr(found, key.removeprefix("all_")) == expected
            case _:
                pytest.fail(f"no such expectation: {key}")
