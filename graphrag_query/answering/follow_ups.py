"""Suggestions of questions to ask next."""

from typing import Any

from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, Request
from graphrag_index.text.languages import detect_language
from graphrag_query.answer import Answer
from graphrag_query.question.question import Question
from graphrag_query.retrieval.index_store import IndexStore

# Questions about a person and about a thing, by language.
_ABOUT = {
    "en": ("Who is {}?", "What do the documents say about {}?"),
    "de": ("Wer ist {}?", "Was sagen die Dokumente über {}?"),
    "fr": ("Qui est {} ?", "Que disent les documents de {} ?"),
    "es": ("¿Quién es {}?", "¿Qué dicen los documentos sobre {}?"),
    "it": ("Chi è {}?", "Che cosa dicono i documenti su {}?"),
    "pl": ("Kim jest {}?", "Co dokumenty mówią o: {}?"),
    "zh": ("{}是谁？", "文件中关于{}说了什么？"),
}
_ANSWER_CHARS = 4_000


def suggest_questions(answer: Answer, most: int, question: Question) -> tuple[str, ...]:
    """Suggest questions that follow from an answer.

    A model writes them; without one they ask about entities that were found near the question.
    There are none if the reply of the model is invalid.
    """
    llm = question.llm
    names = _names_near(answer, question.index)
    if llm is None:
        return _about(answer.question, names)[:most]
    near = ", ".join(name for name, _ in names)
    asked = f"Question: {answer.question}\n\nAnswer: {answer.text[:_ANSWER_CHARS]}\n\nNear: {near}"
    messages = llm.messages("suggest_questions", asked, most=str(most))
    [outcome] = llm.replies([Request(answer.question, messages, _FORMAT)], rating=True)
    return tuple(outcome.values[0][:most]) if outcome.values else ()


def _names_near(answer: Answer, index: IndexStore) -> list[tuple[str, str]]:
    """Return titles and types of entities near the question that it does not name.

    The subjects of the cited text units come first.
    """
    asked = answer.question.casefold()
    numbers: dict[int, None] = {}
    for text_unit in dict.fromkeys(citation.text_unit for citation in answer.citations):
        entities, is_subject = index.links.entities_of(text_unit)
        numbers |= dict.fromkeys(entities[is_subject].tolist())
    if answer.context is not None and "Entities" in answer.context.tables:
        numbers |= dict.fromkeys(answer.context.tables["Entities"].to_series(0).to_list())
    rows = index.entities(numbers).select("title", "type").iter_rows()
    return [(title, kind) for title, kind in rows if not _is_in(title, asked)]


def _is_in(title: str, question: str) -> bool:
    """Tell whether a question holds a name, or its last word, which may be a family name."""
    words = title.casefold().split()
    return bool(words) and (title.casefold() in question or words[-1] in question)


def _about(question: str, names: list[tuple[str, str]]) -> tuple[str, ...]:
    person, other = _ABOUT.get(detect_language(question), _ABOUT["en"])
    return tuple((person if kind == "person" else other).format(name) for name, kind in names)


def _read(data: Any) -> ParsedReply:
    found = data.get("questions") if isinstance(data, dict) else data
    found = [found] if isinstance(found, str) else found
    if not isinstance(found, list):
        raise ReplyError("it has no list `questions`")
    texts = [" ".join(text.split()) for text in found if isinstance(text, str) and text.strip()]
    return ParsedReply(list(dict.fromkeys(texts)), len(found) - len(texts))


_FORMAT = ReplyFormat(
    "suggested_questions",
    {
        "type": "object",
        "properties": {"questions": {"type": "array", "items": {"type": "string"}}},
        "required": ["questions"],
        "additionalProperties": False,
    },
    _read,
    'Reply with JSON and nothing else: {"questions": ["...", "..."]}',
)
