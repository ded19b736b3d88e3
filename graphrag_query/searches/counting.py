"""Answers to questions for a number, counted in the tables of the index.

Documents, dates and mentions are counted exactly; the answer says what was counted and how. A
small table with bars shows the numbers, and citations show examples.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from graphrag_index.errors import format_count, join_names
from graphrag_nlp.answers.counting import CountRequest
from graphrag_nlp.text.languages import MIN_STEM, Language, find_stems
from graphrag_nlp.text.normalize import fold, is_unspaced
from graphrag_nlp.text.places import find_places
from graphrag_nlp.text.sentences import split_sentences
from graphrag_query.answer import Answer, Citation, Outcome
from graphrag_query.question.question import Mentions, Question
from graphrag_query.question.question_words import WORD
from graphrag_query.store.index_store import IndexStore

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

# Number of rows in a table of entities, if the question gives no number.
MAX_ENTITIES = 10
# Maximum number of names that are mentioned most, of forms of a word, and of periods in a table.
MAX_NAMES, MAX_FORMS, MAX_PERIODS = 3, 6, 60
# Number of passages that are cited as examples of a subject.
MAX_EXAMPLES = 3
# A number rises or falls over time if it changes at least by this factor.
MIN_CHANGE = 1.2
# In documents with more text units than this, on average, passages count instead of documents.
MAX_TEXT_UNITS_OF_ARTICLE = 5
# Number of text units whose texts are searched at once; it limits memory.
BATCH_TEXT_UNITS = 8_192
# Length of the longest bar of a table in characters.
BAR_LENGTH = 20
PERIOD_NAMES = {4: "year", 7: "month", 10: "day"}
# Maximum number of letters in which two forms of a word differ at the end.
MAX_ENDING_CHARS = 3
# English endings of the plural, each with the ending of the singular.
_PLURAL_ENDINGS = (
    *(("ies", "y"), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh")),
    *(("oes", "o"), ("s", "")),
)
# The words of a term, each with the number behind it.
_WORDS_WITH_NUMBERS = re.compile(r"[^\d\s]\S*\s+\d+(?!\S)|\S+")
# Types of names that are often of a type that the index could not tell.
_UNCLEAR_TYPES = ("name", "acronym")
# Minimum population of a city with the name of a region.
MIN_CITY_OF_REGION = 200_000


def count_answer(question: Question, request: CountRequest) -> Answer:
    """Answer a question for a number.

    The outcome is `no_evidence` if no document mentions the subject, or has a date that it needs.
    """
    counter = _Counter(question, request)
    write = {
        "documents": counter.write_documents,
        "occurrences": counter.write_documents,
        "top_documents": counter.write_top_documents,
        "subjects": counter.write_subjects,
        "entities": counter.write_entities,
        "distinct": counter.write_entities,
        "dates": counter.write_dates,
        "trend": counter.write_trend,
    }[request.counted]
    question.counts.update(documents=counter.n_all, documents_counted=len(counter.documents))
    # "0 of 5 documents mention A and B" is an answer; there is nothing to rank or to date.
    is_number = request.counted in ("documents", "occurrences", "subjects")
    found = [term.documents for term in counter.terms] if is_number else [counter.documents]
    if counter.terms and not any(map(len, found)):
        # A count compares no other forms of a name: it does not tell that all are missing.
        terms = {one.term for one in counter.terms if not any(map(str.isdigit, one.term))}
        known = {span.text for span in question.mentions.spans} & terms
        known = known.difference(question.mentions.unmentioned_names() if known else ())
        is_sure = not known and not any(map(question.may_be_mentioned, terms))
        said = f"mentions {counter.name}" if is_sure else f"spells {counter.name} like this"
        text = f"None of the {counter.n_all:,} documents{counter.of_dates} {said}."
        return question.answer(text, Outcome.NO_EVIDENCE)
    return write()


@dataclass(frozen=True, eq=False)
class TermCount:
    """The text units that contain a term, in ascending order, and its occurrences.

    A text unit is also counted if it names an entity with this name. `n_mentions` counts
    occurrences of the words. A passage in which two text units overlap is counted once. `forms`
    counts the occurrences of each form of the words, the most frequent first.
    """

    term: str
    text_units: "Integers"
    n_of_text_units: "Integers"  # occurrences in each text unit
    documents: "Integers"
    n_mentions: int
    forms: dict[str, int] = field(default_factory=dict)

    def describe(self) -> str:
        """Say how many documents mention the term, how often, and in which forms."""
        n = len(self.documents)
        verb = "mentions" if n == 1 else "mention"
        said = f"{format_count('documents', n)} {verb} “{self.term}”"
        if not self.forms:
            return f"{said}, by other names of it." if n else f"{said}."
        times = "once" if self.n_mentions == 1 else f"{self.n_mentions:,} times in all"
        if list(self.forms) == [self.term]:
            return f"{said}, {times}."
        forms = [f"{form} {n:,}" for form, n in list(self.forms.items())[:MAX_FORMS]]
        if len(self.forms) > MAX_FORMS:
            forms.append(f"other forms {sum(list(self.forms.values())[MAX_FORMS:]):,}")
        return f"{said}, {times}: {', '.join(forms)}."


def count_term(index: IndexStore, term: str, language: Language, kept: "Flags") -> TermCount:
    """Count the text units and documents that contain a term.

    `kept` has a flag for each text unit of the index; only those with the flag are searched.
    The words of a term are adjacent, in the singular or plural or, in other languages than
    English, with the endings of names. A word with a capital has this capital in the texts too.
    """
    table, pattern = index.open_mapped("text_unit_rows"), _term_pattern(term)
    n_of_all, forms = np.zeros(len(table), np.int64), Counter[str]()
    # The number of characters at the start that the text unit before also contains.
    shared = (pl.col("end_char").shift() - pl.col("start_char")).clip(lower_bound=0)
    is_same = pl.col("document") == pl.col("document").shift()
    overlap = pl.when(is_same).then(shared).otherwise(0).fill_null(0)
    places = table.columns("document", "start_char", "end_char")
    texts = table.columns("text").with_columns(places.select(overlap=overlap)["overlap"])
    for first in range(0, len(table), BATCH_TEXT_UNITS):
        read = texts[first : first + BATCH_TEXT_UNITS].with_row_index("row", first)
        read = read.filter(pl.Series(kept[first : first + BATCH_TEXT_UNITS]))
        read = read.with_columns(found=pl.col("text").str.extract_all(pattern))
        read = read.filter(pl.col("found").list.len() > 0)
        known = set(read["found"].explode().drop_nulls())
        same = [form for form in known if is_form_of(form, term, language)]
        times = read["found"].list.eval(pl.element().is_in(same)).list.sum()
        n_of_all[read["row"].to_numpy()] = times.to_numpy()
        new = read.select(pl.col("text").str.slice(pl.col("overlap")).str.extract_all(pattern))
        forms.update(new.to_series().explode().drop_nulls().to_list())
    forms = Counter({form: n for form, n in forms.items() if is_form_of(form, term, language)})
    for entity in Mentions(index, term, language).exact_entities:
        title, aliases = index.open_mapped("entity_rows").rows([entity], "title", "aliases").row(0)
        if fold(term) in map(fold, (title, *aliases)):
            linked = index.links.text_units_of(entity).numbers
            n_of_all[linked] = np.maximum(n_of_all[linked], 1)
    numbers = np.flatnonzero(n_of_all * kept).astype(np.int64)
    documents = np.unique(table.rows(numbers, "document")["document"].to_numpy()).astype(np.int64)
    spellings = Counter[str]()
    for form, n in forms.items():
        # Names and abbreviations keep their capitals.
        spellings[" ".join((form if term[:1].isupper() else form.lower()).split())] += n
    said = dict(spellings.most_common())
    return TermCount(term, numbers, n_of_all[numbers], documents, sum(forms.values()), said)


def _term_pattern(term: str) -> str:
    """Return a regular expression for adjacent words that may be forms of a term's words."""

    def pattern_of(word: str) -> str:
        if len(word) > 1 and word.isupper():
            return re.escape(word)
        stem = word[: max(MIN_STEM, len(word) - MAX_ENDING_CHARS)] if len(word) > MIN_STEM else word
        first = re.escape(word[0]) if word[0].isupper() else rf"(?i:{re.escape(word[0])})"
        return rf"{first}(?i:{re.escape(stem[1:])})\w*"

    if is_unspaced(term):
        return re.escape(term)
    return r"\b" + r"[\s-]+".join(map(pattern_of, WORD.findall(term))) + r"\b"


