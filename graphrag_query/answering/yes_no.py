"""Yes or no, if a sentence says all that a question does."""

import re
from collections.abc import Collection, Iterable, Sequence

from graphrag_nlp.text.languages import MONTHS, Language, language_of
from graphrag_nlp.text.normalize import fold, stem_word
from graphrag_nlp.text.phrases import fold_question
from graphrag_query.answering.agents import find_named_agents
from graphrag_query.answering.asked_words import AskedWords
from graphrag_query.answering.direct_answer_words import (
    DirectAnswer,
    denies,
    find_phrases,
    find_stems_said,
    find_verb_stems,
    find_word,
)
from graphrag_query.answering.extractive import Candidate, is_question
from graphrag_query.answering.name_roles import CLAUSE_MARK, has_name_apart, has_other_role
from graphrag_query.answering.subjects import find_subjects, refers_back
from graphrag_query.question.answer_kind import CODES_WITH_ANY_VERB_FIRST
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import (
    WORD,
    content_words,
    possible_stems,
    stop_words_of,
)
from graphrag_query.retrieval.foreign_text_units import foreign_languages, foreign_words

# Number of sentences before a sentence that may tell its date.
N_SENTENCES_BEFORE = 2
# Maximum number of words before the name in a sentence about it.
MAX_WORDS_TO_NAME = 12
# Maximum number of words of a subject without capitals, with its article.
MAX_WORDS_OF_SUBJECT = 3
# Minimum number of words of a question that mark the part of a sentence which tells of it, and
# number of words before this part that may change what it says.
MIN_WORDS_OF_PART = 2
N_WORDS_BEFORE = 2
_DIGIT = re.compile(r"\d")


def answer_yes_or_no(
    question: Question,
    best: Candidate,
    candidates: Sequence[Candidate],
    *,
    is_translated: bool = False,
) -> DirectAnswer | None:
    """Say yes if a sentence says all that the question does, and no if it denies it.

    For one word of the question, a synonym is enough, or another form of a verb.
    A sentence with all words and other numbers also denies it: "Was it built in 1912?" - "It was
    built in 1913." The date, and the name that a pronoun stands for, may stand in the sentences
    before. In another language (`is_translated`), a sentence says what its words mean.
    """
    if is_question(best.text):
        return None
    code = question.language.code
    foreign = foreign_languages(question, [best.text_unit])[best.text_unit] if is_translated else ""
    said = find_stems_said(best, question)
    said |= _find_dates_before(best, candidates)
    # Single digits are no content words.
    digits = {word for word in WORD.findall(question.text) if word.isdigit() and len(word) == 1}
    asked = {*question.content_words, *digits}
    numbers = {word for word in asked if _DIGIT.search(word)}
    if numbers:
        # "In the year 1911" is "in 1911".
        year = find_phrases("year", code)
        asked = {word for word in asked if not year.fullmatch(fold(word))} | numbers
    said |= _find_subject_before(best, candidates, question, asked - said)
    shortened = _find_shortened_names(best, question)
    said |= shortened & asked
    said |= _find_other_forms(best, question, asked - numbers - said)
    patterns = foreign_words(question) if foreign else {}
    said.update(word for word, found in patterns.items() if found.search(best.text.lower()))
    if len(asked - numbers - said) == 1:
        words = WORD.findall(best.text.lower())
        said |= AskedWords(question).find_synonyms(words)
    is_said = asked - numbers <= said and (foreign or _has_verb(best, question))
    if not asked - numbers or not is_said:
        return None
    told = _find_told_part(best.text, question, patterns.values())
    relations = [
        set(find_phrases("relations", own).findall(fold_question(text)))
        for text, own in ((question.text, code), (told, foreign or code))
    ]
    if relations[0] != relations[1] or (foreign and any(relations)):
        return None
    names = _find_capitalized(question, asked - shortened)
    if _is_told_of_others(best, told, question, names, foreign):
        return None
    is_yes = denies(question.text, code) == denies(told, foreign or code)
    if not numbers <= said:
        missing = numbers - said
        others = _find_numbers_told(best, question) | _find_dates_before(best, candidates)
        others = {word for word in others - asked if _DIGIT.search(word)}
        # Another digit often counts something else.
        if (
            not is_yes
            or missing & digits
            or {len(word) for word in missing} != {len(word) for word in others}
        ):
            return None
        is_yes = False
    return DirectAnswer(find_word("affirmative" if is_yes else "negative", question), (best,))


