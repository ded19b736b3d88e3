"""Which names of a question the documents do not hold: about those, nothing can be answered."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from graphrag_index.text.languages import detect_language, language_of
from graphrag_query.question.entity_linking import names_in_question
from graphrag_query.question.written_names import MIN_STEM, Name, folded, forms_of, names_in

if TYPE_CHECKING:
    from graphrag_query.retrieval.index_store import KnowledgeModel

# No language has longer endings of names, and few words begin alike but for these.
LONGEST_ENDING = 4
MOST_WORDS = 1_000
# Text units in which a name is looked for that stands in none of those read.
TOP_K = 5
_WORD = re.compile(r"[^\W_]+")


def missing_names(question: str, texts: Iterable[str]) -> list[str]:
    """Return the names in a question that no text holds, as the question writes them."""
    return _missing(names_in(question), _Words(question, texts))


def unknown_names(model: "KnowledgeModel", question: str, texts: Iterable[str]) -> list[str]:
    """Return the names in a question that the documents do not hold.

    They are looked for in the texts that were read, then in the full-text index, then
    among the names of the entities: in other forms, and in other spellings.
    """
    names = names_in(question)
    words = _Words(question, texts)
    if not _missing(names, words):
        return []
    table = model.vectors("text_unit_text")
    for word in {word for name in names for word in name.words}:
        if not words.hold(word):
            words.add(table.matching(word, TOP_K, ["text"])["text"])
    if not _missing(names, words):
        return []
    words.add(_entity_words(model, [w for name in names for w in name.words if not words.hold(w)]))
    if not _missing(names, words):
        return []
    named = names_in_question(model, question)
    words.add(entity.name for entity in named if entity.how == "spelling")
    return _missing(names, words)


def not_mentioned(names: Sequence[str]) -> str:
    """Say which names the documents do not hold."""
    listed = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return f"The documents do not mention {listed}."


def _missing(names: list[Name], words: "_Words") -> list[str]:
    missing = []
    for name in names:
        unheld = [not words.hold(word) for word in name.words]
        if words.language.capitalizes_nouns:
            # A capital may mark any noun: two words together, both unheld, are a name.
            absent = len(unheld) > 1 and all(unheld)
        else:
            absent = any(unheld)
        if absent:
            missing.append(name.text)
    return list(dict.fromkeys(missing))


def _entity_words(model: "KnowledgeModel", words: Sequence[str]) -> list[str]:
    """Fetch the words of entities' names that begin as one of these."""
    table = model.map("name_words")
    found = []
    for word in map(folded, words):
        beginning = word[: max(MIN_STEM, len(word) - LONGEST_ENDING)]
        first = table.place("word", beginning)
        stop = table.place("word", beginning + "\U0010ffff", first)
        found += table.texts("word", first, min(stop, first + MOST_WORDS))
    return found


class _Words:
    """The words of texts, found again in any of their forms."""

    def __init__(self, question: str, texts: Iterable[str]) -> None:
        self.language = language_of(detect_language(question))
        self.by_beginning: dict[str, set[str]] = {}
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        for word in {word for text in texts for word in _WORD.findall(text.lower())}:
            plain = folded(word)
            self.by_beginning.setdefault(plain[:MIN_STEM], set()).add(plain)

    def hold(self, word: str) -> bool:
        """Tell whether a text holds a word, without regard to accents and endings."""
        plain = folded(word)
        near = self.by_beginning.get(plain[:MIN_STEM], set())
        if plain in near:
            return True
        forms = forms_of(plain, self.language)
        return any(forms & forms_of(other, self.language) for other in near)
