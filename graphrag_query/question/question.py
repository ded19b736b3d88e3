"""A question, the names in it linked to entities, and the answer to it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from graphrag_index.errors import format_count
from graphrag_index.llm.request import TextSink
from graphrag_index.schema.settings.searches import LocalSearch, Search
from graphrag_nlp.text.languages import Language
from graphrag_nlp.text.normalize import fold, fold_name, stem_word
from graphrag_nlp.text.periods import DatePart, Period, find_dates, find_periods
from graphrag_query.answer import Answer, Cell, Outcome, RatedReport
from graphrag_query.llm import LLM, PROMPT_TOKENS
from graphrag_query.question.cell_coverage import CellCoverage, find_cell_coverage
from graphrag_query.question.entity_linking import (
    EntityLinker,
    Mention,
    WholeName,
    find_entities_like,
    find_row,
)
from graphrag_query.question.facets import Facets, find_facets
from graphrag_query.question.question_words import (
    STEMS_ABOUT_CORPUS,
    WORD,
    NameSpan,
    content_words,
    find_question_language,
    language_in,
    name_spans,
    split_joined_words,
)
from graphrag_query.question.refusals import (
    format_absence,
    format_names,
    format_no_answer,
    format_refusal,
)
from graphrag_query.question.unmentioned_names import (
    find_similar_names,
    find_unmentioned_names,
    may_be_mentioned,
)
from graphrag_query.rerank import Reranking
from graphrag_query.store.index_store import IndexStore

# Maximum number of entities that share a name with one, and are named beside it.
MAX_NAMESAKES = 4
# Maximum number of words of a question that consists of a name alone.
MAX_WORDS_OF_NAME = 6
# Minimum share (0 to 1) of the documents whose language is known, to say which languages they have.
MIN_SHARE_OF_KNOWN = 0.9


@dataclass(frozen=True)
class UnknownName:
    """A name that no entity has, and titles of entities with similar names."""

    name: str
    similar: Sequence[str]

    def __str__(self) -> str:
        similar = f"; similar names: {', '.join(self.similar)}" if self.similar else ""
        return f"The index knows no entity named {self.name}{similar}."


class Mentions:
    """The names in one text. Each property is computed when it is first read."""

    def __init__(self, index: IndexStore, text: str, language: Language | None = None) -> None:
        self.index, self.text = index, text
        self.language = language or language_in(text)

    @cached_property
    def spans(self) -> list[NameSpan]:
        """The capitalized names, without dates such as "April", "May 4" and "Q3"."""
        dates = [date.text for date in find_dates(self.text, self.language)]
        dates += [self.text[period.start : period.end] for period in find_periods(self.text)]
        spans = name_spans(self.text, self.language)
        return [span for span in spans if not any(span.text in date for date in dates)]

    @cached_property
    def _linker(self) -> EntityLinker:
        return EntityLinker(self.index, self.text, self.language, self.spans)

    @cached_property
    def whole_names(self) -> list[WholeName]:
        """The names of entities that the text contains as a whole."""
        return self._linker.whole_names("entity_names")

    @cached_property
    def spelt_text(self) -> str:
        """The text with the spaces that known names have: "Blue Lamp" for "Bluelamp"."""
        text, _ = self.text, self.whole_names
        for span, _, name in self._linker.respelt["entity_names"]:
            # Of names in one word and in several, both are searched for anyway.
            if tuple(name.split()) not in span.other_spacings:
                text = text.replace(span.text, name)
        return text

    @cached_property
    def document_titles(self) -> list[WholeName]:
        """The titles of documents that the text contains."""
        return [name for name in self._linker.whole_names("title_names") if name.is_marked]

    @cached_property
    def entities(self) -> list[Mention]:
        """The entities that the text names, the highest weight first, without duplicates."""
        return self._linker.link(self.whole_names)

    @cached_property
    def exact_entities(self) -> list[int]:
        """The numbers of the entities whose whole name is in the text, ascending."""
        found = {m.entity for name in self.whole_names for m in self._linker.link_whole_name(name)}
        return sorted(filter(self.index.keeps_entity, found))

    @cached_property
    def likeliest_mentions(self) -> list[Mention]:
        """The likeliest entity of each name, in the order of the text.

        If a longer name is unknown as a whole, its single words are not linked: in "Scott
        Fitzgerald", the word "Scott" does not name an entity Scott.
        """
        by_name: dict[str, Mention] = {}
        # The mention with the highest weight of a name comes first.
        for mention in self.entities:
            by_name.setdefault(mention.name, mention)
        for words in self._marked_words:
            inside = [name for name in by_name if words.issuperset(name.split())]
            if words - {word for name in inside for word in name.split()}:
                by_name = {name: by_name[name] for name in by_name if name not in words}
        folded = fold_name(self.text)
        mentions = sorted(by_name.values(), key=lambda m: (folded.find(m.name), m.name))
        return list({mention.entity: mention for mention in reversed(mentions)}.values())[::-1]

    @cached_property
    def unknown_names(self) -> list[UnknownName]:
        """The capitalized names in the text that no entity has."""
        known = {word for mention in self.likeliest_mentions for word in mention.name.split()}
        return [
            UnknownName(text, find_similar_names(self.index, text))
            for words, text in self._marked_words.items()
            if not words & known
        ]

    @cached_property
    def _marked_words(self) -> dict[frozenset[str], str]:
        """Map the folded words of each capitalized name, without titles like "Dr", to the name."""
        # Where every noun has a capital, a capital does not mark a name.
        if self.language.capitalizes_nouns:
            return {}
        return {
            frozenset(word for words in span.words for word in fold_name(words).split()): span.text
            for span in self.spans
            if span.words
        }

    def spelling_notes(self) -> tuple[str, ...]:
        """Describe the names in the text that are linked in another spelling."""
        known = self.index.open_mapped("name_words")
        words = {word for words in self._marked_words for word in words}
        if all(find_row(known, "word", word) is not None for word in words):
            return ()
        return spelling_notes(self.index, self.likeliest_mentions)

    def unmentioned_names(self, texts: Iterable[str] = ()) -> list[str]:
        """Return the capitalized names that the documents do not mention in any form or spelling.

        `texts` are texts that were read already; they are searched first.
        """
        return find_unmentioned_names(
            self.index,
            self.spans,
            self.language,
            texts,
            lambda: [mention.name for mention in self.entities if mention.kind != "part"],
        )


@dataclass(frozen=True)
class Question:
    """A question to one index.

    Without an `llm`, the answer consists of sentences of the documents. In the `reranking`,
    a finer model scores the best text units. A `sink` receives the text while it is being
    written. `counts` has the numbers of rows that a search has read so far; they are kept if the
    model fails. `reports` are those that the search has compared with the question. `names` are
    names of entities, if the user passed names instead of a question. `warnings` become notes of
    the answer.
    """

    text: str
    index: IndexStore
    llm: LLM | None = None
    search: Search = field(default_factory=Search)
    local: LocalSearch = field(default_factory=LocalSearch)
    sink: TextSink | None = None
    counts: dict[str, int] = field(default_factory=dict)
    reports: list[RatedReport] = field(default_factory=list)
    names: tuple[str, ...] = ()
    reranking: Reranking = field(default_factory=Reranking)
    warnings: list[str] = field(default_factory=list)

    @cached_property
    def vector(self) -> "np.ndarray[Any, Any]":
        """The question's embedding, a vector of length 1."""
        embed = self.index.embedder.embed
        vector: np.ndarray[Any, Any] = embed([self.mentions.spelt_text])[0]
        return vector

    @cached_property
    def language(self) -> Language:
        """The question's language."""
        return find_question_language(self.text, self.index.main_languages)

    @cached_property
    def mentions(self) -> Mentions:
        """The names in the question, linked to entities."""
        return Mentions(self.index, self.text, self.language)

    @cached_property
    def content_words(self) -> list[str]:
        """The stems of the words that carry the question's meaning."""
        return content_words(self.mentions.spelt_text, self.language)

    @cached_property
    def unseen_words(self) -> list[str]:
        """The content words that no text unit contains, if the question is in English.

        The full-text index of text units has the stems of English words only. Dates, and names
        that are linked to an entity or have other spaces in the texts, are left out: they may be
        spelt differently.
        """
        if self.language.code != "en":
            return []
        table = self.index.vectors("text_unit_text")
        stems = set(self.content_words) - STEMS_ABOUT_CORPUS

        def is_seen(word: str) -> bool:
            return not table.find_matching_rows(word, 1, ["human_readable_id"]).is_empty()

        known = {word for mention in self.mentions.entities for word in mention.name.split()}
        known.update(word for date in self.asked_dates for word in fold(date.text).split())
        known.update(word for words in self._period_words.values() for word in words)
        unseen = [
            word
            for word in dict.fromkeys(WORD.findall(split_joined_words(self.text).lower()))
            if stem_word(word) in stems and fold(word) not in known
            if not is_seen(word)
        ]
        for span in self.mentions.spans if unseen else ():
            if any(all(map(is_seen, words)) for words in (span.words, *span.other_spacings)):
                parts = WORD.findall(split_joined_words(span.text).lower())
                unseen = [word for word in unseen if word not in parts]
        return unseen

    @cached_property
    def asked_dates(self) -> list[DatePart]:
        """The days and months that the question names."""
        return find_dates(self.text, self.language)

    @cached_property
    def _period_words(self) -> dict[Period, frozenset[str]]:
        """The folded words of each period that the question names, if documents are about some."""
        if not (self.facets.periods and self.index.has_table("document_subjects")):
            return {}
        days = self.index.document_days
        found = {}
        for period in self.facets.periods:
            is_inside = (days[:, 0] >= max(period.first.toordinal(), 1)) & (
                days[:, 1] <= period.last.toordinal()
            )
            if is_inside.any():
                text = self.text[period.start : period.end]
                found[period] = frozenset(map(fold, WORD.findall(text)))
        return found

    def words_of_period(self, document: int, title: str) -> frozenset[str]:
        """Return the stems of the words that name the period that a document (row) is about.

        Its passages need not say "May 2024" themselves. Words of its title count as such.
        """
        if not self._period_words or not self.index.document_days[document, 0]:
            return frozenset()
        own = Period.from_days(*self.index.document_days[document].tolist())
        words = (
            words
            for period, words in self._period_words.items()
            if period.contains(own.numbered_as(period))
        )
        of_title = frozenset(map(fold, WORD.findall(title)))
        return frozenset(stem_word(word) for one in words for word in one - of_title)

    @cached_property
    def facets(self) -> Facets:
        """The things and periods that the question names, and its topic."""
        return find_facets(self.index, self.text, self.language)

    @cached_property
    def cell_coverage(self) -> CellCoverage:
        """The cells, thing and period, of the question, and their best text units."""
        return find_cell_coverage(self)

    def unmentioned_beside(self, written: list[str]) -> list[str]:
        """Return the names that no document mentions, beside things of documents as written."""
        spans = (span.text for span in self.mentions.spans)
        if all(any(span in text or text in span for text in written) for span in spans):
            return []
        return self.mentions.unmentioned_names(written)

    def may_be_mentioned(self, name: str) -> bool:
        """Return whether the documents may mention a name in a form that nothing compares."""
        return may_be_mentioned(self.index, name, self.language)

    def names_near_series(self) -> list[str]:
        """Return the names that are spelt nearly as a thing with documents of several periods."""
        fuzzy = {m.entity: {*m.name.split()} for m in self.mentions.entities if m.kind == "fuzzy"}
        titles = self.index.entities([*fuzzy])["title"] if fuzzy else ()
        near = [
            words
            for words, title in zip(fuzzy.values(), titles, strict=True)
            if any(t.is_series for t in find_facets(self.index, title, self.language).things)
        ]
        spans = {span.text: {*fold_name(span.text).split()} for span in self.mentions.spans}
        return [name for name, words in spans.items() if any(one <= words for one in near)]

    def no_answer_text(self) -> str:
        """Write in the language of the question that nothing answers it."""
        is_known = self.index.share_of_known_languages >= MIN_SHARE_OF_KNOWN
        languages = self.index.main_languages if is_known else frozenset[str]()
        return format_no_answer(self.language, languages)

    def max_context_tokens(self, limit: int) -> int:
        """Return `limit` in tokens, or less if the context window of the model is smaller."""
        if self.llm is None:
            return limit
        return min(limit, self.llm.max_prompt_tokens - PROMPT_TOKENS)

    def named_entities(self) -> tuple[list[int], list[UnknownName], tuple[str, ...]]:
        """Return named entities, unknown names, and notes on names in another spelling.

        The names are `names` or, if `names` is empty, the names in the question.
        """
        names, mentions = self.names, self.mentions
        if not names and not mentions.likeliest_mentions and not mentions.unknown_names:
            # A short text without a known name may be a name alone, also without a capital.
            is_name = len(self.text.split()) <= MAX_WORDS_OF_NAME
            names = (self.text.strip(" ?!.？！。؟"),) if is_name else ()
        found: list[Mention] = [] if names else mentions.likeliest_mentions
        unknown: list[UnknownName] = [] if names else mentions.unknown_names
        for name in names:
            linked = Mentions(self.index, name).likeliest_mentions
            if linked:
                # If the text contains several names, take the longest name.
                found.append(max(linked, key=lambda mention: len(mention.name)))
            else:
                unknown.append(UnknownName(name, find_similar_names(self.index, name)))
        entities = list(dict.fromkeys(mention.entity for mention in found))
        taken = {mention.name: mention.entity for mention in found if mention.kind != "fuzzy"}
        namesakes = note_namesakes(self.index, taken)
        return entities, unknown, (*spelling_notes(self.index, found), *namesakes)

    def answer(self, text: str, outcome: Outcome = Outcome.ANSWERED, **more: Any) -> Answer:
        """Build the answer to this question, with its counts and the model usage so far."""
        if self.llm is not None:
            more["usage"] = self.llm.usage
        if "cell_coverage" in vars(self):
            more.setdefault("cells", self.cell_coverage.cells)
        counts, version = dict(self.counts), self.index.version.number
        more |= {"looked_at": counts, "reports": tuple(self.reports)}
        return Answer(self.text, text, outcome, version=version, **more)

    def tell(self, stage: str, message: str) -> None:
        """Tell the receiver of the answer what the search does.

        A receiver that wants to know has a method `status`, which gets the same arguments.
        """
        status = getattr(self.sink, "status", None)
        if status is not None:
            status(stage, message)

    def tell_writing(self) -> None:
        """Tell the receiver what was read, and that the answer is being written."""
        read = ", ".join(format_count(name, n) for name, n in self.counts.items() if n)
        if read:
            self.tell("read", f"Read: {read}.")
        self.tell("write", "Writing the answer.")

    def refuse(self, texts: Iterable[str] = ()) -> Answer | None:
        """Build the answer that the documents do not mention a name of the question.

        Returns None if they mention all names. `texts` are texts that the search has already
        read; their words need no further search.
        """
        if cells := self.cell_coverage.cells:
            if self.cell_coverage.found:
                return None
            lines = dict.fromkeys(format_absence(cell, self.language) for cell in cells)
            return self.answer(" ".join(lines), Outcome.NO_EVIDENCE, cells=cells)
        names = self.mentions.unmentioned_names(texts)
        unsure = [name for name in names if self.may_be_mentioned(name)]
        sure = [name for name in names if name not in unsure]
        # A model may know a name in another form.
        if not names or (self.llm is not None and not sure):
            return None
        similar = {name: find_similar_names(self.index, name) for name in names}
        notes = (
            format_refusal("similar_names", self.language, name=name, similar=", ".join(like))
            for name, like in similar.items()
            if like
        )
        kinds = (("not_mentioned", sure), ("not_spelt", unsure))
        text = " ".join(format_names(kind, own, self.language) for kind, own in kinds if own)
        periods = [str(period) for period in self.facets.periods] or [""]
        cells = tuple(Cell(name, period, "no_thing") for name in sure for period in periods)
        return self.answer(text, Outcome.NO_EVIDENCE, notes=tuple(notes), cells=cells)


def note_namesakes(index: IndexStore, taken: Mapping[str, int]) -> tuple[str, ...]:
    """Describe which entity each part of a name is taken for, if others have it in theirs."""
    notes = []
    for name, entity in taken.items():
        words = fold_name(name).split()
        near = [entity, *find_entities_like(index, words, MAX_NAMESAKES)]
        title, *others = index.entities(dict.fromkeys(near))["title"].to_list()
        others = [other for other in others if {*words} <= {*fold_name(other).split()}]
        if others and fold_name(title).split() != words:
            notes.append(f"“{name}” is taken for {title}, not for {' or '.join(others)}.")
    return tuple(notes)


def spelling_notes(index: IndexStore, mentions: Sequence[Mention]) -> tuple[str, ...]:
    """Describe the names that are linked in another spelling."""
    fuzzy = [mention for mention in mentions if mention.kind == "fuzzy"]
    titles = index.entities([mention.entity for mention in fuzzy])["title"]
    return tuple(
        f"“{mention.name}” is taken for {title}."
        for mention, title in zip(fuzzy, titles, strict=True)
    )
