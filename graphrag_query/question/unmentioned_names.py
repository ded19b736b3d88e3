"""The names in a question that the documents do not mention."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphrag_nlp.text.languages import MIN_STEM, Language
from graphrag_nlp.text.normalize import fold, fold_name
from graphrag_query.question.entity_linking import find_row, rows_with_prefix
from graphrag_query.question.question_words import WORD, NameSpan, TextWords
from graphrag_query.store.index_store import IndexStore

if TYPE_CHECKING:
    from graphrag_index.storage.mapped_table import Integers

# Maximum length of an ending of a name, in characters.
MAX_ENDING_CHARS = 4
# Maximum number of words of known names that are compared as other forms of a word.
MAX_WORD_FORMS = 1_000
# Number of text units that are searched for a word that the texts read so far do not contain.
TOP_K_TEXT_UNITS = 5
# Number of text units that are searched for a given name and a family name side by side.
TOP_K_OF_FULL_NAME = 30
# Maximum number of words between a given name and a family name: "Ernest and Edgar Evans".
MAX_WORDS_BETWEEN = 3
# Maximum number of entities that are read to find out how a word is used in names.
MAX_NAMESAKES = 50
PERSON = "person"


def find_unmentioned_names(
    index: IndexStore,
    names: Sequence[NameSpan],
    language: Language,
    texts: Iterable[str],
    fuzzy_names: Callable[[], Iterable[str]],
) -> list[str]:
    """Return the names that the documents do not mention in any form or spelling.

    A name is mentioned if its words are, and, if it looks like the full name of a person, if a
    text has the full name. The words are searched in `texts`, in the names of the
    entities, in the full-text index, and in `fuzzy_names`: names in another spelling.
    """
    texts = list(texts)
    held = TextWords(texts, language)
    forms = [form for name in names for form in (name.words, *name.other_spacings)]
    words = dict.fromkeys(word for form in forms for word in form)
    if held.missing_names(names):
        known = index.open_mapped("name_words")
        for word in [fold(word) for word in words if not held.contains(word)]:
            prefix = word[: max(MIN_STEM, len(word) - MAX_ENDING_CHARS)]
            rows = rows_with_prefix(known, "word", prefix, MAX_WORD_FORMS)
            held.add_texts(known.texts("word", rows.start, rows.stop))
            if index.has_table("subject_words"):
                subjects = index.open_mapped("subject_words")
                held.add_texts([word] * (find_row(subjects, "word", word) is not None))
    if held.missing_names(names):
        table = index.vectors("text_unit_text")
        for word in words:
            if not held.contains(word):
                held.add_texts(table.find_matching_rows(word, TOP_K_TEXT_UNITS, ["text"])["text"])
    if held.missing_names(names):
        held.add_texts(fuzzy_names())
    missing = held.missing_names(names)
    unknown = (
        name.text
        for name in names
        if name.text not in missing and _is_unknown_person(index, name, texts)
    )
    return list(dict.fromkeys([*missing, *unknown]))


def _is_unknown_person(index: IndexStore, name: NameSpan, texts: Sequence[str]) -> bool:
    """Return whether a name mixes the names of two persons, and no text has it in full.

    "Ernest Evans" does, if the index has only Ernest Shackleton and Edgar Evans. "Robert Scott"
    does not, if it has Robert Falcon Scott: one entity contains both words.
    """
    if len(name.words) != 2:
        return False
    given, family = map(fold_name, name.words)
    of_given, of_family = (_entities_of(index, word) for word in (given, family))
    if np.isin(of_given, of_family).any():
        return False
    of_family = of_family[:MAX_NAMESAKES]
    ends = any(title.endswith(f" {family}") for title in _persons(index, of_family))
    # Two given names, as in "John Ernest", may be those of a person with another family name.
    if not ends or not _is_given_name(index, given) or _is_given_name(index, family):
        return False
    table = index.vectors("text_unit_text")
    found = table.find_matching_rows(f"{given} {family}", TOP_K_OF_FULL_NAME, ["text"])["text"]
    return not any(has_full_name(text, given, family) for text in (*texts, *found))


def _entities_of(index: IndexStore, word: str) -> "Integers":
    """Return the entities with a folded word in their names."""
    table = index.open_mapped("name_words")
    row = find_row(table, "word", word)
    return np.zeros(0, np.int32) if row is None else table.numbers("entities", row)


def _is_given_name(index: IndexStore, word: str) -> bool:
    """Return whether a folded word begins the name of a person."""
    names = index.open_mapped("entity_names")
    rows = rows_with_prefix(names, "name", f"{word} ", MAX_NAMESAKES)
    return bool(_persons(index, names.slice("entity", rows.start, rows.stop)))


def _persons(index: IndexStore, entities: "Integers") -> list[str]:
    """Return the folded titles of the entities that are persons."""
    rows = index.open_mapped("entity_rows").rows(entities, "title", "type")
    return [fold_name(title) for title, kind in rows.iter_rows() if fold(kind or "") == PERSON]


def has_full_name(text: str, given: str, family: str) -> bool:
    """Return whether a text has a full name, also with middle names or turned round.

    "Ernest and Edgar Evans" and "Evans, Ernest" are names of an Ernest Evans; "Ernest Joyce and
    Evans" is not.
    """
    tokens = list(WORD.finditer(text))
    folded = [fold(token[0]) for token in tokens]
    for at, word in enumerate(folded):
        if word == family and folded[at + 1 : at + 2] == [given]:
            return True
        if word != given:
            continue
        for next_at in range(at + 1, min(at + 2 + MAX_WORDS_BETWEEN, len(folded))):
            if folded[next_at] != family:
                continue
            between = [token[0] for token in tokens[at + 1 : next_at]]
            gap = text[tokens[at].end() : tokens[next_at].start()]
            if not between or not between[0][0].isupper():
                return True
            if "," not in gap and all(word[0].isupper() for word in between):
                return True
    return False