def is_form_of(form: str, term: str, language: Language) -> bool:
    """Return whether words of a text are the words of a term, in the same or another number."""
    if is_unspaced(term):
        return form == term
    words, asked = WORD.findall(form), WORD.findall(term)
    return len(words) == len(asked) and all(
        _stems_of(word, language) & _stems_of(other, language)
        for word, other in zip(words, asked, strict=True)
    )


def _stems_of(word: str, language: Language) -> frozenset[str]:
    if language.code != "en":
        return find_stems(word, language)
    folded = fold(word)
    return frozenset({folded}) | {
        folded.removesuffix(plural) + singular
        for plural, singular in _PLURAL_ENDINGS
        if folded.endswith(plural) and len(folded) > MIN_STEM and not folded.endswith("ss")
    }


def are_of_kind(entities: pl.DataFrame, kind: str, narrower: str | None) -> "np.ndarray":
    """Return a code for each entity of a type and kind, and an empty text for the others.

    With the kind country, entities of the same country have the same code. A name of a country or
    continent is no name of a city or region, and one of a region only that of a large city.
    """
    types = entities["type"].str.to_lowercase()
    unclear = _UNCLEAR_TYPES if kind == "organization" or narrower == "country" else ()
    rows = np.flatnonzero(types.is_in([kind, *unclear]).to_numpy())
    codes = np.full(entities.height, "", dtype=object)
    if narrower is None:
        codes[rows] = [str(row) for row in rows]
        return codes
    places = find_places(entities["title"][rows])
    is_large = (pl.col("kind") == "city") & (pl.col("population") >= MIN_CITY_OF_REGION)
    is_wider = pl.col("kind").is_in(["continent", "country"]).any()
    if narrower == "city":
        is_wider |= (pl.col("kind") == "region").any() & ~is_large.any()
    found = places.group_by("row").agg(
        code=pl.col("country").filter(pl.col("kind") == narrower).first(),
        is_wider=is_wider if narrower in ("region", "city") else pl.lit(False),
    )
    for row, code, wider in found.select("row", "code", "is_wider").iter_rows():
        if code is not None and not wider:
            # A continent has no country.
            codes[rows[row]] = code if narrower == "country" and code else str(row)
    return codes


