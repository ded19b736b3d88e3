"""Answers that are lists gathered from several sentences."""

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

from graphrag_query.answer import Answer
from graphrag_query.answering.answer_ranking import without_copies
from graphrag_query.answering.extractive import (
    Candidate,
    TextUnit,
    cite_passage,
    is_sentence,
    split_into_candidates,
)
from graphrag_query.answering.gathered_lists import Member, find_gathered_list, find_plural_noun
from graphrag_query.answering.statements import find_openings
from graphrag_query.question.question import Question
from graphrag_query.retrieval.index_store import IndexStore
from graphrag_query.retrieval.text_unit_ranking import SIMILARITY_WEIGHT, start_search

if TYPE_CHECKING:
    from graphrag_query.answer import Context

# Maximum number of further text units that are read for a list, and maximum number of those with a
# name of the question that are compared with it: an entity may be in most text units of a corpus.
MAX_MORE_TEXT_UNITS = 60
MAX_COMPARED_TEXT_UNITS = 1_000
# Maximum number of members, and of words of their sentences, that stand before the sentences.
MAX_MEMBERS_BEFORE = 3
MAX_WORDS = 60


def answer_with_list(
    question: Question,
    said: Sequence[Candidate],
    text_units: Mapping[int, TextUnit],
    context: "Context",
) -> Answer | None:
    """Write a list, a line each if there are many members or long sentences; each is cited.

    A short list stands before the sentences that say it. None if the question asks for one thing,
    or if there is no list. `said` has the sentences of `text_units`, those of the best first.
    """
    units = dict(text_units)
    members = _gather_members(question, said, units)
    if not members:
        return None
    chosen = list(dict.fromkeys(member.evidence for member in members))
    citations = tuple(
        cite_passage(number, candidate, units[candidate.text_unit])
        for number, candidate in enumerate(chosen, 1)
    )
    n_words = sum(len(candidate.quotation.split()) for candidate in chosen)
    if len(members) > MAX_MEMBERS_BEFORE or n_words > MAX_WORDS:
        numbers = {candidate: number for number, candidate in enumerate(chosen, 1)}
        text = "\n".join(f"- {name} [{numbers[evidence]}]" for name, evidence in members)
    else:
        names = ", ".join(member.name for member in members)
        quoted = (f"{c.quotation} [{number}]" for number, c in enumerate(chosen, 1))
        text = f"{names} — {' '.join(quoted)}"
    return question.answer(text, citations=citations, context=context)


def _gather_members(
    question: Question, said: Sequence[Candidate], text_units: dict[int, TextUnit]
) -> list[Member]:
    """Gather the members of a list from several sentences; nothing if one thing is asked for.

    Further text units that mention what the question names are read and added to `text_units`.
    """
    if not find_plural_noun(question):
        return []
    index = question.index
    units = index.text_units(find_more_text_units(question, text_units))
    question.counts["text_units"] = question.counts.get("text_units", 0) + len(units)
    text_units |= units
    candidates = split_into_candidates(
        units.values(), dict.fromkeys(units, 0.0), find_openings(index, units.values())
    )
    sentences = [*said, *(c for c in candidates if is_sentence(c, units[c.text_unit]))]
    types = find_types_of_names(index, text_units)
    rows = index.open_mapped("entity_rows").rows(_entities_of(index, text_units), "description")
    known = rows["description"].drop_nulls().to_list()
    return find_gathered_list(question, without_copies(sentences), types, known)


def find_more_text_units(question: Question, known: Container[int]) -> list[int]:
    """Return further text units that mention what a question names, the best first.

    They are ordered by the score of the search for text units, which has kept it, or else by their
    similarity to the question.
    """
    index = question.index
    named = [mention.entity for mention in question.mentions.likeliest_mentions]
    numbers = (index.links.text_units_of(n).numbers[:MAX_COMPARED_TEXT_UNITS] for n in named)
    linked = sorted({n for of_entity in numbers for n in of_entity.tolist() if n not in known})
    if len(linked) <= MAX_MORE_TEXT_UNITS:
        return linked
    vectors = index.open_mapped("text_unit_vectors").matrix("vector", linked)
    similarities = SIMILARITY_WEIGHT * (vectors @ question.vector)
    scores = dict(zip(linked, similarities.tolist(), strict=True))
    scores |= {u.number: u.own_score for u in start_search(question)() if u.number in scores}
    return sorted(linked, key=lambda number: (-scores[number], number))[:MAX_MORE_TEXT_UNITS]


def find_types_of_names(index: IndexStore, text_units: Mapping[int, TextUnit]) -> dict[str, str]:
    """Map the names of the entities in text units, in lower case, to their types."""
    numbers = _entities_of(index, text_units)
    rows = index.open_mapped("entity_rows").rows(numbers, "title", "type", "aliases")
    return {
        name.lower(): type_
        for title, type_, aliases in rows.iter_rows()
        for name in (*aliases, title)
    }


def _entities_of(index: IndexStore, text_units: Mapping[int, TextUnit]) -> list[int]:
    return sorted(
        {n for unit in text_units for n in index.links.entities_of(unit).numbers.tolist()}
    )
