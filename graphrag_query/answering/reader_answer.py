"""Answers in a few words that an extractive model of the user finds in the text units."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from graphrag_index.errors import ModelError
from graphrag_nlp.answers.statements import Passage, find_statements
from graphrag_nlp.text.sentences import join_lines
from graphrag_query.answering.extractive import Candidate, TextUnit
from graphrag_query.question.question import Question

# Maximum number of text units that are read for a question, those with the highest scores.
MAX_TEXT_UNITS = 20


class ReaderAnswer(NamedTuple):
    """A span that answers a question, "" if it is a whole sentence, and the sentence around it."""

    text: str
    evidence: Candidate


def find_reader_answer(
    question: Question, passages: Sequence[Passage], text_units: Mapping[int, TextUnit]
) -> ReaderAnswer | None:
    """Find the span that answers a question, with its sentence, by `search.reader_model`.

    Returns None without such a model, or if the model finds no answer. If the model cannot be used,
    a warning of the question tells why. Raises `SettingsError` if its folder or its description is
    wrong.
    """
    name = question.search.reader_model
    if name is None:
        return None
    # Import this module only here: most searches have no reader.
    from graphrag_index.llm.local.reader_model import load_reader

    best = sorted(passages, key=lambda p: (-p.score, p.number))[:MAX_TEXT_UNITS]
    texts = [passage.text for passage in best]
    try:
        span = load_reader(question.index.root / name).find_span(question.text, texts)
    except ModelError as error:
        warning = f"Answered without search.reader_model: {error}"
        if warning not in question.warnings:
            question.warnings.append(warning)
        return None
    if span is None:
        return None
    passage = best[span.text]
    sentence = _find_sentence(passage, text_units[passage.number], span.start, span.end)
    text = join_lines(texts[span.text][span.start : span.end]).strip(" ,;:")
    # Nothing stands before a sentence that is the span itself.
    is_whole = text.rstrip(".") == join_lines(sentence.text).strip(" .,;:")
    return ReaderAnswer("" if is_whole else text, sentence)


def _find_sentence(passage: Passage, unit: TextUnit, start: int, end: int) -> Candidate:
    """Return the statement around a span of a text unit, or all that it has a part of.

    With a span before a statement, such as the name of the speaker, the rest of the line is quoted
    up to the end of that statement.
    """
    own = [s for s in find_statements(passage.text, passage.before) if s.end > start]
    around = [s for s in own if s.start < end]
    if not around:
        line_end = end + len(passage.text[end:].partition("\n")[0])
        around = [s for s in own if s.start < line_end][:1]
    for statement in around:
        if statement.start <= start and end <= statement.end:
            return Candidate.of_statement(statement, unit)
    start = min([start, *(s.start for s in around)])
    end = max([end, *(s.end for s in around)])
    return Candidate.within(unit, start, end)
