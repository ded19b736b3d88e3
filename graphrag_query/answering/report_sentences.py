"""The sentences of community reports, each with a text unit that supports it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_nlp.text.citations import find_citations
from graphrag_query.answering.cited_text import supporting_text_units
from graphrag_query.answering.extractive import Candidate, is_question, split_into_candidates
from graphrag_query.store.index_store import IndexStore

_SOURCE_CITATION = re.compile(r"\s*\[Data: (?:[^\[\]]*; )?Sources \((?P<source>\d+)[^)]*\)\]")

# The label of a line after the first one.
_LATER_TURN = re.compile(r"\n[^\n:]{1,40}:\s")


def cited_sentences(text: str) -> list[tuple[str, int]]:
    """Split the text of a report into sentences, each with the text unit that it cites."""
    # Drop the text after the last citation, because each citation follows its sentence.
    parts = _SOURCE_CITATION.split(text)
    pairs = zip(map(str.strip, parts[::2]), parts[1::2], strict=False)
    return [(sentence, int(source)) for sentence, source in pairs if sentence]


def sourced_sentences(
    index: IndexStore, community: int, parts: Sequence[str]
) -> list[tuple[str, int]]:
    """Split the parts of a report into statements, each with a text unit that supports it.

    A report that a model wrote may cite other rows than text units. The statement is then
    supported by a text unit that supports the cited row. If the report cites nothing, each part is
    supported by a text unit about the members of the community.
    """
    found = [one for part in parts for one in _find_cited_statements(index, part)]
    return found or [
        (part.strip(), number)
        for part in parts
        if part.strip()
        for number in supporting_text_units(index, "Reports", community, part)[:1]
    ]


def _find_cited_statements(index: IndexStore, text: str) -> list[tuple[str, int]]:
    found = cited_sentences(text)
    if found:
        return found
    start = 0
    for first, last, rows in find_citations(text):
        said = text[start:first].strip().lstrip(".").strip()
        behind = (n for name, row in rows for n in supporting_text_units(index, name, row, said))
        source = next(behind, None)
        if said and source is not None:
            found.append((said, source))
        start = last
    return found


def locate_sentence(sentence: str, unit: Mapping[str, Any]) -> Candidate | None:
    """Find a sentence in its text unit, ignoring differences in white space.

    Returns None if the text unit does not contain the sentence.
    """
    # Most sentences are copied as they are, and a search for them needs no compiled pattern.
    start = unit["text"].find(sentence)
    if start >= 0:
        return Candidate.within(unit, start, start + len(sentence))
    pattern = r"\s+".join(re.escape(word) for word in sentence.split())
    match = re.search(pattern, unit["text"])
    return Candidate.within(unit, *match.span()) if match else None


def longest_turns(
    sentences: Sequence[tuple[str, int]], units: Mapping[int, Mapping[str, Any]]
) -> list[Candidate | None]:
    """Find sentences in their text units; of several turns of a chat, find the longest one.

    `sentences` are pairs of a sentence and the number of its text unit. A sentence that its text
    unit does not contain, or without a text unit, is None.
    """
    turns: dict[int, list[Candidate]] = {}
    found = []
    for sentence, number in sentences:
        placed = locate_sentence(sentence, units[number]) if number in units else None
        if placed is not None and _LATER_TURN.search(placed.text):
            if number not in turns:
                split = split_into_candidates([units[number]], {number: 0.0})
                turns[number] = [
                    turn for turn in split if turn.label and not is_question(turn.text)
                ]
            first, last = placed.start_char, placed.end_char
            inside = [t for t in turns[number] if first <= t.start_char and t.end_char <= last]
            placed = max(inside, key=lambda turn: len(turn.text), default=placed)
        found.append(placed)
    return found
