"""Titles and headings of reports without a model: their terms, and the names behind them."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from graphrag_index.reports.chosen_statements import Evidence
from graphrag_index.reports.extent import format_period
from graphrag_index.reports.report import join_titles
from graphrag_index.reports.theme_terms import MAX_FREQUENT_RANK, Term, is_vague, says_little
from graphrag_nlp.text.normalize import fold
from graphrag_nlp.text.noun_phrases import PLACE_NOUNS

# Maximum number of names in a heading, besides its term.
MAX_HEADING_NAMES = 3
# Maximum number of terms in a title, and minimum score of the second, as a share of the first: of a
# phrase, and of a single word.
MAX_TITLE_TERMS, MIN_TERM_SHARE, MIN_WORD_SHARE = 2, 0.6, 0.8
# Two words with more characters, of which one begins with the other, are forms of one word.
MIN_STEM = 4
# Maximum number of documents whose theme the headline of one of them says.
MAX_DOCUMENTS_OF_HEADLINE = 8
# Maximum number of subjects in the title of a report on different subjects, and maximum number of
# characters of these together, unless two have more.
MAX_TITLE_SUBJECTS, MAX_SUBJECT_CHARS = 3, 110
# A theme with more characters stands before one name only.
MAX_THEME_CHARS = 60
# Factors of the weight of a term in a title: of several words, which say more than one; of one
# word in one sentence; of one vague word; of a term that is in no sentence of the summary; and of
# one for a place.
PHRASE_FACTOR, LONE_FACTOR, VAGUE_FACTOR, OTHER_FACTOR, PLACE_FACTOR = 2.0, 0.3, 0.2, 0.5, 0.4
# Factor for a term in the headline of a document.
HEADLINE_FACTOR = 2.0


@dataclass(frozen=True)
class Names:
    """The members of a community.

    `weight` maps a member to its centrality, `titles` to its title; `main` are the members in the
    title of the report. `headlines` maps documents to their headlines, or to "", and
    `own_headline` is that of the only document.
    """

    weight: Mapping[int, float]
    titles: Mapping[int, str]
    main: Sequence[int]
    headlines: Mapping[int, str] = field(default_factory=dict)
    own_headline: str = ""


def compose_title(
    terms: Sequence[Term],
    names: Sequence[str],
    language: str,
    summary: Sequence[str] = (),
    subject: str = "",
    own_headlines: Sequence[str] = (),
    headlines: Sequence[str] = (),
    summary_headlines: Collection[str] = (),
    mentions: Sequence[tuple[str, Collection[str]]] = (),
) -> str:
    """Compose a title from the terms of the theme and the main names: "Fires and smoke: Sydney".

    A term stands in the title as it stands in the sentences of the summary, if it is there. A
    `subject` that has more than the names says the theme better than a term, and `own_headlines`,
    those of the documents of the summary, better than a term of a single sentence which is in none
    of all `headlines`, one for each document. Of few documents, the one of `summary_headlines` with
    most terms and names, or the only one, says the theme better than one word. Names that are in a
    term are not repeated. Of many documents, names come last that none of the `mentions`, sentences
    with their names, has beside a term.
    """
    scored = _score_terms(terms, language, summary, headlines)
    chosen = _choose_terms(scored)
    if not (scored and scored[0].is_supported):
        subject = subject or "; ".join(dict.fromkeys(filter(None, own_headlines)))
    if not any(" " in text for text in chosen):
        is_short = len(headlines) <= MAX_DOCUMENTS_OF_HEADLINE
        central = dict.fromkeys(filter(None, summary_headlines if is_short else ()))
        # The only headline of several sentences says what they are about, whatever word it has.
        is_only = chosen and len(summary_headlines) > 1 and len({*summary_headlines}) == 1
        only = next(iter(central), "") if is_only else ""
        subject = subject or _find_central_headline(central, terms, names, scored) or only
    theme = join_titles(chosen, language)
    if subject and not (theme and _fold(subject) in map(_fold, names)):
        theme = subject
    others = [name for name in names if not contains(theme, name)]
    if theme and theme != subject and len(headlines) > MAX_DOCUMENTS_OF_HEADLINE:
        folded = [_fold(text) for text in chosen]
        beside = {
            name
            for text, mentioned in mentions
            if any(map(text.lower().__contains__, folded))
            for name in mentioned
        }
        others.sort(key=lambda name: name not in beside)
    named = join_titles(others[: 1 if len(theme) > MAX_THEME_CHARS else None], language)
    if theme and theme == subject:
        return join_headline(theme, named)
    parts = [f"{theme[:1].upper()}{theme[1:]}", named]
    return ": ".join(filter(None, parts))


def join_headline(headline: str, named: str) -> str:
    """Join a headline and names: behind a colon, these would seem to be a part of the headline."""
    return f"{headline[:1].upper()}{headline[1:]}{f' ({named})' if named else ''}"


def drop_repeats(headings: Sequence[str], title: str, headlines: Iterable[str]) -> list[str]:
    """Leave out of headings the headline that is in the title of the report already."""
    repeated = [one for one in dict.fromkeys(headlines) if one and one in title]
    found: list[str] = []
    for heading in headings:
        names = next(
            (heading[len(one) + 2 : -1] for one in repeated if heading.startswith(f"{one} (")), ""
        )
        is_new = names and names not in (*headings, *found)
        found.append(f"{names[0].upper()}{names[1:]}" if is_new else heading)
    return found


class _ScoredText(NamedTuple):
    """A text of a term, and whether several sentences or a headline have it; best first."""

    negative_score: float
    place: int
    text: str
    is_supported: bool


def _score_terms(
    terms: Sequence[Term], language: str, summary: Sequence[str], headlines: Collection[str]
) -> list[_ScoredText]:
    """Return the texts that may stand for the terms in a title, best first."""
    scored = []
    folded = "".join(f" {_fold(one)} |" for one in dict.fromkeys(filter(None, headlines)))
    for place, term in enumerate(terms):
        central = next(filter(None, map(term.phrases.get, summary)), "")
        # A word of one sentence may stand there by chance: "Bridges is good in many ways."
        max_rank = None if len(term.phrases) == 1 else MAX_FREQUENT_RANK
        for text in filter(None, dict.fromkeys((central, term.text))):
            if says_little(text, language, max_rank):
                continue
            in_headlines = f" {_fold(text)} " in folded if folded else False
            score = term.weight * (1.0 if central else OTHER_FACTOR)
            n_sentences = sum(text in phrase for phrase in term.phrases.values())
            if " " in text:
                score *= PHRASE_FACTOR if n_sentences > 1 or in_headlines else 1.0
            elif len(term.phrases) == 1:
                score *= LONE_FACTOR
            if is_vague(text, language):
                score *= VAGUE_FACTOR
            if in_headlines:
                score *= HEADLINE_FACTOR
            if any(
                form in PLACE_NOUNS or form.removesuffix("s") in PLACE_NOUNS for form in term.forms
            ):
                score *= PLACE_FACTOR
            scored.append(_ScoredText(-score, place, text, n_sentences > 1 or in_headlines))
    return sorted(scored)


def _choose_terms(scored: Sequence[_ScoredText]) -> list[str]:
    """Choose the terms of a title: the best one, and another of about the same score."""
    chosen: list[str] = []
    for score, _, text, _ in scored:
        is_phrase = " " in text
        min_share = MIN_TERM_SHARE if is_phrase else MIN_WORD_SHARE
        if len(chosen) == MAX_TITLE_TERMS or score > min_share * scored[0].negative_score:
            break
        # A word beside a phrase says less than the phrase alone.
        if not chosen or (is_phrase >= (" " in chosen[0]) and not share_word(text, chosen[0])):
            chosen.append(text)
    return chosen


def _find_central_headline(
    headlines: Iterable[str],
    terms: Sequence[Term],
    names: Sequence[str],
    scored: Sequence[_ScoredText],
) -> str:
    """Return the headline that says the theme; "" if none does.

    It has a term and a main name, or the best term and another one, or two main names; the more,
    the better.
    """
    main = scored[0].place if scored else -1
    best, most = "", 0.0
    for headline in headlines:
        folded = f" {_fold(headline)} "
        found = {
            place: term.weight
            for place, term in enumerate(terms)
            if any(f" {_fold(form)} " in folded for form in term.forms)
        }
        n_names = sum(contains(headline, name) for name in names)
        is_fit = (found and n_names) or (main in found and len(found) > 1) or n_names > 1
        score = sum(found.values()) + n_names * max((term.weight for term in terms), default=1.0)
        if is_fit and score > most:
            best, most = headline, score
    return best


def compose_mixed_title(
    names: Sequence[str],
    headings: Sequence[str],
    findings: Sequence[Sequence[str]],
    headlines: Collection[str] = (),
) -> str:
    """Compose a title from the headings of findings on different subjects.

    The form is "Rome: fires; race (Ann)", or "Different subjects: fires (Rome); race (Ann)".
    `names` is the name that they share, if there is one. `findings` are the sentences of each.
    `headlines` are those of documents, and stay as they are.
    """
    subjects = []
    for heading, texts in zip(headings, findings, strict=True):
        if heading in headlines:
            subjects.append(heading)
            continue
        subject, _, name = heading.partition(": ")
        uncapitalized = f"{subject[0].lower()}{subject[1:]}"
        subject = uncapitalized if uncapitalized in " ".join(texts) else subject
        subjects.append(f"{subject} ({name})" if name else subject)
    n = MAX_TITLE_SUBJECTS
    while n > 2 and len("; ".join(subjects[:n])) > MAX_SUBJECT_CHARS:
        n -= 1
    others = "; …" if len(subjects) > n else ""
    shared = join_titles(names) or "Different subjects"
    return f"{shared[0].upper()}{shared[1:]}: {'; '.join(subjects[:n])}{others}"


def share_word(a: str, b: str) -> bool:
    """Return whether two texts have a word in common, or one in two forms; accents may differ."""
    return any(
        one == other or (len(min(one, other, key=len)) > MIN_STEM and _are_forms(one, other))
        for one in fold(a).split()
        for other in fold(b).split()
    )


def _are_forms(a: str, b: str) -> bool:
    return a.startswith(b) or b.startswith(a)


_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")


def _fold(text: str) -> str:
    """Return the words of a text in lower case, in the singular as far as a rule tells.

    The "'s" of a genitive is left out.
    """
    words = [word.removesuffix("'s").removesuffix("’s") for word in _WORD.findall(text.lower())]
    return " ".join(word.removesuffix("s") if len(word) > 3 else word for word in words)


def contains(text: str, name: str) -> bool:
    """Return whether a text has all words of a name in a row."""
    # Most texts do not even have the first letters of a name.
    starts = name[:2].lower() in text.lower()
    return starts and f" {_fold(name)} " in f" {_fold(text)} "


class Headings:
    """Headings of the findings of one report, each with other terms and names."""

    def __init__(self, names: Names, terms: Sequence[Term], language: str) -> None:
        self._names, self._language = names, language
        # Terms that no heading has yet. A term of the title may be the only one of a finding.
        ordered = [*terms[MAX_TITLE_TERMS:], *terms[:MAX_TITLE_TERMS]]
        self._terms = [(term, [form.lower() for form in term.forms]) for term in ordered]
        self._named = set(names.main)
        # The headline of the whole report, if it has one, says nothing of a finding.
        headlines = {*names.headlines.values()}
        self._headlines = headlines if len(headlines) == 1 else {"", names.own_headline}

    def compose(self, subject: int, sentences: Sequence[Evidence]) -> str:
        """Compose the heading of a finding about one member."""
        headline = self._take_headline(sentences)
        term = headline or self._take_term(sentences)
        if " " not in term:
            # A word says less than the headline of the document of the first sentence.
            headline = self._take_headline(sentences[:1])
            term = headline or term
        self._named.add(subject)
        companions = self._take_names(sentences, MAX_HEADING_NAMES - 1 - bool(term))
        titles = [self._names.titles[entity] for entity in (subject, *companions)]
        heading = join_titles([name for name in titles if not contains(term, name)], self._language)
        if not heading:
            return f"{term[0].upper()}{term[1:]}"
        if heading.split(" ")[0].islower():
            heading = f"{heading[0].upper()}{heading[1:]}"
        if headline:
            return join_headline(headline, heading)
        if term:
            return f"{term[0].upper()}{term[1:]}: {heading}"
        # Avoid a heading that is equal to the title of the report.
        is_title = list(self._names.main) == [subject] and not companions
        return f"More on {heading}" if is_title else heading

    def compose_grouped(self, sentences: Sequence[Evidence]) -> str:
        """Compose the heading of a finding on one group of documents: "Fires: Sydney".

        The heading is "" if it would say only what others say.
        """
        members = {entity for sentence in sentences for entity in sentence.entities}
        weight = self._names.weight
        subject = min(members, key=lambda e: (e in self._named, -weight[e], e), default=-1)
        named = "" if subject in {*self._named, -1} else self._names.titles[subject]
        if is_vague(named, self._language) or says_little(named.removesuffix("s"), self._language):
            named = ""
        self._named.add(subject)
        if headline := self._take_headline(sentences[:1]):
            return headline
        scored = [
            (
                term.weight
                * (PHRASE_FACTOR if " " in phrase else 1.0)
                * (VAGUE_FACTOR if is_vague(phrase, self._language) else 1.0),
                -at,
                phrase,
            )
            for at, (term, _) in enumerate(self._terms)
            for phrase in filter(None, (term.phrases.get(one.text) for one in sentences))
            if not contains(phrase, named)
            and not (named and says_little(phrase, self._language))
            and not (named and is_vague(phrase, self._language))
        ]
        if not scored:
            return f"{named[:1].upper()}{named[1:]}"
        _, at, phrase = max(scored)
        del self._terms[-at]
        return ": ".join(filter(None, (f"{phrase[0].upper()}{phrase[1:]}", named)))

    def compose_dated(self, sentences: Sequence[Evidence]) -> str:
        """Compose the heading of a chronology: its period and its main names."""
        days = [day for sentence in sentences for day in sentence.days or ()]
        counts = Counter(entity for sentence in sentences for entity in sentence.entities)
        weight, titles = self._names.weight, self._names.titles
        best = sorted(counts, key=lambda e: (-counts[e], -weight[e], e))[: MAX_HEADING_NAMES - 1]
        named = join_titles([titles[entity] for entity in best], self._language)
        return f"{format_period(min(days), max(days))}: {named}"

    def _take_headline(self, sentences: Sequence[Evidence]) -> str:
        """Take the headline that all sentences have, and no heading yet; "" if there is none."""
        found = {self._names.headlines.get(sentence.document, "") for sentence in sentences}
        headline = found.pop() if len(found) == 1 else ""
        if headline in self._headlines:
            return ""
        self._headlines.add(headline)
        return headline

    def _take_term(self, sentences: Sequence[Evidence]) -> str:
        """Take the term that most sentences contain; "" if none contains one."""
        texts = [sentence.text for sentence in sentences]
        lowered = [text.lower() for text in texts]
        best, most, best_text = None, (0, False), ""
        for at, (term, forms) in enumerate(self._terms):
            n = sum(any(map(text.__contains__, forms)) for text in lowered)
            if n < most[0] or not n:
                continue
            phrase = next(filter(None, map(term.phrases.get, texts)), "") or term.text
            score = (n, " " in phrase or not is_vague(phrase, self._language))
            if score > most and not says_little(phrase, self._language):
                best, most, best_text = at, score, phrase
        if best is not None:
            del self._terms[best]
        return best_text

    def _take_names(self, sentences: Sequence[Evidence], n: int) -> list[int]:
        """Take the members that the sentences mention most often, and that no heading has yet."""
        counts = Counter(entity for sentence in sentences for entity in sentence.entities)
        weight = self._names.weight
        found = sorted(counts.keys() - self._named, key=lambda e: (-counts[e], -weight[e], e))[:n]
        self._named.update(found)
        return found
