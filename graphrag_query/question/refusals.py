"""Sentences of answers without evidence, in the language of the question."""

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from graphrag_nlp.text.languages import Language, read_lists
from graphrag_query.answer import Cell

_TEXTS: Mapping[str, Mapping[str, Any]] = read_lists("refusals", Path(__file__).parent)


def format_refusal(kind: str, language: Language, **words: str) -> str:
    """Write a sentence of `refusals.yaml` in a language; in English if it lacks the language."""
    texts = _TEXTS[kind]
    text: str = texts.get(language.code, texts["en"])
    return text.format(**words)


def format_not_mentioned(names: Sequence[str], language: Language) -> str:
    """Write the sentence that the documents do not mention these names."""
    return format_names("not_mentioned", names, language)


def format_names(kind: str, names: Sequence[str], language: Language) -> str:
    """Write a sentence of `refusals.yaml` about names."""
    joint = f" {format_refusal('or', language)} "
    listed = joint.join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return format_refusal(kind, language, names=listed)


def format_no_answer(language: Language, of_documents: Set[str]) -> str:
    """Write that nothing answers a question, and in which other languages the documents are.

    `of_documents` are the languages of the documents, empty if they are not known.
    """
    text = format_refusal("no_answer", language)
    known = _TEXTS["names_of_languages"].get(language.code, {})
    names = [known[code] for code in sorted(of_documents) if code in known]
    if language.code in of_documents or len(names) < len(of_documents) or not names:
        return text
    joint = format_refusal("and_before_i" if names[-1].startswith("i") else "and", language)
    listed = f" {joint} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return f"{text} {format_refusal('languages_of_documents', language, languages=listed)}"


def format_absence(cell: Cell, language: Language) -> str:
    """Write what the documents do not have on a thing and a period."""
    if cell.state == "no_thing":
        return format_not_mentioned([cell.thing], language)
    if cell.state == "no_period":
        words = {"thing": cell.thing, "period": cell.period, "covered": cell.covered}
        return format_refusal("no_period", language, **words)
    return format_refusal("no_statement", language, label=cell.label)