class _Counter:
    """The subject of one question for a number, the tables of the index, and the answer."""

    def __init__(self, question: Question, request: CountRequest) -> None:
        self.question, self.index, self.request = question, question.index, request
        units, kept = self.index.open_mapped("text_unit_rows"), self.index.row_flags("documents")
        self.document_of = units.slice("document", 0, len(units))
        n_documents = self.index.n_rows("document_rows")
        documents = np.arange(n_documents) if kept is None else np.flatnonzero(kept)
        names = [*(date.text for date in question.asked_dates), *request.years]
        terms, self.of_dates = list(request.terms), ""
        if names:
            dated = self.index.dated_documents(documents)
            if 2 * dated.height < len(documents):
                # Most documents have no date: the dates are words of the subject.
                terms += names
            else:
                self.of_dates = f" of {' and '.join(names)}"
                asked = question.asked_dates
                documents = np.array(
                    sorted(
                        document
                        for document, day in dated.iter_rows()
                        if day[:4] in request.years or any(date.matches(day) for date in asked)
                    ),
                    np.int64,
                )
        self.n_all, self.citations = len(documents), list[Citation]()
        within = np.isin(self.document_of, documents)
        self.terms = self._count_terms(terms, within)
        self.documents, self.text_units = documents, np.flatnonzero(within)
        self.by_passage = len(self.text_units) > MAX_TEXT_UNITS_OF_ARTICLE * len(documents)
        is_any = request.is_any or request.counted == "subjects"
        self.name = f" {'or' if is_any else 'and'} ".join(f"“{term.term}”" for term in self.terms)
        if self.terms:
            join = np.union1d if is_any else np.intersect1d
            self.documents = self.terms[0].documents
            for term in self.terms[1:]:
                self.documents = join(self.documents, term.documents)
            numbers = np.unique(np.concatenate([term.text_units for term in self.terms]))
            self.text_units = numbers[np.isin(self.document_of[numbers], self.documents)]
        # Whether each text unit counts for the names in it.
        self.relevant = np.zeros(len(self.document_of), bool)
        self.relevant[self.text_units] = True
        if not self.by_passage:
            self.relevant = np.isin(self.document_of, self.documents)
        # The number of occurrences of the subject in each text unit.
        self.occurrences = np.zeros(len(self.document_of), np.int64)
        for term in self.terms:
            self.occurrences[term.text_units] += term.n_of_text_units
        self.pattern = _any_of(form for term in self.terms for form in (*term.forms, term.term))

    def _count_terms(self, terms: Iterable[str], within: "Flags") -> list[TermCount]:
        """Count each term in the text units with the flag of `within`.

        A phrase that no document contains is counted word by word. A word and the number behind
        it, such as Article 50, stay together.
        """
        index, language, counts = self.index, self.question.language, list[TermCount]()
        for term in terms:
            count = count_term(index, term, language, within)
            words = _WORDS_WITH_NUMBERS.findall(term)
            if len(count.text_units) or len(words) == 1 or f'"{term}"' in self.question.text:
                counts.append(count)
            else:
                counts += [count_term(index, word, language, within) for word in words]
        return counts

    def write_documents(self) -> Answer:
        """Say how many documents mention the subject, and how often."""
        n_documents, n_passages = len(self.documents), len(self.text_units)
        if not self.terms:
            text = (
                f"There are {self.n_all:,} documents{self.of_dates}, with {n_passages:,} passages."
            )
            return self._answer(text)
        times = sum(term.n_mentions for term in self.terms)
        share = f"{n_documents:,} of {self.n_all:,} documents{self.of_dates}"
        share = f"{share} ({100 * n_documents / max(self.n_all, 1):.0f} %)"
        verb = "mentions" if n_documents == 1 else "mention"
        if self.request.counted == "occurrences":
            first = f"{self.name} is mentioned {times:,} times, in {share}."
        elif len(self.terms) > 1:
            first = f"{share} {verb} {self.name}."
        else:
            first = f"{share} {verb} {self.name}: {times:,} times, in {n_passages:,} passages."
        return self._answer(
            first, self._rows_of_terms() if len(self.terms) > 1 else (), examples=True
        )

    def write_top_documents(self) -> Answer:
        """List the documents that mention the subject most often."""
        n_documents = self.index.n_rows("document_rows")
        times = np.bincount(self.document_of, self.occurrences, minlength=n_documents)
        order = np.argsort(-times[self.documents], kind="stable")
        shown = self.documents[order][: self.request.most or MAX_ENTITIES].tolist()
        titles = self.index.documents(shown)["title"]
        rows: list[dict[str, Any]] = [
            {"document": title, "mentions": int(times[n]), "footnote": self._cite_document(n)}
            for n, title in zip(shown, titles, strict=True)
        ]
        first = (
            f"“{rows[0]['document']}” mentions {self.name} most often: {rows[0]['mentions']:,} "
            f"times. {len(self.documents):,} of {self.n_all:,} documents mention it."
        )
        return self._answer(first, rows)

    def write_subjects(self) -> Answer:
        """Compare how many documents mention each of several subjects."""
        rows = self._rows_of_terms()
        first = (
            f"“{rows[0]['subject']}” is mentioned in the most documents: "
            f"{rows[0]['documents']:,} of {self.n_all:,}."
        )
        return self._answer(first, rows, examples=True)

    def _rows_of_terms(self) -> Sequence[Mapping[str, Any]]:
        rows = [
            {"subject": t.term, "documents": len(t.documents), "mentions": t.n_mentions}
            for t in self.terms
        ]
        return sorted(rows, key=lambda row: (-row["documents"], -row["mentions"]))

    def write_entities(self) -> Answer:
        """List the entities of a type by the number of documents that mention them."""
        unit = "passages" if self.by_passage else "documents"
        ranked, plural = self._rank_entities(), self.request.plural
        within = self.of_dates + (f" that mention {self.name}" if self.terms else "")
        n_of = len(self.text_units if self.by_passage else self.documents)
        if not ranked:
            text = f"The index knows no {plural} of the {n_of:,} {unit}{within}."
            return self.question.answer(text, Outcome.NO_EVIDENCE)
        shown = ranked[: self.request.most or MAX_ENTITIES]
        titles = self.index.entities(entity for entity, _ in shown)
        named = zip(shown, titles["title"], titles["aliases"], strict=True)
        rows = [
            {"name": title, unit: n, "footnote": self._cite_entity(entity, (title, *aliases))}
            for (entity, n), title, aliases in named
        ]
        if self.request.counted == "distinct":
            n = len(ranked)
            first = f"{n:,} different {plural} are mentioned in the {n_of:,} {unit}{within}."
        else:
            highest = rows[0][unit]
            best = [row["name"] for row in rows if row[unit] == highest]
            first = (
                f"{_list_names(best)} {'are' if len(best) > 1 else 'is'} mentioned most: "
                f"in {highest:,} of {n_of:,} {unit}{within}."
            )
        more = len(ranked) - len(rows)
        notes = [f"A {unit[:-1]} counts once for each name that the index found in it."]
        if more > 0:
            notes.append(f"{more:,} more {plural} are mentioned less often.")
        return self._answer(first, rows, notes)

    def _rank_entities(self) -> list[tuple[int, int]]:
        """Count the documents or passages that mention each entity, the most first."""
        table, rows = (
            self.index.open_mapped(name) for name in ("text_units_of_entities", "entity_rows")
        )
        units, entities = (table.slice(name, 0, len(table)) for name in ("text_unit", "entity"))
        flags, kept = self.relevant[units], self.index.row_flags("entities")
        if kept is not None:
            flags &= kept[entities]
        # Entities with the same code count as the most frequent one of them.
        united = np.arange(len(rows))
        if self.request.kind:
            columns = rows.columns("title", "type", "frequency")
            codes = are_of_kind(columns, self.request.kind, self.request.narrower)
            flags &= (codes != "")[entities]
            coded = columns.select("frequency", code=pl.Series(codes.astype(str)))
            first = pl.col("row").sort_by("frequency", descending=True).first()
            united = coded.with_row_index("row").select(first.over("code"))["row"].to_numpy()
        places = (units if self.by_passage else self.document_of[units])[flags]
        pairs = np.unique(np.stack([united[entities[flags]], places]), axis=1)
        counts = np.bincount(pairs[0], minlength=len(rows))
        # All of these documents mention the subject itself.
        for term in self.terms:
            counts[Mentions(self.index, term.term, self.question.language).exact_entities] = 0
        numbers = np.flatnonzero(counts)
        numbers = numbers[np.argsort(-counts[numbers], kind="stable")]
        return list(zip(numbers.tolist(), counts[numbers].tolist(), strict=True))

    def write_dates(self) -> Answer:
        """Say when the subject is mentioned for the first and the last time."""
        dated = self.index.dated_documents(self.documents)
        if not dated.height:
            return self._no_dates()
        first, last = dated.row(0, named=True), dated.row(-1, named=True)
        cited = [self._cite_document(row["document"]) for row in (first, last)]
        return self._answer(
            f"{self.name} is first mentioned on {first['date']} {cited[0]} and last on "
            f"{last['date']} {cited[1]}.\n{dated.height:,} of the {len(self.documents):,} "
            "documents that mention it have a date."
        )

    def write_trend(self) -> Answer:
        """Count the documents with the subject by year, month or day."""
        dated = self.index.dated_documents(self.documents)
        length = self.request.period or _choose_period(dated["date"])
        dates = dated.filter(pl.col("date").str.len_chars() >= length)["date"].str.slice(0, length)
        if not len(dates):
            return self._no_dates()
        counts = dict(dates.value_counts().sort("date").iter_rows())
        name = PERIOD_NAMES[length]
        rows = [{name: one, "documents": counts.get(one, 0)} for one in _fill(list(counts), length)]
        best = max(rows, key=lambda row: row["documents"])
        within = f" that mention {self.name}" if self.terms else ""
        first = (
            f"{_describe_trend(f'documents{within}', rows, name)} Most are of {best[name]}: "
            f"{best['documents']:,} of {len(dates):,}."
        )
        n_without = len(self.documents) - len(dates)
        notes = [f"{n_without:,} documents have no such date."] if n_without else []
        if len(rows) > MAX_PERIODS:
            notes.append(f"The last {MAX_PERIODS} of {len(rows):,} periods are shown.")
        return self._answer(first, rows[-MAX_PERIODS:], notes, examples=True)

    def _no_dates(self) -> Answer:
        text = f"None of the {len(self.documents):,} counted documents has a date."
        return self.question.answer(text, Outcome.NO_EVIDENCE)

    def _cite_entity(self, entity: int, names: Sequence[str]) -> str:
        """Cite the first sentence of a counted text unit that names an entity."""
        linked, is_subject = self.index.links.text_units_of(entity)
        flags = self.relevant[linked]
        linked, is_subject = linked[flags], is_subject[flags]
        return self._cite(int(linked[np.argmax(is_subject)]), _any_of(names)) if len(linked) else ""

    def _cite_document(self, document: int) -> str:
        """Cite the first passage of a document with the subject."""
        numbers = self.text_units[self.document_of[self.text_units] == document]
        return self._cite(int(numbers[0]), self.pattern)

    def _cite(self, number: int, pattern: str) -> str:
        """Cite the first sentence of a text unit that matches a pattern, and return its mark."""
        unit = self.index.text_units([number])[number]
        sentences = split_sentences(unit["text"])
        matching = [s for s in sentences if re.search(pattern, unit["text"][s.start : s.end])]
        for best in [*(s for s in matching if s.prose), *matching, *sentences][:1]:
            n = len(self.citations) + 1
            self.citations.append(Citation.within(n, unit, best.start, best.end))
            return f"[{n}]"
        return ""

    def _examples(self) -> list[str]:
        """Quote the passages with the most occurrences of the subject, one per document."""
        lines, seen = [], set[int]()
        order = np.argsort(-self.occurrences[self.text_units], kind="stable")
        for number in self.text_units[order].tolist():
            document = int(self.document_of[number])
            if document not in seen and (mark := self._cite(number, self.pattern)):
                seen.add(document)
                lines.append(f"- {' '.join(self.citations[-1].quote.split())} {mark}")
            if len(lines) == MAX_EXAMPLES:
                break
        return lines

    def _answer(
        self,
        first: str,
        rows: Sequence[Mapping[str, Any]] = (),
        notes: Sequence[str] = (),
        examples: bool = False,
    ) -> Answer:
        """Build the answer: the sentence with the number, table, mentions and examples."""
        parts = [first]
        if rows:
            parts.append(_write_table(rows))
        if self.terms:
            parts.append(" ".join(term.describe() for term in self.terms))
        parts += notes
        if examples and (quoted := self._examples()):
            parts.append("\n".join(["Examples:\n", *quoted]))
        table = tuple({k: v for k, v in row.items() if k != "footnote"} for row in rows)
        answer = self.question.answer("\n\n".join(parts), citations=tuple(self.citations))
        return replace(answer, table=table)