def _find_capitalized(question: Question, stems: set[str]) -> list[str]:
    """Return the capitalized words of a question that have one of the stems, in lower case.

    The first word may be a name only in languages whose questions do not begin with a verb.
    """
    words = WORD.findall(question.text)
    if question.language.code in CODES_WITH_ANY_VERB_FIRST:
        words = words[1:]
    return [
        word.lower() for word in words if word[0].isupper() and stem_word(word.lower()) in stems
    ]


def _is_told_of_others(
    best: Candidate, told: str, question: Question, names: Sequence[str], foreign: str
) -> bool:
    """Return whether a sentence has the names of a question in other roles, or longer names.

    "Did Ann call Eve?" is not decided by "Eve called Ann" and "Ann was called by Eve". `foreign`
    is the language of the sentence if it is another one, or "".
    """
    plain = fold_question(best.quotation)
    places = [plain.find(fold(name)) for name in names]
    if foreign:
        # Translated names have other letters.
        places = [place for place in places if place >= 0]
    language = language_of(foreign) if foreign else question.language
    agents = find_named_agents(told, language) - find_named_agents(question.text, question.language)
    is_swapped = not agents.isdisjoint(names) or places != sorted(places)
    return (
        is_swapped
        or has_name_apart(best.quotation, question)
        or has_other_role(best.text, question, names, language)
    )


def _find_told_part(text: str, question: Question, patterns: Collection[re.Pattern[str]]) -> str:
    """Return the part of a sentence from its first word of the question to the end of a clause.

    Two words before it may deny it, too.
    """
    asked, forms = set(question.content_words), question.stems_of_forms
    tokens = list(WORD.finditer(text))
    words = [token[0].lower() for token in tokens]
    stems = [forms.get(stem, stem) for stem in map(stem_word, words)]
    held = [
        i
        for i, stem in enumerate(stems)
        if stem in asked or any(found.search(words[i]) for found in patterns)
    ]
    if len(held) < MIN_WORDS_OF_PART:
        return text
    start = tokens[max(0, held[0] - N_WORDS_BEFORE)].start()
    marks = list(CLAUSE_MARK.finditer(text, start, tokens[held[0]].start()))
    start = marks[-1].end() if marks else start
    end = CLAUSE_MARK.search(text, tokens[held[-1]].end())
    return text[start : end.start() if end else len(text)]


def _find_numbers_told(best: Candidate, question: Question) -> set[str]:
    """Return the numbers of a sentence, except in parts that tell of something else.

    "Ann, born 1870, left" does not tell when Ann left, but "In 1913, Ann left" does.
    """
    asked, forms = set(question.content_words), question.stems_of_forms
    found = set[str]()
    for part in (best.about, *CLAUSE_MARK.split(best.text)):
        words = [word for word in WORD.findall(part.lower()) if word not in MONTHS]
        stems = content_words(" ".join(words), question.language)
        numbers = {word for word in stems if _DIGIT.search(word)}
        beside = {forms.get(stem, stem) for stem in stems} - numbers
        if not beside or beside & asked:
            found |= numbers
    return found


def _find_dates_before(candidate: Candidate, candidates: Sequence[Candidate]) -> set[str]:
    """Return the stems of months and numbers in the sentences just before in the text unit."""
    words = WORD.findall(" ".join(c.text for c in _before(candidate, candidates)).lower())
    return {stem_word(word) for word in words if word in MONTHS or word.isdigit()}


