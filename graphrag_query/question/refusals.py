"""Sentences of answers without evidence, in the language of the question."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from graphrag_nlp.text.languages import Language, read_lists

_TEXTS: Mapping[str, Mapping[str, str]] = read_lists("refusals", Path(__file__).parent)


def format_refusal(kind: str, language: Language, **words: str) -> str:
    """Write a sentence of `refusals.yaml` in a language; in English if it lacks the language."""
    texts = _TEXTS[kind]
    return texts.get(language.code, texts["en"]).format(**words)


def format_not_mentioned(names: Sequence[str], language: Language) -> str:
    """Write the sentence that the documents do not mention these names."""
    joint = f" {format_refusal('or', language)} "
    listed = joint.join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return format_refusal("not_mentioned", language, names=listed)
