"""The labelled passages and the questions about them are well formed."""

import re
from collections import Counter

import pytest
import yaml

from benchmarks.labels import (
    HALVES,
    KINDS,
    LABELLED,
    LANGUAGES,
    OPTIONAL,
    TYPES,
    Mark,
    parse_marks,
    read_half,
)


def test_marks_are_spans_of_the_text_without_marks() -> None:
    text, marks = parse_marks("Dr. [[Leah Okafor|person]] of the [[WHO|organization/acronym]]")
    assert text == "Dr. Leah Okafor of the WHO"
    assert marks == (
        Mark(4, 15, frozenset({"person"})),
        Mark(23, 26, frozenset({"organization", "acronym"})),
    )


@pytest.mark.parametrize("half", HALVES)
def test_a_half_has_five_well_formed_passages_of_each_kind_and_language(half: str) -> None:
    passages = read_half(half)
    assert Counter((p.language, p.kind) for p in passages) == {
        (language, kind): 5 for language in LANGUAGES for kind in KINDS
    }
    assert len({p.id for p in passages}) == len(passages)
    for passage in passages:
        assert 60 <= len(passage.text.split()) <= 130, passage.id
        assert 1 <= len(passage.terms) <= 3, passage.id
        assert re.search(r"\[\[|\]\]", passage.text) is None, passage.id
        assert all(mark.types <= TYPES or mark.types == {OPTIONAL} for mark in passage.marks)


@pytest.mark.parametrize("file", ["questions.yaml", "held_questions.yaml"])
def test_a_question_says_what_a_good_answer_mentions_or_counts(file: str) -> None:
    entries = yaml.safe_load((LABELLED / file).read_text(encoding="utf-8"))
    assert len({(entry["corpus"], entry["question"]) for entry in entries}) == len(entries)
    for entry in entries:
        themes = [phrase for line in entry.get("mentions", []) for phrase in line]
        counts = [*entry.get("begins", []), *entry.get("order", [])]
        assert bool(themes) != bool(counts), entry["question"]
        assert all(isinstance(phrase, str) for phrase in themes + counts), entry["question"]
