"""The words of a question: content words, and names found by their capitals.

The built-in embedding models cannot distinguish texts in some scripts. For these scripts, shared
words or pairs of adjacent characters (bigrams) replace the cosine similarity.
"""

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_index.errors import SettingsError
from graphrag_index.llm.local.local_models import BUILT_IN_MODELS
from graphrag_nlp.text.languages import (
    HONORIFICS,
    MIN_STEM,
    PARTICLES,
    RANKS,
    Language,
    detect_language,
    find_stems,
    language_of,
    read_lists,
    word_set,
)
from graphrag_nlp.text.normalize import (
    UNSPACED_OR_HANGUL,
    fold,
    is_unspaced,
    remove_formatting,
    replace_surrogates,
    stem_word,
)

if TYPE_CHECKING:
    from graphrag_query.store.index_store import IndexStore

# The lists of words that questions use.
WORD_LISTS = read_lists("words", Path(__file__).parent)
QUESTION_WORDS = word_set(WORD_LISTS["question_words"])
# Stems of words in questions about the whole corpus, which say nothing about the subject.
STEMS_ABOUT_CORPUS = {stem_word(word) for word in word_set(WORD_LISTS["whole_corpus"])}
# The same for questions to global search, which is asked about the whole corpus more often.
STEMS_BESIDE_CORPUS = {stem_word(word) for word in word_set(WORD_LISTS["beside_whole_corpus"])}
# Minimum share (0 to 1) of a question's character bigrams that a sentence must contain.
MIN_PAIR_SHARE = 0.2
# Minimum number of equal characters at the start of two words that differ only in their endings.
MIN_SHARED_PREFIX = 4
# Places whose English adjective ends in one of the following, behind the name without its last
# vowels. Other names have such words beside them, too: Julia and Julian.
PLACES_WITH_ADJECTIVES = word_set(WORD_LISTS["places_with_adjectives"])
ADJECTIVE_ENDINGS = frozenset(("n", "an", "ian", "ean", "ese", "i", "ish"))
WORD = re.compile(r"[^\W_]+")
# The place between words that are written together, as in "WolfgangSchulz".
_JOINED_WORDS = re.compile(r"(?<=[a-zß-öø-ÿ])(?=[A-ZÀ-Þ][a-zß-öø-ÿ])")
_LETTER = re.compile(r"[^\W\d_]")
_LATIN_LETTER = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
# Scripts that are compared by character bigrams, because they are written without spaces, or
# (Korean) have endings as long as the words.
_PAIRED_SCRIPTS = re.compile(rf"{UNSPACED_OR_HANGUL}+")
# The Arabic article at the start of a word, alone or after a prefix for "and", "by" or "like".
_ARABIC_PREFIX = re.compile(r"^[\u0648\u0641\u0628\u0643]?\u0627\u0644(?=\w{3})")
# Words and marks that may join two words of a name: O'Brien, J. R. Smith, Erich von Drygalski.
_NAME_PARTICLES = "|".join(sorted(PARTICLES | {"dos", "of", "the"}))
_BETWEEN_WORDS_OF_NAME = re.compile(rf"(?:[\s’'.-]+(?:{_NAME_PARTICLES}))*(?:\s+|[’'-]|\.\s*)")
_INVERTED_MARK = re.compile(r"(?:^|[.!?…]\s)\s*[¿¡]")
_SENTENCE_END = re.compile(r"[?!…:]|\.\s")
# Titles such as "Dr" or "Captain". A text may name the person without the title.
_PERSONAL_TITLES = HONORIFICS | RANKS


def check_question(question: object) -> str:
    """Return a question without invalid and formatting characters.

    Raises SettingsError if it is empty.
    """
    if not isinstance(question, str):
        raise SettingsError(f"A question is a text, not {type(question).__name__}: {question!r}.")
    if not question.strip():
        raise SettingsError("The question is empty.")
    return remove_formatting(replace_surrogates(question))


def check_questions(questions: Iterable[str]) -> Iterable[str]:
    """Return the questions; raise SettingsError for one text, whose letters are no questions."""
    if isinstance(questions, str):
        raise SettingsError("Many questions are a list of texts, not one text.")
    return questions


def language_in(text: str) -> Language:
    """Detect the language of a text. An inverted mark before a sentence is Spanish."""
    return language_of("es" if _INVERTED_MARK.search(text) else detect_language(text))


