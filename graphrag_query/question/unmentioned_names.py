"""The names in a question that the documents do not mention."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rapidfuzz.distance import Indel

from graphrag_nlp.text.languages import MIN_STEM, Language, script_of
from graphrag_nlp.text.normalize import fold, fold_name, letters
from graphrag_query.question.entity_linking import (
    MAX_NAMES_COMPARED,
    find_row,
    find_words_sounding_like,
    rows_with_prefix,
)
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
# Maximum number of words of known names compared (by spelling, by sound) with an unknown word.
MAX_COMPARED_WORDS = 2_000
# Minimum similarity (0 to 1) of what is suggested for an unknown name: of a word to a word of the
# name, and of a title or its best word to the whole name.
MIN_SIMILARITY = 0.6
# Maximum number of titles that are suggested for an unknown name.
MAX_TITLES = 3
# Minimum number of letters of a name that texts may write with other spaces.
MIN_JOINED_CHARS = 5
# Minimum number of initials that abbreviate a name: NATO, but not "KB" for a Karl Berg.
MIN_INITIALS = 3
# Minimum similarity (0 to 1) of two words, and of two whole names, that may be spellings of one.
MIN_WORD_SIMILARITY, MIN_NAME_SIMILARITY = 0.75, 0.85
PERSON = "person"


def find_unmentioned_names(
    index: IndexStore,
    names: Sequence[NameSpan],
    language: Language,
    texts: Iterable[str],
    fuzzy_names: Callable[[], Iterable[str]],
) -> list[str]:
    """Return the names that the documents do not mention in any form or spelling.

    A name is mentioned if its words are, or its letters with other spaces, and, if it looks like
    the full name of a person, if a text has the full name. The words are searched in `texts`, in
    the names of the entities, in the full-text index, and in `fuzzy_names`: names in another
    spelling.
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
    missing = [name for name in missing if not any(_has_letters(text, name) for text in texts)]
    unknown = (
        name.text
        for name in names
        if name.text not in missing and _is_unknown_person(index, name, texts)
    )
    return list(dict.fromkeys([*missing, *unknown]))


def _has_letters(text: str, name: str) -> bool:
    """Return whether a text has a name with other spaces or hyphens: "Bluelamp", "Blue-Lamp"."""
    asked = letters(name)
    if len(asked) < MIN_JOINED_CHARS or asked not in letters(text):
        return False
    return re.search(rf"\b{' ?'.join(asked)}\b", fold_name(text)) is not None


def may_be_mentioned(index: IndexStore, name: str, language: Language) -> bool:
    """Return whether the documents may mention a name in a form that nothing compares.

    That is so if documents are in another script than the name; if it and a known name abbreviate
    each other; and if what is unknown of it is spelt like, sounds like, or consists of words of
    known names.
    """
    known, folded = index.open_mapped("name_words"), fold_name(name)
    scripts = [script_of(code) for code in index.main_languages]
    if not all(re.search(script, folded) for script in scripts):
        return True
    words = folded.split()
    if _abbreviates_known(index, name, words, language):
        return True
    new = [word for word in words if find_row(known, "word", word) is None]
    if new and all(_resembles_known(index, word) for word in new):
        return True
    asked, similar = letters(name), find_similar_names(index, name)
    likeness = (Indel.normalized_similarity(asked, letters(title)) for title in similar)
    return max(likeness, default=0.0) >= MIN_NAME_SIMILARITY


def _abbreviates_known(
    index: IndexStore, name: str, words: Sequence[str], language: Language
) -> bool:
    """Return whether a name is the initials of a known name, or the other way round."""

    def initials_of(words: Iterable[str]) -> str:
        return "".join(word[0] for word in words if word not in language.function_words)

    if len(words) > 1:
        initials, known = initials_of(words), index.open_mapped("name_words")
        return len(initials) >= MIN_INITIALS and find_row(known, "word", initials) is not None
    names = index.open_mapped("entity_names")
    rows = rows_with_prefix(names, "name", words[0][:1], MAX_NAMES_COMPARED) if words else range(0)
    texts = names.texts("name", rows.start, rows.stop) if name.isupper() else []
    return any(initials_of(text.split()) == words[0] for text in texts)


def _resembles_known(index: IndexStore, word: str) -> bool:
    """Return whether a word is spelt like, sounds like, or is composed of words of known names."""
    known = index.open_mapped("name_words")
    rows = rows_with_prefix(known, "word", word[:2], MAX_WORD_FORMS)
    near = [(other, MIN_WORD_SIMILARITY) for other in known.texts("word", rows.start, rows.stop)]
    sounding = find_words_sounding_like(index, word, MAX_WORD_FORMS)
    near += [(known.text("word", row), MIN_SIMILARITY) for row in sounding]
    if any(Indel.normalized_similarity(word, other) >= limit for other, limit in near):
        return True
    # A letter may join two words: Einheit-s-straße.
    return any(
        find_row(known, "word", word[:at]) is not None
        and any(find_row(known, "word", word[start:]) is not None for start in (at, at + 1))
        for at in range(MIN_STEM, len(word) - MIN_STEM + 1)
    )


def find_similar_names(index: IndexStore, name: str) -> list[str]:
    """Return titles of entities with a similar spelling or sound, the most similar first."""
    table = index.open_mapped("name_words")
    similarity_of: dict[int, float] = {}
    for word in fold_name(name).split():
        here = table.find_row("word", word)
        near = range(
            max(table.find_row("word", word[:2]), here - MAX_COMPARED_WORDS // 2),
            min(len(table), here + MAX_COMPARED_WORDS // 2),
        )
        sounding = set(find_words_sounding_like(index, word, MAX_COMPARED_WORDS))
        for row in {*near, *sounding}:
            other = table.text("word", row)
            similarity = Indel.normalized_similarity(word, other)
            is_near = other[:2] == word[:2] and similarity >= MIN_SIMILARITY
            if is_near or row in sounding:
                similarity_of[row] = max(similarity_of.get(row, 0.0), similarity)
    best = sorted(similarity_of, key=lambda row: (-similarity_of[row], row))[:20]
    entities = dict.fromkeys(int(e) for row in best for e in table.numbers("entities", row, 5))
    numbers = [entity for entity in entities if index.keeps_entity(entity)]
    titles = index.entities(numbers)["title"].to_list()
    asked = fold(name)
    similarities = {
        title: max(
            Indel.normalized_similarity(asked, fold(part)) for part in (title, *title.split())
        )
        for title in titles
    }
    similarities = {t: n for t, n in similarities.items() if n >= MIN_SIMILARITY}
    degrees = dict(zip(titles, index.links.n_relationships_of(numbers).tolist(), strict=True))
    return sorted(similarities, key=lambda t: (-similarities[t], -degrees[t], t))[:MAX_TITLES]


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