def _any_of(names: Iterable[str]) -> str:
    """Return a pattern of any of these words or names, the longest one first."""
    patterns = (
        re.escape(name) if is_unspaced(name) else rf"\b{re.escape(name)}\b"
        for name in sorted(names, key=len, reverse=True)
    )
    return "|".join(patterns)


def _list_names(names: Sequence[str]) -> str:
    """Join names by commas and "and"; of many, name three and the number of the others."""
    if len(names) > MAX_NAMES:
        return join_names(names, MAX_NAMES)
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _choose_period(dates: pl.Series) -> int:
    """Choose days, months or years, so that a table has few rows."""
    length = min(map(len, dates), default=4)
    for period, most in ((10, 31), (7, 36)):
        if length >= period and dates.str.slice(0, period).n_unique() <= most:
            return period
    return 4


def _fill(dates: Sequence[str], length: int) -> list[str]:
    """Return all years or months from the first to the last date; only the known days."""
    if length == 10:
        return list(dates)
    if length == 4:
        return [f"{year:04}" for year in range(int(dates[0]), int(dates[-1]) + 1)]
    first, last = (int(date[:4]) * 12 + int(date[5:7]) - 1 for date in (dates[0], dates[-1]))
    return [f"{month // 12:04}-{month % 12 + 1:02}" for month in range(first, last + 1)]