def find_question_language(question: str, of_documents: Set[str] = frozenset()) -> Language:
    """Detect the language of a question: a short one by its first word, if by nothing else.

    "Combien coûte le billet ?" has few function words, but only French begins so. A capital after a
    word such as "die" shows German: "Baute Olga die Mühle?". What may be in several languages, such
    as "Is Olga blind?", is in one of those of the documents, or else in English. "Altdorf?" is in
    none.
    """
    language = language_in(question)
    words = WORD.findall(question)
    if language.code != "und" or not words:
        return language
    first = fold(words[0].lower())
    codes = [
        code
        for code, listed in _first_words().items()
        if any(first.startswith(word[:-1]) if word[-1] == "*" else first == word for word in listed)
    ]
    if not codes and question.rstrip().endswith("?"):
        articles = language_of("de").determiners
        codes = ["de" for word, noun in pairwise(words) if word in articles and noun[0].isupper()]
    likely = [code for code in dict.fromkeys(codes) if code in of_documents]
    if not codes:
        held = {word.lower() for word in words}
        likely = [code for code in of_documents if held & language_of(code).function_words]
    likely = likely or [code for code in codes if len(set(codes)) == 1 or code == "en"]
    return language_of(likely[0]) if len(set(likely)) == 1 else language


@cache
def _first_words() -> dict[str, list[str]]:
    return {code: words.split() for code, words in WORD_LISTS["first_words"].items()}


def stop_words_of(language: Language) -> frozenset[str]:
    """Return the words of a language that say nothing about the subject of a question."""
    return language.function_words | QUESTION_WORDS


def split_joined_words(text: str) -> str:
    """Separate the words of names that are written together, such as "WolfgangSchulz"."""
    return _JOINED_WORDS.sub(" ", text)


def content_words(text: str, language: Language | None = None) -> list[str]:
    """Return the stems of the words that carry the meaning of a text, without duplicates."""
    stop_words = stop_words_of(language or language_in(text))
    words = WORD.findall(split_joined_words(text).lower())
    words = [word for word in words if word not in stop_words and len(word) > 1]
    return list(dict.fromkeys(map(stem_word, words)))


def is_unreadable(index: "IndexStore", text: str) -> bool:
    """Return whether the embedding model cannot read what a text says, or is missing.

    It reads Latin letters, and needs those of the subject: "Who is 林海?" has others.
    """
    if index.backend.lacks_vectors:
        return True
    if index.settings.generate_text_embeddings.model not in BUILT_IN_MODELS or text.isascii():
        return False
    parts = (text, "".join(content_words(text)))
    return any(2 * len(_LATIN_LETTER.findall(p)) < len(_LETTER.findall(p)) for p in parts)


def share_words(question: str, sentence: str) -> bool:
    """Return whether a sentence and a question share a word, or enough character bigrams."""
    pairs = _character_pairs(question)
    if pairs and len(pairs & _character_pairs(sentence)) >= MIN_PAIR_SHARE * len(pairs):
        return True
    held = {_ARABIC_PREFIX.sub("", word) for word in WORD.findall(sentence.lower())}
    for word in content_words(_PAIRED_SCRIPTS.sub(" ", question)):
        word = _ARABIC_PREFIX.sub("", word)
        if len(word) < MIN_SHARED_PREFIX:
            if len(word) > 2 and word in held:
                return True
        elif any(other.startswith(word[: max(MIN_SHARED_PREFIX, len(word) - 2)]) for other in held):
            return True
    return False


def share_of_words(question: str, text: str) -> float:
    """Return the share (0 to 1) of the words of a question, or character bigrams, in a text."""
    words = {word.lower() for word in WORD.findall(_PAIRED_SCRIPTS.sub(" ", question))}
    parts, lower = words | _character_pairs(question), text.lower()
    return sum(part in lower for part in parts) / max(len(parts), 1)


def _character_pairs(text: str) -> set[str]:
    runs = _PAIRED_SCRIPTS.findall(text)
    return {run[i : i + 2] for run in runs for i in range(max(1, len(run) - 1))}


@dataclass(frozen=True)
class NameSpan:
    """A name as written in a text, and its words in lower case without titles such as "Dr"."""

    text: str
    words: tuple[str, ...]

    def starts_of_joined(self) -> dict[str, str]:
        """Map the stems of the further words to the words before them, written together."""
        words = WORD.findall(split_joined_words(self.text).lower())
        return {stem_word(words[i]): "".join(words[:i]) for i in range(1, len(words))}

    @property
    def other_spacings(self) -> list[tuple[str, ...]]:
        """The words of the name if all are written together, and if none are.

        "Wolfgang Schulz" has the other spacing "wolfgangschulz", and the other way round.
        """
        split = split_joined_words(self.text)
        forms = [tuple(WORD.findall(split.lower()))] if split != self.text else []
        return [*forms, ("".join(self.words),)] if len(self.words) > 1 else forms


