"""Names in single sentences, each a corpus of its own: nearly all of a language are found.

A line of `sentences/LANGUAGE.tsv` has a text, the names in it, some with their types, and what is
no name there; "*" means that the text has no other name.
"""

from pathlib import Path

import pytest

from tests.fixtures.found_names import FoundNames

SENTENCES = Path(__file__).with_name("sentences")
# Maximum share of the sentences of a language with a wrong name or type.
MAX_WRONG_SHARE = 0.02


def find_errors(line: str) -> list[str]:
    """Return the names that are missing or have another type, and those that should not be."""
    text, names, absent = (*line.split("\t"), "", "")[:3]
    found = FoundNames(text.replace("\\n", "\n")).names
    cells = (cell.partition("=") for cell in names.split(" | ") if cell)
    wanted = {name: kind for name, _, kind in cells}
    errors = [name for name, kind in wanted.items() if name not in found]
    errors += [name for name, kind in wanted.items() if kind and found.get(name, kind) != kind]
    others = found.keys() - wanted.keys()
    if absent != "*":
        others &= {*absent.split(" | ")}
    return errors + [f"no {name}" for name in sorted(others)]


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "other"])
def test_names_of_sentences_are_found(language: str, every: int) -> None:
    lines = (SENTENCES / f"{language}.tsv").read_text(encoding="utf-8").splitlines()[::every]
    wrong = {line: errors for line in lines if (errors := find_errors(line))}
    assert len(wrong) <= MAX_WRONG_SHARE * len(lines), wrong


def test_errors_of_a_sentence_are_noticed() -> None:
    text = "Anna Weber left Oslo."
    assert find_errors(f"{text}\tAnna Weber=person | Oslo\t*") == []
    assert find_errors(f"{text}\tAnna Weber=geo | Bergen\tOslo") == [
        "Bergen",
        "Anna Weber",
        "no Oslo",
    ]
    assert find_errors(f"{text}\tAnna Weber\t*") == ["no Oslo"]
    assert find_errors(f"{text}\tAnna Weber") == []