def _describe_trend(counted: str, rows: Sequence[Mapping[str, Any]], period: str) -> str:
    """Say whether the numbers of the second half of the periods are higher or lower."""
    half = len(rows) // 2
    early = sum(row["documents"] for row in rows[:half])
    late = sum(row["documents"] for row in rows[len(rows) - half :])
    if not half:
        return f"All {counted} with a date are of one {period}."
    change = f"from {early:,} in the first half of the {period}s to {late:,} in the second half"
    if late >= MIN_CHANGE * early:
        return f"The number of {counted} rises: an increase {change}."
    if early >= MIN_CHANGE * late:
        return f"The number of {counted} falls: a decrease {change}."
    return f"The number of {counted} stays about the same: {change}."


def _write_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows as a Markdown table; bars show the first column of numbers."""
    names = [name for name in rows[0] if name != "footnote"]
    is_number = {name: isinstance(rows[0][name], int) for name in names}
    measure = next(name for name in names if is_number[name])
    longest = max(row[measure] for row in rows) or 1
    rule = "|".join(" ---: " if is_number[name] else " --- " for name in names)
    lines = [f"| {' | '.join(names)} | |", f"|{rule}| --- |"]
    for row in rows:
        cells = [f"{row[name]:,}" if is_number[name] else row[name] for name in names]
        cells[0] = f"{cells[0].replace('|', '/')} {row.get('footnote', '')}".rstrip()
        bar = "█" * round(BAR_LENGTH * row[measure] / longest) or ("▏" if row[measure] else "")
        lines.append(f"| {' | '.join(cells)} | {bar} |")
    return "\n".join(lines)
