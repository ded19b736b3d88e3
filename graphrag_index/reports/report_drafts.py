"""Drafts of reports without a model: from their material to titles, headings and sentences."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

from graphrag_index.reports.centrality import rate_centrality
from graphrag_index.reports.chosen_statements import SUMMARY, Evidence
from graphrag_index.reports.document_groups import (
    are_mixed,
    find_shared_name,
    group_documents,
    join_near_groups,
)
from graphrag_index.reports.extractive import Choose, choose_statements
from graphrag_index.reports.report_choices import ReportChoice
from graphrag_index.reports.report_titles import (
    MAX_SUBJECT_CHARS,
    Names,
    compose_mixed_title,
    compose_title,
    drop_repeats,
)
from graphrag_index.reports.scattered import choose_apart, find_scattered
from graphrag_index.reports.text_nearness import LANGUAGES, embed, measure_nearness
from graphrag_index.reports.theme_sentences import ThemeSentences
from graphrag_index.reports.theme_terms import Term, find_terms, is_vague, rank_terms, says_little
from graphrag_index.reports.theme_titles import ThemeName
from graphrag_index.reports.title_members import is_media_name
from graphrag_nlp.text.languages import language_of

# Number of the best sentences whose nearness to the centre is measured.
MAX_CENTRAL_SENTENCES = 8
# Minimum number of findings of a report on different subjects.
MIN_SUBJECTS = 2
# Maximum number of documents of a report without a theme that their headlines stand for: of many
# documents, a few headlines say no more than a term, and are longer.
MAX_DOCUMENTS_OF_HEADLINES = 3
# Minimum share of the documents that these headlines name: those of fewer do not say what the
# report is on.
MIN_NAMED_SHARE = 2 / 3
# Columns of the rows of candidate sentences.
CANDIDATE_COLUMNS = (
    *("language", "clarity", "text", "entities", "source", "document", "score"),
    *("first_day", "last_day", "start_char", "end_char", "words", "wording"),
)


@dataclass(frozen=True)
class Draft:
    """The material of a report.

    `evidence` are its candidate sentences, best first, and `positions` their places among all
    candidates. `uses` are their words that set the report apart (see `find_terms`). `groups` are
    the groups of documents of one subject, and `subject` is the headline of nearly all of them.
    The text units of the community may be of one document, though others mention its members.
    `theme` is the name that the documents of a theme give it (see `theme_titles`); None for other
    communities. The sentences of a scattered report are on nothing common (see `scattered`).
    """

    evidence: Sequence[Evidence]
    positions: Sequence[int]
    uses: Sequence[tuple[str, str, float, str]]
    language: str
    names: Names
    groups: Sequence[frozenset[int]]
    subject: str
    has_one_document: bool = False
    theme: ThemeName | None = None
    is_scattered: bool = False

    @property
    def is_mixed(self) -> bool:
        """Whether the report is on different subjects, as is one on a theme without a title."""
        if self.theme:
            return not self.theme.title
        return self.is_scattered or are_mixed(self.groups)

    def find_terms(self) -> list[Term]:
        """Return terms with other words than the names in the title."""
        in_title = " ".join(self.main_titles).lower().replace("-", " ").split()
        excluded = frozenset(in_title)
        if language_of(self.language).capitalizes_nouns:
            # Names have capital letters as nouns have them.
            members = {entity for one in self.evidence for entity in one.entities}
            excluded |= {self.names.titles[entity].lower() for entity in members}
        return find_terms(self.uses, self.language, excluded)

    @property
    def own_evidence(self) -> Sequence[Evidence]:
        """The sentences of the only document, if there is only one; else all sentences."""
        if not self.has_one_document or not self.evidence:
            return self.evidence
        [(main, _)] = Counter(one.document for one in self.evidence).most_common(1)
        return [one for one in self.evidence if one.document == main]

    @property
    def main_titles(self) -> list[str]:
        return [self.names.titles[entity] for entity in self.names.main]


def make_draft(
    rows: Sequence[tuple[Any, ...]],
    uses: Sequence[tuple[str, str, float, str]],
    names: Names,
    has_several_documents: bool,
    subject: str,
    theme: ThemeName | None = None,
) -> Draft:
    """Make a draft of the rows of candidate sentences, with the columns `CANDIDATE_COLUMNS`."""
    languages = Counter(row[0] for row in rows)
    language = max(languages, key=lambda code: languages[code], default="")
    # Of sentences with a text, use those with the highest clarity among those about members.
    clarity = max((row[1] for row in rows if row[2] and row[3]), default=0)
    positions = [at for at, row in enumerate(rows) if row[2] and row[1] >= clarity]
    evidence = [_make_evidence(*rows[at][2:]) for at in positions]
    has_groups = has_several_documents and theme is None
    groups = group_documents(evidence, names.headlines) if has_groups else []
    # The report is on the largest group that says anything of its main members.
    main = {one.document for one in evidence if not set(names.main).isdisjoint(one.entities)}
    groups.sort(key=main.isdisjoint)
    is_one = not has_several_documents
    return Draft(evidence, positions, uses, language, names, groups, subject, is_one, theme)


def _make_evidence(
    text: str,
    entities: Sequence[int],
    source: int,
    document: int,
    score: float,
    first_day: Any,
    last_day: Any,
    start_char: int,
    end_char: int,
    words: Sequence[str] | None,
    wording: float,
) -> Evidence:
    days = (first_day, last_day) if first_day else None
    place = (start_char, end_char)
    return Evidence(text, entities, source, document, score, days, place, words or (), wording)


def choose_reports(
    drafts: Sequence[Draft], max_findings: int, max_sentences: int, max_document_share: float
) -> list[ReportChoice]:
    """Choose the title, the headings and the sentences of each report."""
    limits = (max_findings, max_sentences, max_document_share)
    drafts = _separate_scattered(_join_near_groups(drafts))
    choices = _choose([_name_by_subjects(draft) for draft in drafts], limits)
    # A report on different subjects that finds no two of them is written like others.
    failed = [
        at
        for at, (draft, choice) in enumerate(zip(drafts, choices, strict=True))
        if draft.is_mixed and len(choice.headings) < MIN_SUBJECTS
    ]
    again = _choose(
        [replace(drafts[at], groups=(), theme=None, is_scattered=False) for at in failed], limits
    )
    for at, choice in zip(failed, again, strict=True):
        choices[at] = choice
    return choices


def _join_near_groups(drafts: Sequence[Draft]) -> list[Draft]:
    """Join groups of documents in drafts on different subjects, if they say the like."""
    joined = list(drafts)
    mixed = [
        at
        for at, draft in enumerate(drafts)
        if draft.language in LANGUAGES and are_mixed(draft.groups)
    ]
    vectors = embed([" ".join(one.words) for at in mixed for one in drafts[at].evidence])
    start = 0
    for at in mixed:
        draft, stop = drafts[at], start + len(drafts[at].evidence)
        groups = join_near_groups(draft.groups, draft.evidence, vectors[start:stop])
        joined[at], start = replace(draft, groups=groups), stop
    return joined


def _separate_scattered(drafts: Sequence[Draft]) -> list[Draft]:
    """Separate the documents of reports on one subject whose sentences are on nothing common."""
    separated = list(drafts)
    known = [
        at
        for at, draft in enumerate(drafts)
        if draft.language in LANGUAGES and draft.theme is None and not draft.is_mixed
    ]
    scattered = find_scattered(
        [drafts[at].own_evidence for at in known], [drafts[at].names.headlines for at in known]
    )
    for at in compress(known, scattered):
        documents = dict.fromkeys(one.document for one in drafts[at].evidence)
        groups = [frozenset({document}) for document in documents]
        separated[at] = replace(drafts[at], groups=groups, is_scattered=True)
    return separated


def _name_by_subjects(draft: Draft) -> Draft:
    """Replace the main members of a report on different subjects by the name that they share."""
    if not draft.is_mixed:
        return draft
    # A frequent word such as "Members" joins documents, but says nothing of them. Nor does the
    # name of the newspaper that they are from.
    titles = draft.names.titles
    excluded = {
        entity
        for one in draft.evidence
        for entity in one.entities
        if is_media_name(titles[entity])
        or says_little(titles[entity].removesuffix("s"), draft.language)
        or is_vague(titles[entity], draft.language)
    }
    shared = find_shared_name(draft.evidence, draft.names.weight, excluded)
    return replace(draft, names=replace(draft.names, main=shared))


def _choose(drafts: Sequence[Draft], limits: tuple[int, int, float]) -> list[ReportChoice]:
    terms = [draft.find_terms() for draft in drafts]
    known = [at for at, draft in enumerate(drafts) if draft.language in LANGUAGES]
    leading = [[one.text for one in drafts[at].evidence[:MAX_CENTRAL_SENTENCES]] for at in known]
    nearness = measure_nearness(
        [[one.text for one in drafts[at].evidence] for at in known],
        [
            [*(term.text for term in terms[at]), *own]
            for at, own in zip(known, leading, strict=True)
        ],
    )
    measured: dict[int, list[float]] = {}
    for at, near in zip(known, nearness, strict=True):
        n_terms = len(terms[at])
        terms[at], measured[at] = rank_terms(terms[at], near[:n_terms]), near[n_terms:]
    return [
        _choose_one(draft, own, limits, measured.get(at, []))
        for at, (draft, own) in enumerate(zip(drafts, terms, strict=True))
    ]


def _choose_one(
    draft: Draft,
    terms: Sequence[Term],
    limits: tuple[int, int, float],
    nearness: Sequence[float],
) -> ReportChoice:
    evidence, names, groups = draft.evidence, draft.names, draft.groups
    if draft.has_one_document and evidence:
        # Other documents mention its members, too. Its own headline is the title.
        main = draft.own_evidence[0].document
        names = replace(names, own_headline=names.headlines.get(main, ""))
        groups = groups if draft.is_scattered else [frozenset({main})]
    # No sentence is central among those on different subjects.
    centrality = rate_centrality(evidence, [] if draft.is_mixed else nearness)
    choose: Choose | None = None
    if draft.theme:
        choose = ThemeSentences(draft.theme, evidence, draft.names.headlines).choose
    elif draft.is_scattered and len({one.document for one in evidence}) == 1:
        choose = choose_apart
    headings, chosen = choose_statements(
        evidence, names, terms, *limits, draft.language, groups, centrality, choose
    )
    texts: dict[int, list[str]] = {}
    for one in chosen:
        texts.setdefault(one.finding, []).append(evidence[one.sentences[0]].text)
    if draft.theme and draft.theme.title:
        title = draft.theme.title
    elif draft.is_mixed:
        lines = {*draft.names.headlines.values()}
        subjects, said_of = headings, [*texts.values()]
        if draft.theme and len(draft.theme.subjects) >= MIN_SUBJECTS:
            # Themes within it say more of a theme than a few of its documents.
            subjects = [*draft.theme.subjects]
            said_of = [[] for _ in subjects]
        title = compose_mixed_title(draft.main_titles, subjects, said_of, lines)
    else:
        said = [evidence[one.sentences[0]] for one in chosen if one.finding == SUMMARY]
        title = _compose_title(draft, terms, said)
    headings = drop_repeats(headings, title, names.headlines.values())
    positions = draft.positions
    statements = [one._replace(sentences=[positions[at] for at in one.sentences]) for one in chosen]
    return ReportChoice(title, headings, statements)


def _compose_title(draft: Draft, terms: Sequence[Term], summary: Sequence[Evidence]) -> str:
    """Compose the title of a report on one subject, from its terms, names and headlines."""
    terms, main_titles = _keep_main(draft, terms)
    headlines, own = draft.names.headlines, set[str]()
    quoted = [headlines.get(one.document, "") for one in summary]
    subject = draft.subject
    if draft.has_one_document and len({*quoted}) == 1:
        subject = subject or quoted[0]
    if len(headlines) <= MAX_DOCUMENTS_OF_HEADLINES:
        # A headline that is the name of a member says no more than a term.
        members = {entity for one in summary for entity in one.entities}
        own = {headlines.get(one.document, "") for one in summary} - {""}
        n_named = sum(headline in own for headline in headlines.values())
        is_short = len("; ".join(own)) <= MAX_SUBJECT_CHARS
        own = own if is_short and n_named >= MIN_NAMED_SHARE * len(headlines) else set()
        own -= {draft.names.titles[entity] for entity in members}
    return compose_title(
        terms,
        main_titles,
        draft.language,
        [one.text for one in summary],
        subject,
        sorted(own),
        [*headlines.values()],
        quoted,
        [
            (one.text, [draft.names.titles[entity] for entity in one.entities])
            for one in draft.evidence
        ],
    )


def _keep_main(draft: Draft, terms: Sequence[Term]) -> tuple[Sequence[Term], list[str]]:
    """Return the terms and the main names that the largest group of documents has.

    The summary is on this group. If it has no term or none of the names, all are returned.
    """
    if not draft.groups:
        return terms, draft.main_titles
    main = [one for one in draft.evidence if one.document in draft.groups[0]]
    texts = {one.text for one in main}
    mentioned = {entity for one in main for entity in one.entities}
    own = [term for term in terms if not texts.isdisjoint(term.phrases)]
    named = [draft.names.titles[entity] for entity in draft.names.main if entity in mentioned]
    return own or terms, named or draft.main_titles
