"""Global search without a model: the best sentences on each theme, within a budget of words."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from graphrag_index.errors import format_count
from graphrag_index.schema.settings.searches import GlobalSearch
from graphrag_query.answer import Answer, Context, Outcome
from graphrag_query.answering.extractive import TextUnit
from graphrag_query.answering.theme_answer import Point, Theme, shorten_title, write_themes
from graphrag_query.answering.written_answer import (
    DeferredContext,
    Section,
    pack_sections,
    source_rows,
)
from graphrag_query.question.count_request import read_count_request
from graphrag_query.question.cues import (
    asks_for_change,
    asks_for_course_of_time,
    asks_what_all_tell,
    remove_telling,
)
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import (
    KIND_OF_WORD,
    KINDS_OF_TYPE,
    STEMS_OF_ABSTRACT_NOUNS,
    STEMS_OF_IMPORTANCE,
    TYPE_OF_WORD,
    TYPES,
)
from graphrag_query.question.refusals import format_refusal
from graphrag_query.retrieval.report_selection import (
    as_context_rows,
    note_reports,
    reports_of_level,
    subject_words,
)
from graphrag_query.retrieval.theme_passages import (
    community_paths,
    group_by_theme,
    sample_text_units,
    score_text_units,
)
from graphrag_query.retrieval.typical_words import find_typical_words
from graphrag_query.searches.counting import count_answer
from graphrag_query.searches.main_entities import (
    NamedEntity,
    asked_type,
    find_named_entities,
    list_main_entities,
)
from graphrag_query.searches.periods import Period, divide_corpus, group_by_period
from graphrag_query.searches.report_points import (
    points_of_report,
    rate_report_points,
    read_report_sentences,
)
from graphrag_query.searches.subject_sentences import (
    SubjectMatches,
    find_subject_matches,
    rank_subject_sentences,
)
from graphrag_query.searches.theme_headings import name_by_contents
from graphrag_query.store.index_store import IndexStore

# Maximum number of reports whose sentences are compared with the question.
MAX_REPORTS = 12
# Maximum number of reports whose sentences are sorted by time.
MAX_REPORTS_BY_TIME = 200
# Minimum number of periods with sentences in an answer by time.
MIN_PERIODS_WITH_SENTENCES = 2
# The other sentences are compared with the n-th best one.
NTH_BEST = 3
# Minimum relevance of a sentence in the answer, as a share (0 to 1) of the n-th best relevance.
MIN_SHARE_OF_BEST = 0.5
# The same for a sentence that is quoted only if the others leave room.
MIN_SHARE_OF_FILLER = 0.3
# Minimum score of the best sentence of a section, as a share (0 to 1) of the n-th best such score;
# the same for a sentence that is quoted only if the sections leave room.
MIN_SHARE_OF_SECTION, MIN_SHARE_OF_OTHERS = 0.7, 0.5
# Minimum number of places of a kind, such as countries, for a list of them.
MIN_PLACES = 3
# Minimum number of documents of a section that its heading tells.
MIN_TOLD_DOCUMENTS = 3
# Maximum number of typical words below the themes of a corpus.
MAX_TYPICAL_WORDS = 12
NO_FITTING_PASSAGE = "No passage fits the words of this question."
NO_PERIODS = "The documents have no dates, or too few, to compare periods. "
NO_WORDS_OF_PERIODS = "No words with sentences set the periods of the documents apart. "


def global_sentences(question: Question, settings: GlobalSearch) -> Answer:
    """Answer a question about the whole corpus with sentences of its themes.

    The sentences are those of the most similar passages and reports. Each theme gets one
    sentence before a theme gets a second one, within `max_words`. For a question without a
    subject, the themes are the largest communities. If the question asks for people, places,
    events or organizations, the answer lists entities instead. The outcome is `no_evidence` if
    nothing is similar enough, or if the question names something that the documents do not
    mention.
    """
    if request := read_count_request(question.text, question.language):
        return count_answer(question, request)
    subject = subject_words(question)
    named = [word for word in subject if word not in STEMS_OF_IMPORTANCE]
    kinds = {TYPE_OF_WORD.get(word) for word in named}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind:
        narrower = {KIND_OF_WORD.get(word) for word in named}
        of_kind = narrower.pop() if len(narrower) == 1 else None
        return _answer_with_main_entities(question, kind, of_kind, settings)
    if not subject or asks_what_all_tell(question.text):
        return _answer_about_corpus(question, settings)
    if refusal := question.refuse():
        return refusal
    return _answer_about_subject(question, settings)


def _answer_with_main_entities(
    question: Question, kind: str, narrower: str | None, settings: GlobalSearch
) -> Answer:
    """Answer with the entities of a type that have the most relationships.

    If there are entities of the kind `narrower`, the answer lists only those.
    """
    index, plural = question.index, (KINDS_OF_TYPE[narrower] if narrower else TYPES[kind])["plural"]
    listed = list_main_entities(index, kind, settings.max_points, narrower)
    if narrower and not listed:
        # Small towns are no known cities.
        return _answer_with_main_entities(question, kind, None, settings)
    question.counts.update(entities=index.n_rows("entities"), entities_listed=len(listed))
    if not listed:
        text = f"The index knows no {plural} of these documents."
        return question.answer(text, Outcome.NO_EVIDENCE)
    counts = index.links.n_relationships_of([entity.number for entity in listed])
    themes = [
        _theme_of(entity, format_count("relationships", int(count)))
        for entity, count in zip(listed, counts, strict=True)
    ]
    opening = f"The {plural} with the most relationships in the documents:"
    answer = write_themes(question, opening, themes, settings.max_words, "Further")
    rows = pl.DataFrame(
        [(entity.number, entity.title, int(n)) for entity, n in zip(listed, counts, strict=True)],
        {"id": pl.Int64, "entity": pl.String, "relationships": pl.Int64},
        orient="row",
    )
    section = Section("Entities", rows, 1.0)
    context = DeferredContext(partial(pack_sections, [section]), settings.max_context_tokens)
    return replace(answer, context=context)


def _theme_of(entity: NamedEntity, extent: str) -> Theme:
    return Theme(entity.title, extent, f"[Data: Entities ({entity.number})]", entity.points)


def _answer_about_corpus(question: Question, settings: GlobalSearch, before: str = "") -> Answer:
    """Answer with the themes of the whole corpus, the theme of most documents first.

    The answer begins with `before`.
    """
    index = question.index
    if asks_for_change(question.text):
        periods = divide_corpus(index)
        if periods and (by_time := _answer_by_periods(question, settings, periods, before)):
            return by_time
        before += NO_WORDS_OF_PERIODS if periods else NO_PERIODS
    reports, level = reports_of_level(question, settings, about_all=True)
    shares = _estimate_shares(index, level)
    share = pl.Series("share", [shares.get(n, 0.0) for n in reports["community"]], pl.Float64)
    order = ["share", "size", "rank", "community"]
    best = reports.with_columns(share).sort(order, descending=[True, True, True, False])
    best = best.head(settings.max_points)
    note_reports(question, best, "share")
    themes = []
    for report, points in rate_report_points(index, read_report_sentences(index, best)):
        percent = round(100 * report["share"])
        extent = f"{percent} %" if percent else "under 1 %" if report["share"] else ""
        cited_as = f"[Data: Reports ({report['community']})]"
        themes.append(Theme(report["title"], extent, cited_as, points))
    question.counts.update(community_reports=reports.height)
    opening = f"{before}The largest themes of the documents, with their share of the documents:"
    typical = find_typical_words(index, MAX_TYPICAL_WORDS)
    ending = f"Typical words: {', '.join(typical)}." if typical else ""
    max_words = settings.max_words - len(ending.split())
    answer = write_themes(question, opening, themes, max_words, "Further themes", in_order=True)
    if ending:
        answer = replace(answer, text=f"{answer.text}\n\n{ending}")
    pack = partial(_read_rows, question, settings, best, {})
    context = DeferredContext(pack, settings.max_context_tokens)
    return replace(answer, parameters={"level": level}, context=context)


def _answer_by_periods(
    question: Question, settings: GlobalSearch, periods: Sequence[Period], before: str
) -> Answer | None:
    """Answer with the words that set the periods of a corpus apart, and sentences with them.

    Returns None if there are no sentences of two periods. The answer begins with `before`.
    """
    index, level = question.index, settings.level
    all_reports = index.report_list
    if level is not None:
        all_reports, level = reports_of_level(question, settings, about_all=True)
    order = ["rank", "size", "community"]
    reports = all_reports.sort(order, descending=[True, True, False]).head(MAX_REPORTS_BY_TIME)
    found = [
        point
        for _, sentences in read_report_sentences(index, reports)
        for point in points_of_report(index, sentences)
    ]
    units = index.text_units(point.source for point in found)
    themes = [period.as_theme(found, units) for period in periods if period.words]
    if sum(bool(theme.points) for theme in themes) < MIN_PERIODS_WITH_SENTENCES:
        return None
    note_reports(question, reports, "rank")
    question.counts.update(community_reports=all_reports.height)
    opening = (
        f"{before}Words that the documents of each period say more often than others, "
        "and sentences:"
    )
    answer = write_themes(question, opening, themes, settings.max_words, "Further periods")
    pack = partial(_read_rows, question, settings, reports, {})
    context = DeferredContext(pack, settings.max_context_tokens)
    return replace(answer, parameters={"level": level}, context=context)


def _read_rows(
    question: Question,
    settings: GlobalSearch,
    reports: pl.DataFrame,
    units: Mapping[int, TextUnit],
    max_tokens: int,
) -> Context:
    """Return the summaries of reports and the text units that were read, the best first."""
    summaries = as_context_rows(question.index, reports, "summary")
    share = settings.passage_share
    sections = [
        Section("Reports", summaries, 1 - share),
        Section("Sources", source_rows(units), share),
    ]
    return pack_sections(sections, max_tokens)


def _estimate_shares(index: IndexStore, level: int) -> dict[int, float]:
    """Map each community of a level to its share (0 to 1) of the documents.

    A document with passages in several communities counts for each by its share of passages. In a
    large corpus, the shares are estimated from every n-th text unit.
    """
    sample = sample_text_units(index)
    documents = index.open_mapped("text_unit_rows").rows(sample, "document")["document"].to_list()
    n_passages = Counter(documents)
    shares: dict[int, float] = {}
    paths = community_paths(index, sample, level + 1)
    for document, path in zip(documents, paths.values(), strict=True):
        if path:
            community = path[min(level, len(path) - 1)]
            share = 1 / (n_passages[document] * len(n_passages))
            shares[community] = shares.get(community, 0.0) + share
    return shares


def _answer_about_subject(question: Question, settings: GlobalSearch) -> Answer:
    """Answer with the best sentences about the subject of a question, grouped by theme."""
    index, subject = question.index, find_subject_matches(question, subject_words(question))
    asked, found = subject.question, subject.text_units
    reports, _ = reports_of_level(asked, settings, about_all=False)
    fitting = reports.filter(pl.col("similarity") >= settings.min_similarity)
    fitting = fitting.sort("score", "community", descending=[True, False]).head(MAX_REPORTS)
    written = [pair for _, pairs in read_report_sentences(index, fitting) for pair in pairs]
    note_reports(question, fitting, "score")
    scores = score_text_units(asked, found, (source for _, source in written))
    units = index.text_units(scores)
    ranked = rank_subject_sentences(subject, units, scores, written)
    question.counts.update(community_reports=reports.height, text_units=len(units))
    best_first = {number: units[number] for number in sorted(units, key=lambda n: -scores[n])}
    pack = partial(_read_rows, question, settings, fitting, best_first)
    context = DeferredContext(pack, settings.max_context_tokens)
    # Who said it, and that it was said, need not be in the documents.
    untold = replace(question, text=remove_telling(question.text))
    if not any(subject.is_answered_by(ranked, asked) for asked in (question, untold)):
        if STEMS_OF_ABSTRACT_NOUNS.issuperset(subject_words(untold)):
            return _answer_about_corpus(question, settings, f"{NO_FITTING_PASSAGE} ")
        text = format_refusal("no_similar_report", question.language)
        return question.answer(text, Outcome.NO_EVIDENCE, context=context)
    points: dict[int, list[Point]] = {}
    weak: list[Point] = []
    # One sentence that repeats the question must not outdo all others.
    best = sorted((s.relevance for s in ranked), reverse=True)[:NTH_BEST][-1]
    for sentence in ranked:
        label = sentence.ranked.candidate.label
        point = Point(sentence.text, sentence.text_unit, sentence.score, label)
        if sentence.relevance >= MIN_SHARE_OF_BEST * best:
            points.setdefault(sentence.text_unit, []).append(point)
        elif sentence.relevance >= MIN_SHARE_OF_FILLER * best:
            weak.append(point)
    filler = Theme("Less similar passages", "", "", weak)
    opening = _open_answer(subject, points, units)
    kind, narrower = asked_type(question)
    entities = find_named_entities(index, points, kind, narrower) if kind else []
    if len(entities) >= (MIN_PLACES if kind == "geo" and narrower else 1):
        themes = [
            _theme_of(entity, _count_documents(entity.points, units))
            for entity in entities[: settings.max_points]
        ]
        filler.name = "Other passages"
        filler.points += [point for of_unit in points.values() for point in of_unit]
        answer = write_themes(question, opening, themes, settings.max_words, "Also named", filler)
        return replace(answer, context=context)
    if asks_for_change(question.text):
        periods, others = group_by_period(
            index,
            points,
            units,
            settings.max_points,
            is_over_time=asks_for_course_of_time(question.text),
        )
        if periods:
            filler.name, filler.points = "Other passages", [*others, *weak]
            answer = write_themes(question, opening, periods, settings.max_words, filler=filler)
            return replace(answer, context=context)
    themes, level = _list_themes(asked, settings.level, points, scores, units)
    themes, filler.points = _keep_best_sections(themes, weak)
    sources = {point.source for theme in themes for point in theme.points}
    opening = _open_answer(subject, sources, units)
    answer = write_themes(
        question, opening, themes[: settings.max_points], settings.max_words, filler=filler
    )
    return replace(answer, parameters={"level": level}, context=context)


def _open_answer(
    subject: SubjectMatches, sources: Collection[int], units: Mapping[int, TextUnit]
) -> str:
    """Return the first line of an answer: the number of documents of its text units."""
    n_documents = len({units[number]["document"] for number in sources})
    n_all = subject.question.index.n_rows("document_rows")
    at_least = "" if subject.last.isdisjoint(sources) else "At least "
    return f"{at_least}{n_documents:,} of {n_all:,} documents have passages that fit this question:"


def _keep_best_sections(
    themes: Sequence[Theme], others: Sequence[Point]
) -> tuple[list[Theme], list[Point]]:
    """Return the themes with good sentences; and other sentences with those of the other themes.

    A sentence with one word of the question may be the best one of its theme, and beside the
    subject.
    """
    best = [max(point.score for point in theme.points) for theme in themes]
    usual = sorted(best, reverse=True)[:NTH_BEST][-1]
    kept, left = list[Theme](), list(others)
    for theme, score in zip(themes, best, strict=True):
        theme.points = [p for p in theme.points if p.score >= MIN_SHARE_OF_OTHERS * usual]
        if score >= MIN_SHARE_OF_SECTION * usual:
            kept.append(theme)
        else:
            left += theme.points
    return kept, [point for point in left if point.score >= MIN_SHARE_OF_OTHERS * usual]


def _list_themes(
    question: Question,
    level: int | None,
    points: Mapping[int, Sequence[Point]],
    scores: Mapping[int, float],
    units: Mapping[int, TextUnit],
) -> tuple[list[Theme], int]:
    """Group the sentences of text units by community, and return the level of the communities."""
    relevant = {number: scores[number] for number in points}
    groups, level = group_by_theme(question.index, relevant, level)
    sections = [[p for number in group.text_units for p in points[number]] for group in groups]
    names = name_by_contents(question, sections, units)
    reports = question.index.report_list
    titles = dict(reports.select("community", "title").iter_rows())
    themes = []
    for group, of_theme, name in zip(groups, sections, names, strict=True):
        # The title of a report without a model goes on with names that may not be in the sentences.
        name = name or shorten_title(titles.get(group.community, "Other passages"))
        cited_as = f"[Data: Reports ({group.community})]" if group.community is not None else ""
        themes.append(
            Theme(
                name, _count_documents(of_theme, units), cited_as, of_theme, max(group.weight, 0.0)
            )
        )
    # Passages of no community come last.
    themes.sort(key=lambda theme: not theme.cited_as)
    return themes, level


def _count_documents(points: Iterable[Point], units: Mapping[int, TextUnit]) -> str:
    """Return the number of documents of sentences; few need no words, for they are cited."""
    n = len({units[point.source]["document"] for point in points})
    return format_count("documents", n) if n >= MIN_TOLD_DOCUMENTS else ""
