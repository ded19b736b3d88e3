"""Answers in a few words that an extractive model of the user finds in the text units."""

from collections.abc import Mapping, Sequence

from graphrag_index.errors import ModelError
from graphrag_query.answering.direct_answer_words import DirectAnswer
from graphrag_query.answering.extractive import Candidate, TextUnit, as_one_line
from graphrag_query.question.question import Question

# Maximum number of text units that are read for a question, those with the highest scores.
MAX_TEXT_UNITS = 20


def find_reader_answer(
    question: Question,
    candidates: Sequence[Candidate],
    text_units: Mapping[int, TextUnit],
    priors: Mapping[int, float],
) -> DirectAnswer | None:
    """Find the span that answers a question, with its sentence, by `search.reader_model`.

    Returns None without such a model, if the model finds no answer, and for a question that
    wants yes or no, which no span says. If the model cannot be used, a warning of the question
    tells why. Raises `SettingsError` if its folder or its description is wrong.
    """
    name = question.search.reader_model
    if name is None or question.wanted.kind == "yes_no":
        return None
    # Import this module only here: most searches have no reader.
    from graphrag_index.llm.local.reader_model import load_reader

    best = sorted(text_units, key=lambda number: (-priors[number], number))[:MAX_TEXT_UNITS]
    texts = [text_units[number]["text"] for number in best]
    try:
        span = load_reader(question.index.root / name).find_span(question.text, texts)
    except ModelError as error:
        warning = f"Answered without search.reader_model: {error}"
        if warning not in question.warnings:
            question.warnings.append(warning)
        return None
    if span is None:
        return None
    sentence = _find_sentence(text_units[best[span.text]], span.start, span.end, candidates)
    text = as_one_line(texts[span.text][span.start : span.end]).strip(" ,;:")
    # Nothing stands before a sentence that is the span itself.
    is_whole = text.rstrip(".") == as_one_line(sentence.text).strip(" .,;:")
    return DirectAnswer("" if is_whole else text, (sentence,))


def _find_sentence(
    unit: TextUnit, start: int, end: int, candidates: Sequence[Candidate]
) -> Candidate:
    """Return the sentence around a span of a text unit, or all sentences that it has a part of.

    With a span before a sentence, such as the name of the speaker, the rest of the line is
    quoted up to the end of that sentence.
    """
    text, offset = unit["text"], unit["start_char"]
    own = [c for c in candidates if c.text_unit == unit["human_readable_id"]]
    own = [c for c in own if c.end_char > offset + start]
    around = [c for c in own if c.start_char < offset + end]
    if not around:
        line_end = end + len(text[end:].partition("\n")[0])
        around = [c for c in own if c.start_char < offset + line_end][:1]
    for candidate in around:
        if candidate.start_char <= offset + start and offset + end <= candidate.end_char:
            return candidate
    start = min([start, *(c.start_char - offset for c in around)])
    end = max([end, *(c.end_char - offset for c in around)])
    return Candidate.within(unit, start, end)
