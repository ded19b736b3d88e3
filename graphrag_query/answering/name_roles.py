"""Roles of names in sentences: whether a sentence tells of a name, or of what belongs to it."""

import re
from collections.abc import Collection, Sequence

from graphrag_nlp.text.languages import Language
from graphrag_nlp.text.normalize import stem_word
from graphrag_nlp.text.phrases import fold_question
from graphrag_query.answering.direct_answer_words import word_lists
from graphrag_query.answering.names_of_class import listed_words
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD

# Languages whose names have an s if something belongs to them: "Olgas Schwester".
CODES_WITH_GENITIVE_S = frozenset(("de", "nl", "sv", "da"))
# Languages in which the subject stands before the verb, except in questions.
CODES_WITH_SUBJECT_FIRST = frozenset(("en", "fr"))
# The end of the first of two words, if something belongs to it: "Olga's", "Hans' sister".
_GENITIVE = re.compile(r"['’]s?\b|['’]\s")
CLAUSE_MARK = re.compile(r"[,;:.!?()–—]")


def has_other_role(
    sentence: str, question: Question, names: Collection[str], language: Language
) -> bool:
    """Return whether a sentence does not tell of a name of a question what the question asks.

    In "Olga's sister visited Rome" and in "everyone but Olga visited it", Olga has another role
    than in "Did Olga visit Rome?"; and in "Jan visited Olga in Rome" and "Olga told Jan to visit
    Rome", the verb has another subject. `names` are words in lower case, and `language` is that of
    the sentence.
    """
    for name in names:
        told = _find_roles(sentence, name, language)
        asked = _find_roles(question.text, name, question.language)
        if told and not told & {*asked, ""}:
            return True
    return language == question.language and _has_other_subject(sentence, question, names)


def has_name_apart(sentence: str, question: Question) -> bool:
    """Return whether a sentence has the words of a name apart, as in "South Magnetic Pole"."""
    plain = fold_question(sentence)
    names = [found.name for found in question.mentions.whole_names if " " in found.name]
    return any(name not in plain and all(word in plain for word in name.split()) for name in names)


def _find_roles(text: str, name: str, language: Language) -> set[str]:
    """Return the roles that a name has in a text: `owner`, `exception`, or "" for others."""
    owners, exceptions = (
        word_lists()[key].get(language.code, "").split() for key in ("owners", "exceptions")
    )
    tokens = list(WORD.finditer(text))
    roles = set()
    for i, token in enumerate(tokens):
        word = token[0].lower()
        is_inflected = word == f"{name}s" and language.code in CODES_WITH_GENITIVE_S
        if word != name and not is_inflected:
            continue
        before = tokens[i - 1] if i else None
        if before and i > 1 and before[0].lower() in language.determiners:
            before = tokens[i - 2]
        is_joined = before and not CLAUSE_MARK.search(text, before.end(), token.start())
        joint = before[0].lower() if before and is_joined else ""
        if is_inflected or joint in owners or _GENITIVE.match(text, token.end()):
            roles.add("owner")
        else:
            # "It was cold, but Olga came" excepts nobody.
            starts = before and CLAUSE_MARK.search(text[: before.start()].rstrip()[-1:])
            roles.add("exception" if joint in exceptions and not starts else "")
    return roles


def _has_other_subject(sentence: str, question: Question, names: Collection[str]) -> bool:
    """Return whether a sentence gives the verb of a question another subject.

    The subject in the question is its first name, if it stands before the verb. Languages in which
    nouns have capitals are left out. In some others the verb of the sentence may come first.
    """
    language = question.language
    subject, verb = _find_subject_and_verb(question, names)
    if not verb or language.capitalizes_nouns:
        return False
    words = WORD.findall(sentence)
    lowered = [word.lower() for word in words]
    forms = question.stems_of_forms
    stems = [forms.get(stem, stem) for stem in map(stem_word, lowered)]
    starts = [i for i, word in enumerate(lowered) if word == subject]
    verbs = [i for i, stem in enumerate(stems) if stem == verb]
    if not starts or not verbs:
        return False
    pairs = [(start, end) for start in starts for end in verbs if start < end]
    if not pairs:
        return language.code in CODES_WITH_SUBJECT_FIRST
    return all(_is_name_between(words, start, end, names, language) for start, end in pairs)


def _find_subject_and_verb(question: Question, names: Collection[str]) -> tuple[str, str]:
    """Return the last word of the first name, and the stem of the word that tells what it does.

    A word behind an article is a noun: "Was Olga a cook?".
    """
    tokens = WORD.findall(question.text)
    lowered = [token.lower() for token in tokens]
    places = [i for i, word in enumerate(lowered) if word in names]
    if not places:
        return "", ""
    last = places[0]
    while last + 1 < len(tokens) and lowered[last + 1] in names:
        last += 1
    for i in range(last + 1, len(tokens)):
        if (stem := stem_word(lowered[i])) in question.content_words:
            is_noun = lowered[i - 1] in question.language.determiners or lowered[i] in names
            return lowered[last], "" if is_noun else stem
    return "", ""


def _is_name_between(
    words: Sequence[str], start: int, end: int, names: Collection[str], language: Language
) -> bool:
    """Return whether a name that may be a subject stands between two words.

    "Olga and Jan", "Olga Nowak", "Olga of Altdorf" and "Olga is a Greek" have no other subject.
    """
    joints = language.place_prepositions | language.other_prepositions | language.copulas
    joints |= listed_words("agents", language.code)
    joints |= set(word_lists()["conjunctions"].get(language.code, "").split())
    for i in range(start + 1, end):
        word = words[i]
        if not word[0].isupper() or word.lower() in names:
            continue
        before = i - 1
        while before > start and words[before].lower() in language.determiners:
            before -= 1
        if not words[before][0].isupper() and words[before].lower() not in joints:
            return True
    return False