def _find_subject_before(
    best: Candidate, candidates: Sequence[Candidate], question: Question, missing: set[str]
) -> set[str]:
    """Return the missing words that name what a sentence without a name at its start is about.

    They are the subject of the sentence before or of the first one of the text unit. A sentence
    that begins with a pronoun may be about what has no capital: "They", the cooks.
    """
    until = [c for c in candidates if c.text_unit == best.text_unit]
    until = [c for c in until if c.start_char <= best.start_char]
    if not missing or len(until) < 2:
        return set()
    subject = find_subjects(until, question.language)[-1]
    if subject & set(WORD.findall(best.text.lower())):
        return set()
    about = set(subject)
    is_pronoun = refers_back(best.text, question.language)
    for sentence in (until[-2], until[0]):
        words = WORD.findall(sentence.text)[:MAX_WORDS_TO_NAME]
        about.update(
            word.lower()
            for i, word in enumerate(words)
            if word[0].isupper() or (is_pronoun and i < MAX_WORDS_OF_SUBJECT)
        )
    return missing & set(map(stem_word, about))


def _find_shortened_names(best: Candidate, question: Question) -> set[str]:
    """Return the stems of first names that a sentence leaves out: "Mr Nowak" is "Olga Nowak".

    The text unit mentions the entity that the question names, and no other one with that last word.
    """
    here = set(WORD.findall(best.text.lower()))
    found = set[str]()
    for mention in question.mentions.likeliest_mentions:
        *first, last = mention.name.split()
        if not first or last not in here or here.intersection(first):
            continue
        entities = question.index.links.entities_of(best.text_unit).numbers.tolist()
        titles = question.index.entities(entities)["title"]
        alike = [
            entity
            for entity, title in zip(entities, titles, strict=True)
            if last in WORD.findall(title.lower())
        ]
        if alike == [mention.entity]:
            found.update(map(stem_word, first))
    return found


def _before(candidate: Candidate, candidates: Sequence[Candidate]) -> list[Candidate]:
    same_unit = [c for c in candidates if c.text_unit == candidate.text_unit]
    return [c for c in same_unit if c.end_char <= candidate.start_char][-N_SENTENCES_BEFORE:]


def _find_other_forms(best: Candidate, question: Question, missing: set[str]) -> set[str]:
    """Return the missing words that a sentence has in another form; of verbs, at most one.

    English forms have the same stem anyway.
    """
    language = question.language
    asked = [w for w in WORD.findall(question.text.lower()) if stem_word(w) in missing]
    if not asked or language.code == "en":
        return set()
    words = set(WORD.findall(best.text.lower()))
    nouns = frozenset[str]().union(*(possible_stems(word, language) for word in words))
    declined = {stem_word(word) for word in asked if possible_stems(word, language) & nouns}
    left = {stem_word(word): word for word in asked if stem_word(word) not in declined}
    if len(left) == 1:
        ((stem, verb),) = left.items()
        if any(_find_matching_verbs(verb, words, language)):
            return {*declined, stem}
    return declined


def _find_matching_verbs(verb: str, words: Iterable[str], language: Language) -> list[str]:
    stems = find_verb_stems(verb, language.code)
    return [word for word in words if stems & find_verb_stems(word, language.code)]


def _has_verb(best: Candidate, question: Question) -> bool:
    """Return whether the first word of a question is no noun or name in the sentence.

    "Ernest Shackleton am Südpol?" asks for no yes or no.
    """
    first = (WORD.findall(question.text.lower()) or [""])[0]
    language = question.language
    if language.code not in CODES_WITH_ANY_VERB_FIRST or first in stop_words_of(language):
        return True
    stems = possible_stems(first, language) | find_verb_stems(first, language.code)
    forms = {form for form, stem in question.stems_of_forms.items() if stem == stem_word(first)}
    tokens = WORD.findall(best.text)
    alike = [
        (i, token)
        for i, token in enumerate(tokens)
        if stem_word(token.lower()) in forms
        or stems
        & (possible_stems(token.lower(), language) | find_verb_stems(token.lower(), language.code))
    ]
    # German nouns have capitals, and no German sentence but a question begins with its verb.
    may_begin = not language.capitalizes_nouns
    return not alike or any(token.islower() or (may_begin and not i) for i, token in alike)
