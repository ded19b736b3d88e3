"""Sentences of an index that state a fact about a named subject.

Only plain English sentences are understood: they begin with the name of an entity, perhaps with a
role before it, and what follows is a verb of a known form, refers to nothing outside the sentence,
and names something else or a number. So a question can be made from the words of the sentence, and
a reader of the sentence can answer it. Few sentences pass; rather none than a wrong one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from graphrag_evaluation.generation.index_sentences import Mention, Sentence
from graphrag_evaluation.questions import GoldSpan
from graphrag_nlp.text.languages import language_of, read_lists, word_set
from graphrag_nlp.text.normalize import fold

# Names of a sentence that are tried as its subject.
MAX_SUBJECTS = 4
MAX_ROLE_WORDS = 5
# Number of words of a predicate.
MIN_WORDS, MAX_WORDS = 4, 28
# Short statements of what somebody says are made by many.
MIN_WORDS_SAID = 8
# Number of words that say something without the clause after them.
MIN_WORDS_BEFORE_CLAUSE = 6
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_YEAR = r"(?:1[0-9]{3}|20[0-9]{2})"
# A time with its preposition; the group `time` has the answer.
TIME = re.compile(
    rf"\s(?:in|on)\s(?P<time>(?:\d{{1,2}}\s(?:{_MONTH})\s|(?:{_MONTH})\s(?:\d{{1,2}},?\s)?)?"
    rf"(?P<year>{_YEAR}))(?![\w-]|\s(?:to|and|or|until)\s\d)"
)
# The predicate ends before a clause that only adds something.
_CLAUSE = re.compile(
    r"\s*(?:[;:(–—]|,\s(?:and|but|so|although|though|where|which|who|because|since|whose|whom"
    r"|\w+ing|according|including|then)\b|\s(?:but|although|because|whereas)\b|,\s*$)"
)
# A statement that holds only under a condition, or of several subjects, asks for no single one.
_CONDITION = re.compile(
    r"\b(?:while|when|until|if|unless|as (?:the|a|he|she|it|they)|where)\b"
    # Two statements with one verb: "took 3 for 77 and McGrath 2 for 66".
    r"|\band (?:[A-Z]\w+ )+\d|^says? that (?!the|there|an?\b|[A-Z])"
    r"|^(?:was|is) (?:also |still )?(?:a|an|one|among|part|in|on|at)\b"
)
_NEXT_STATEMENT = re.compile(r",? (?:and|but|so|although|though|because|since|whereas)\b")
_PARTICIPLE = re.compile(r",\s\w+ing\b")
_SEQUENCE = re.compile(r"\b(?:before|after)\b")
_DEMONYM = re.compile(r"(?:er|ian|ese|man|woman)$")
# An addition to a name: ", a seaman from County Kerry," or "(IMF)".
_APPOSITION = re.compile(r"^(?:, [^,()]{2,80}, (?=\w)| \([A-Z]{2,8}\) )")


@dataclass(frozen=True)
class Fact:
    """A statement about a subject: ``subject predicate`` are the words of a sentence.

    `named` maps the titles of other entities in the predicate to (name there, type). `time` is the
    text of the only time in the predicate, and `before_time` the predicate up to it.
    """

    subject: str
    article: str  # "the " if the sentence has it before the subject
    subject_names: tuple[str, ...]  # the title, and its other names
    subject_type: str
    predicate: str
    span: GoldSpan
    named: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    time: str = ""
    before_time: str = ""

    @property
    def year(self) -> int:
        """The year of `time`; 0 without a time."""
        return int(self.time[-4:]) if self.time else 0

    @property
    def sentence(self) -> str:
        """The statement with the title of its subject, as a sentence of its own."""
        said = f"{self.article}{self.subject} {self.predicate}."
        return said[0].upper() + said[1:]


@cache
def fact_words() -> Mapping[str, Any]:
    """Return the word lists of `fact_words.yaml`."""
    return read_lists("fact_words", Path(__file__).parent)


def find_facts(sentences: Iterable[Sentence]) -> list[Fact]:
    """Find facts in sentences, in their order; sentences of other languages have none."""
    found = (_read_fact(sentence) for sentence in sentences if sentence.language == "en")
    return [fact for fact in found if fact is not None]


def _read_fact(sentence: Sentence) -> Fact | None:
    """Return the fact about the first name of a sentence that a predicate follows."""
    for subject in sentence.mentions[:MAX_SUBJECTS]:
        before, rest = sentence.text[: subject.start], sentence.text[subject.end :]
        if before not in ("", "The ") and not (
            subject.type == "person" and _is_role(before.split())
        ):
            continue
        # "The New Zealander" names nobody.
        is_clear = before != "The " or subject.type != "name" or not _DEMONYM.search(subject.title)
        predicate = _read_predicate(rest) if is_clear else None
        if predicate is not None:
            return _make_fact(sentence, subject, before, predicate)
    return None


def _make_fact(sentence: Sentence, subject: Mention, before: str, predicate: str) -> Fact | None:
    begin = sentence.text.index(predicate, subject.end)
    others = {
        one.title: (sentence.text[one.start : one.end], one.type)
        for one in sentence.mentions
        if one.title != subject.title and begin <= one.start and one.end <= begin + len(predicate)
    }
    times = list(TIME.finditer(f" {predicate}"))
    if not others and not times:
        return None
    # The time of a clause is not that of the statement.
    time = times[0] if len(times) == 1 and not _SEQUENCE.search(predicate) else None
    said = sentence.text[subject.start : subject.end]
    role = [] if before in ("", "The ") else [f"{before}{said}"]
    return Fact(
        subject=subject.title,
        article="the " if before == "The " else "",
        subject_names=tuple(dict.fromkeys((subject.title, *subject.aliases, said, *role))),
        subject_type=subject.type,
        predicate=predicate,
        span=sentence.span,
        named=others,
        time=time["time"] if time else "",
        before_time=f" {predicate}"[: time.start()].strip() if time else "",
    )


def _is_role(words: Sequence[str]) -> bool:
    """Return whether the words before a name are a title or an office: "Team captain"."""
    lists = fact_words()
    common = language_of("en").function_words | word_set(lists["references"])
    verbs = {*lists["past_tenses"], *lists["statement_verbs"].split()}
    return len(words) <= MAX_ROLE_WORDS and not any(
        "," in word
        or word.lower() in common
        or word.lower() in verbs
        or word.endswith(("ed", "ing"))
        for word in words
    )


def _read_predicate(rest: str) -> str | None:
    """Return the predicate after the name of a subject, or None if it is not a plain statement."""
    rest = _APPOSITION.sub(" ", rest, count=1)
    if not rest.startswith(" ") or not rest.rstrip().endswith("."):
        return None
    predicate = rest.strip()
    cut = _CLAUSE.search(predicate)
    ending = predicate[cut.start() :] if cut else ""
    predicate = (predicate[: cut.start()] if cut else predicate).rstrip(" .,")
    words = _WORD.findall(predicate)
    if not MIN_WORDS <= len(words) <= MAX_WORDS or "," in predicate or '"' in predicate:
        return None
    lists = fact_words()
    verb = words[0]
    is_regular = verb.endswith("ed") and verb.islower()
    says = verb in word_set(lists["statement_verbs"])
    is_other = verb in ("was", "is", "has", "will") or verb in lists["past_tenses"]
    if not (is_regular or says or is_other):
        return None
    if says and len(words) < MIN_WORDS_SAID:
        return None
    if _PARTICIPLE.match(ending) and len(words) < MIN_WORDS_BEFORE_CLAUSE:
        return None
    # What somebody says may have its verb after the clause: "says the deal, which he signed, is".
    if says and ending.strip(" .") and not _NEXT_STATEMENT.match(ending):
        return None
    if _CONDITION.search(rest.strip()) or words[-1] in word_set(lists["loose_ends"]):
        return None
    if not word_set(lists["references"]).isdisjoint(word.lower() for word in words[says:]):
        return None
    is_clear = all(
        says_which(words[at + 1 :]) for at, word in enumerate(words) if word.lower() == "the"
    )
    return predicate if is_clear else None


def says_which(words: Sequence[str]) -> bool:
    """Return whether the words after "the" say which one is meant, without the text before them.

    "The edge of the Barrier" and "the sculptor Kathleen Bruce" do, "the sea" does not.
    """
    definers = word_set(fact_words()["definers"])
    links = word_set(fact_words()["links"])
    for word in words:
        if word[0].isupper() or (word[0].isdigit() and "-" not in word):
            return True
        if word in definers or word in links:
            return word in definers
    return False


def names_subject(text: str, fact: Fact) -> bool:
    """Return whether a text names the subject of a fact, by its title or another name."""
    folded = f" {fold(text)} "
    return any(f" {fold(name)} " in folded for name in fact.subject_names)