def name_spans(text: str, language: Language) -> list[NameSpan]:
    """Find the names in a text: runs of capitalized words, and of words without case.

    The first word of a sentence does not count, because it is always capitalized. A headline or
    a text in capitals has no names, because every word there is capitalized. Words without case,
    as in Korean or Arabic, are names in a text of a language that has capitals.
    """
    stop_words = stop_words_of(language)
    tokens = list(WORD.finditer(text))
    takes_uncased = bool(language.function_words) and not text.isascii()
    # Skip the first word, because it begins a sentence.
    pairs = pairwise(tokens)
    inside = [token for before, token in pairs if not _begins_sentence(text, before, token)]
    words = [token[0] for token in inside if len(token[0]) > 1]
    has_plain_capital = any(word[0].isupper() and word.lower() in stop_words for word in words)
    if has_plain_capital and all(word[0].isupper() or word.lower() in stop_words for word in words):
        return []
    names: list[list[re.Match[str]]] = []
    for token in inside:
        # The number of a record is a name with its letters: T-1042.
        end = names[-1][-1].end() if names else 0
        is_code = len(token[0]) > 2 and token[0].isdigit() and text[end : token.start()] == "-"
        is_name = token[0][0].isupper() or is_code
        if not (is_name or (takes_uncased and is_uncased(token[0]))):
            continue
        if names and _BETWEEN_WORDS_OF_NAME.fullmatch(text, names[-1][-1].end(), token.start()):
            names[-1].append(token)
        elif token[0].lower() not in stop_words:
            names.append([token])
    found = []
    for name in names:
        words = [token[0].lower() for token in name if len(token[0]) > 1]
        words = [word for word in words if word not in stop_words and word not in _PERSONAL_TITLES]
        found.append(NameSpan(text[name[0].start() : name[-1].end()], tuple(words)))
    return found


def is_uncased(word: str) -> bool:
    """Return whether a word is in a script with spaces, but without capitals, such as Arabic."""
    return word[0] > "\u058f" and word[0].lower() == word[0].upper() and not is_unspaced(word)


def _begins_sentence(text: str, before: re.Match[str], token: re.Match[str]) -> bool:
    # A short word before a full stop may be an abbreviation or an initial: Prof. O'Brien.
    end = _SENTENCE_END.search(text, before.end(), token.start())
    return end is not None and (end[0][0] != "." or len(before[0]) > 4)


def possible_stems(word: str, language: Language) -> frozenset[str]:
    """Return the possible stems of a word without accents, including its English stem."""
    # In most supported languages, a final s marks the possessive or the plural.
    without_s = word.removesuffix("s")
    forms = find_stems(word, language) | {stem_word(word)}
    return forms | {without_s} if len(without_s) >= MIN_STEM else forms


def is_adjective_of(word: str, name: str) -> bool:
    """Return whether a folded English word is the adjective of a place: "syrian" of "syria"."""
    if word[:MIN_STEM] != name[:MIN_STEM] or name not in PLACES_WITH_ADJECTIVES:
        return False
    stem = name.rstrip("aeoy")
    if len(stem) < MIN_STEM or not word.startswith(stem):
        return False
    ending = word[len(stem) :]
    return ending in ADJECTIVE_ENDINGS or (not ending and name.endswith("y"))


class TextWords:
    """The words of some texts. A word is found in any inflected form."""

    def __init__(self, texts: Iterable[str], language: Language) -> None:
        self.language = language
        self._by_prefix: dict[str, set[str]] = {}
        self.add_texts(texts)

    def add_texts(self, texts: Iterable[str]) -> None:
        """Add the words of more texts."""
        for word in {word for text in texts for word in WORD.findall(text.lower())}:
            folded = fold(word)
            self._by_prefix.setdefault(folded[:MIN_STEM], set()).add(folded)

    def contains(self, word: str) -> bool:
        """Return whether a text contains a word, ignoring accents and endings.

        In a script without case, the word may be a part of another one.
        """
        folded = fold(word)
        if is_uncased(word):
            return any(folded in other for own in self._by_prefix.values() for other in own)
        near = self._by_prefix.get(folded[:MIN_STEM], set())
        forms = possible_stems(folded, self.language)
        if folded in near or any(forms & possible_stems(other, self.language) for other in near):
            return True
        return self.language.code == "en" and any(is_adjective_of(other, folded) for other in near)

    def missing_names(self, names: Iterable[NameSpan]) -> list[str]:
        """Return the names that no text contains, without duplicates."""
        return list(dict.fromkeys(name.text for name in names if self._is_missing(name)))

    def _is_missing(self, name: NameSpan) -> bool:
        absent = [not self.contains(word) for word in name.words]
        if self.language.capitalizes_nouns:
            # German writes all nouns with a capital, and texts may lack a noun of the question.
            # So a name is missing only if it has several words, and the texts contain none.
            is_missing = len(absent) > 1 and all(absent)
        else:
            is_missing = any(absent)
        return is_missing and not any(
            all(map(self.contains, words)) for words in name.other_spacings
        )
