"""Mentions of entities in a corpus: the whole search for names, step by step.

Candidates are collected from all documents in shards, judged by the whole corpus, merged, and
typed. A shard has some documents, which are split where their language changes.

An entity is a name, a noun phrase, or a recurring string in a script without capitals. Mentions are
a table with one row per mention, in the order of the text. All of them may not fit into memory, so
they are computed for some documents at a time.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from graphrag_nlp.corpus import NameOptions, Progress, ShardFrames, Shards
from graphrag_nlp.list_columns import expand_ranges
from graphrag_nlp.names.abbreviations import (
    find_country_abbreviations,
    find_known_abbreviations,
)
from graphrag_nlp.names.corpus_statistics import CorpusStatistics
from graphrag_nlp.names.entity_types import find_entity_types
from graphrag_nlp.names.name_forms import ClassifiedNames, NamesByDocument
from graphrag_nlp.names.name_spans import NameCandidates
from graphrag_nlp.names.name_words import GIVEN_NAMES, count_title_chars
from graphrag_nlp.names.span_cuts import cut_names
from graphrag_nlp.names.span_usage import PROSE
from graphrag_nlp.names.span_words import SpanWords
from graphrag_nlp.names.uncased import ReadTexts, find_uncased_names
from graphrag_nlp.names.used_names import UsedNames
from graphrag_nlp.names.variants import Variants, merge_variants
from graphrag_nlp.names.word_table import (
    CUE_TYPES,
    DocumentWords,
    TermCandidates,
    Vocabulary,
    mixes_languages,
)
from graphrag_nlp.text.code import blank_code
from graphrag_nlp.text.languages import Language, find_language_ranges, language_of
from graphrag_nlp.text.lines import JoinedTexts
from graphrag_nlp.text.sentences import Sentence

_NUMBER_COLUMNS = dict.fromkeys(("document", "start", "end", "entity"), pl.Int32)
MENTION_COLUMNS = {**_NUMBER_COLUMNS, "flags": pl.UInt8}
# Function (first, last) that returns the mentions in the documents from `first` up to `last` - 1.
ReadMentions = Callable[[int, int], pl.DataFrame]


@dataclass
class Entities:
    """Entities as columns. The index of an entity is its number.

    `aliases` maps the number of an entity with several names to its other names.
    """

    titles: list[str]
    types: list[str]
    aliases: dict[int, list[str]]

    def add_entities(self, titles: Iterable[str], kind: str) -> None:
        """Add entities of one type, without aliases."""
        self.titles.extend(titles)
        self.types.extend([kind] * (len(self.titles) - len(self.types)))


def find_mentions(
    texts: ReadTexts,
    sentences: pl.DataFrame,
    bounds: Sequence[int],
    settings: NameOptions,
    progress: Progress,
    shards: Shards,
) -> tuple[ReadMentions, Entities]:
    """Find the entities of a corpus and their mentions.

    Returns a function that reads the mentions in some documents, and the entities. `bounds` has the
    number of the first document of each range that is read in one go; the last is the number of
    documents. Mentions have the columns `MENTION_COLUMNS`. Their rows are sorted by document and
    offset, and no two begin at the same offset. Some entities have no mention. Names are found in
    texts whose divided words are joined; offsets are those of the original texts.
    """
    joined = JoinedTexts(texts)
    names, terms, lower, codes = collect_corpus(
        joined.read, joined.join_spans(sentences), settings, progress, shards
    )
    entities = Entities([], [], {})
    readers: list[ReadMentions] = []
    if names.names:
        classified = classify_names(names, lower)
        places = _NamePlaces(names, classified.parts, classified.names)
        abbreviations = _find_abbreviations(names, classified)
        abbreviations += find_country_abbreviations(classified.names, places.counts)
        abbreviations += find_known_abbreviations(classified.names, places.counts)
        # Free memory: from here on, `places` has all that is needed.
        del names, lower
        variants = _find_variants(classified, places, abbreviations, bounds, settings)
        readers.append(_find_name_mentions(classified, places, variants, bounds, entities))
        del classified, places, abbreviations, variants
    if settings.noun_phrases:
        readers.append(_find_term_mentions(terms, settings, entities))
    del terms
    readers.append(_find_uncased_mentions(joined.read, codes, settings, entities))

    def read(first: int, last: int) -> pl.DataFrame:
        mentions = pl.concat([reader(first, last) for reader in readers])
        mentions = mentions.sort("document", "start", "end", "entity")
        # If several mentions begin at the same offset, keep the longest.
        place = pl.col("document", "start")
        longest = mentions.filter(pl.any_horizontal(place.ne_missing(place.shift(-1))))
        return joined.locate(longest)

    if settings.min_frequency == 1:
        return read, entities
    counts = np.zeros(len(entities.titles), np.int64)
    for first, last in pairwise(bounds):
        counts += np.bincount(read(first, last)["entity"].to_numpy(), minlength=len(counts))
    is_frequent = counts >= settings.min_frequency

    def read_frequent(first: int, last: int) -> pl.DataFrame:
        mentions = read(first, last)
        return mentions.filter(is_frequent[mentions["entity"].to_numpy()])

    return read_frequent, entities


def _find_uncased_mentions(
    texts: ReadTexts, codes: set[str], settings: NameOptions, entities: Entities
) -> ReadMentions:
    """Add names in scripts without capitals to the entities; return a function for mentions."""
    uncased = list(find_uncased_names(texts, codes, settings.min_frequency_caseless))
    recurring = sorted({name for *_, name in uncased})
    entity_of = {name: number for number, name in enumerate(recurring, len(entities.titles))}
    rows = [(*place, entity_of[name], PROSE) for *place, name in uncased]
    places_of_uncased = pl.DataFrame(rows, schema=MENTION_COLUMNS, orient="row")
    entities.add_entities(recurring, "name")
    return _read_slices(places_of_uncased.sort("document"))


def _read_slices(mentions: pl.DataFrame) -> ReadMentions:
    """Return a function that reads mentions from a table sorted by document."""
    document = mentions["document"].to_numpy()

    def read(first: int, last: int) -> pl.DataFrame:
        start, end = np.searchsorted(document, (first, last)).tolist()
        return mentions[start:end]

    return read


def _find_variants(
    classified: ClassifiedNames,
    places: _NamePlaces,
    abbreviations: list[tuple[int, int]],
    bounds: Sequence[int],
    settings: NameOptions,
) -> Variants:
    """Merge the variants of names, if the settings say so."""
    if not settings.merge_variants:
        numbers = np.arange(len(classified.names))
        return Variants(classified.names, classified.languages, numbers, {}, frozenset())
    ranges = (places.read(first, last) for first, last in pairwise(bounds))
    names = [
        pl.DataFrame({name: rows[name] for name in ("document", "name")}).unique(
            maintain_order=True
        )
        for rows in ranges
    ]
    by_document = NamesByDocument(*(column.to_numpy() for column in pl.concat(names)))
    del names
    return merge_variants(classified, places.counts, by_document, abbreviations)


def _find_name_mentions(
    classified: ClassifiedNames,
    places: _NamePlaces,
    variants: Variants,
    bounds: Sequence[int],
    entities: Entities,
) -> ReadMentions:
    """Add the names to the entities, and return a function that returns their mentions."""
    entities.titles += _omit_titles(variants.names, variants.entity_of.tolist())
    lists = _find_lists(places, variants.entity_of, bounds)
    entities.types += find_entity_types(variants, classified, places.counts, lists)
    is_entity = np.fromiter(map(bool, entities.types), np.bool_, len(entities.types))
    entity_of = variants.entity_of.astype(np.int32)
    # (document, name) of names that mean another entity in this document, sorted, and the entity.
    keys = np.array(list(variants.in_document), np.int64).reshape(-1, 2)
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    keys = keys[order]
    local = np.fromiter(variants.in_document.values(), np.int32, len(keys))[order]

    def read(first: int, last: int) -> pl.DataFrame:
        rows = places.read(first, last)
        entity = entity_of[rows["name"]]
        start, end = np.searchsorted(keys[:, 0], (first, last))
        if start < end:
            wanted = (rows["document"].astype(np.int64) << 32) + rows["name"]
            known = (keys[start:end, 0] << 32) + keys[start:end, 1]
            at = np.minimum(np.searchsorted(known, wanted), end - start - 1)
            entity = np.where(known[at] == wanted, local[start:end][at], entity)
        rows["entity"] = entity
        columns = {column: rows[column] for column in (*MENTION_COLUMNS, "name")}
        return pl.DataFrame(columns).filter(is_entity[entity])

    forms = [
        read(first, last)
        .filter(pl.col("name") != pl.col("entity"))
        .group_by("entity", "name")
        .agg(times=pl.len())
        for first, last in pairwise(bounds)
    ]
    aliases = pl.concat(forms).group_by("entity", "name").agg(pl.sum("times"))
    by_frequency = aliases.sort("entity", "times", "name", descending=[False, True, False])
    for entity, name, _ in by_frequency.iter_rows():
        entities.aliases.setdefault(entity, []).append(entities.titles[name])
    return lambda first, last: read(first, last).drop("name")


def _find_lists(places: _NamePlaces, entity_of: np.ndarray, bounds: Sequence[int]) -> np.ndarray:
    """Return a row for each entity in an enumeration: number of the enumeration, entity."""
    found = [np.zeros((0, 2), np.int64)]
    n_lists = 0
    for first, last in pairwise(bounds):
        rows = places.read(first, last)
        # A name continues an enumeration if its span is the next one, joined by "," or "and".
        is_next = np.diff(rows["span"], prepend=-1) == 1
        continues = is_next & (rows["listed"] > 0)
        continues[:1] = False
        number = np.cumsum(~continues) + n_lists
        is_listed = continues | np.append(continues[1:], False)
        entity = entity_of[rows["name"]].astype(np.int64)
        found.append(np.stack([number[is_listed], entity[is_listed]], axis=1))
        n_lists += len(number)
    return np.concatenate(found)


def _omit_titles(names: list[str], entity_of: list[int]) -> list[str]:
    """Remove the titles of persons from names, unless two entities would then have one name."""
    bare = [name[count_title_chars(name) :] for name in names]
    names_of = Counter(bare)
    # Herr Stein and Herrn Stein are one entity, called Stein.
    entities_of = Counter(short for short, _ in set(zip(bare, entity_of, strict=True)))
    return [
        short if (entities_of if entity_of[i] == i else names_of)[short] == 1 else names[i]
        for i, short in enumerate(bare)
    ]


class _NamePlaces:
    """The positions of names in documents, without the titles of persons."""

    def __init__(self, found: NameCandidates, parts: pl.DataFrame, names: Sequence[str]) -> None:
        self.columns = found.get_columns()
        self.surface = self.columns.pop("surface")
        del self.columns["cue"]
        self.parts = {name: parts[name].to_numpy() for name in ("name", "offset", "length")}
        n_chars = np.fromiter(map(count_title_chars, names), np.int32, len(names))
        self.parts["offset"] = self.parts["offset"] + n_chars[self.parts["name"]]
        self.parts["length"] = self.parts["length"] - n_chars[self.parts["name"]]
        # The names in span i are `lengths[i]` rows of `parts`, from row `starts[i]` on.
        n_spans, surface = len(found.names), parts["surface"].to_numpy()
        bounds = np.searchsorted(surface, np.arange(n_spans + 1))
        self.starts, self.lengths = bounds[:-1], np.diff(bounds)
        # Number of mentions of each name.
        weights = np.bincount(self.surface, minlength=n_spans)[surface]
        self.counts = np.bincount(self.parts["name"], weights).astype(np.int64)

    def read(self, first: int, last: int) -> dict[str, np.ndarray]:
        """Return the names in some documents: document, start, end, name, flags and span."""
        start, end = np.searchsorted(self.columns["document"], (first, last))
        surface = self.surface[start:end]
        position, part = expand_ranges(self.starts[surface], self.lengths[surface])
        rows = {name: column[start:end][position] for name, column in self.columns.items()}
        rows["start"] = rows["start"] + self.parts["offset"][part]
        rows["end"] = rows["start"] + self.parts["length"][part]
        return {**rows, "name": self.parts["name"][part], "span": position}


def _find_abbreviations(
    found: NameCandidates, classified: ClassifiedNames
) -> list[tuple[int, int]]:
    """Return the pairs (short, long) of names that a text explains as abbreviations."""
    # The name at the start of each span; -1 if none.
    name_of = np.full(len(found.names), -1, np.int32)
    first = classified.parts.filter(offset=0)
    name_of[first["surface"].to_numpy()] = first["name"].to_numpy()
    pairs = name_of[np.array(list(found.abbreviations), np.int64).reshape(-1, 2)]
    return sorted((short, long) for short, long in pairs.tolist() if min(short, long) >= 0)


def _find_term_mentions(
    terms: TermCandidates, settings: NameOptions, entities: Entities
) -> ReadMentions:
    """Add the accepted noun phrases to the entities, and return a function for their mentions."""
    term_of = terms.map_to_terms(settings.min_frequency_noun_phrase)
    numbers = np.unique(term_of[term_of >= 0])
    if not len(numbers):
        return _read_slices(pl.DataFrame(schema=MENTION_COLUMNS))
    phrases = list(terms.phrases)
    entity_of = np.full(len(phrases), -1, np.int32)
    entity_of[numbers] = len(entities.titles) + np.arange(len(numbers), dtype=np.int32)
    entities.add_entities((phrases[number] for number in numbers), "noun phrase")
    for number in np.flatnonzero((term_of >= 0) & (term_of != np.arange(len(phrases)))):
        aliases = entities.aliases.setdefault(int(entity_of[term_of[number]]), [])
        aliases.append(phrases[number])
    term = term_of[np.frombuffer(terms.phrase, np.int32)]
    kept = term >= 0
    columns = {name: getattr(terms, name) for name in ("document", "start", "end")}
    places = pl.DataFrame({name: np.frombuffer(a, np.int32)[kept] for name, a in columns.items()})
    return _read_slices(
        places.with_columns(entity=pl.Series(entity_of[term[kept]]), flags=pl.lit(PROSE, pl.UInt8))
    )


def collect_corpus(
    texts: ReadTexts,
    sentences: pl.DataFrame,
    settings: NameOptions,
    progress: Progress,
    shards: Shards,
) -> tuple[NameCandidates, TermCandidates, dict[str, Counter[str]], set[str]]:
    """Collect the candidates of all documents.

    Returns candidates for names and for terms, counts of the words in lower case by language code,
    and the codes of all languages.
    """
    names, terms = NameCandidates(), TermCandidates()
    lower: dict[str, Counter[str]] = defaultdict(Counter)
    codes: set[str] = set()
    work = _prepare_shards(texts, sentences)
    collected = shards.map(_collect_candidates, work, settings.noun_phrases, keep_parts=True)
    for (first, languages), found in collected:
        names.add_frames(found, first)
        terms.add_frames(found, first)
        for code, word, count in found["words"].iter_rows():
            lower[code][word] += count
        codes.update(languages)
        progress.advance(len(languages))
    return names, terms, lower, codes


def _prepare_shards(
    texts: ReadTexts, sentences: pl.DataFrame
) -> Iterator[tuple[tuple[int, list[str]], ShardFrames]]:
    """Yield shards of documents with their sentences: ((first document, languages), frames).

    Documents are numbered from 0 in each shard, so that a shard is the same if documents are added
    before it.
    """
    # The sentences of document i are the rows from bounds[i] to bounds[i + 1].
    bounds = np.append(0, np.cumsum(np.bincount(sentences["document"].to_numpy())))
    rows = sentences.select("document", "start_char", "end_char", "quotable")
    for batch in texts():
        # A blank document at the end of the corpus has no sentences.
        first, last = np.minimum((batch["number"][0], batch["number"][-1] + 1), len(bounds) - 1)
        start = int(bounds[first])
        own = rows.slice(start, int(bounds[last]) - start)
        offset = batch["number"][0]
        shard = {
            "documents": batch.with_columns(pl.col("number") - offset),
            "sentences": own.with_columns(pl.col("document") - offset),
        }
        yield (offset, batch["language"].to_list()), shard


def _collect_candidates(shard: ShardFrames, with_noun_phrases: bool) -> ShardFrames:
    """Collect candidates for names and terms in some documents, and the words in lower case."""
    names, terms = NameCandidates(), TermCandidates()
    vocabularies: dict[str, Vocabulary] = {}
    columns = shard["sentences"].select("start_char", "end_char", "quotable").get_columns()
    all_sentences = list(map(Sentence, *map(pl.Series.to_list, columns)))
    owner = shard["sentences"]["document"].to_numpy()
    for number, text, code in shard["documents"].iter_rows():
        first, last = np.searchsorted(owner, (number, number + 1)).tolist()
        if first == last:
            continue
        sentences = all_sentences[first:last]
        text = blank_code(text)
        for start, end, language, words in _split_by_language(text, code, vocabularies):
            own, part = sentences, text[start:end]
            if len(part) < len(text):
                own = [
                    Sentence(s.start - start, min(s.end, end) - start, s.prose)
                    for s in sentences
                    if start <= s.start < end
                ]
            names.add_document(number, part, words, own, language, start)
            if with_noun_phrases:
                terms.add_document(number, part, words, language, start)
    names.add_usage()
    counts = pl.DataFrame(
        [
            (code, word, count)
            for code, vocabulary in vocabularies.items()
            for word, count in vocabulary.count_lower_words().items()
        ],
        {"language": pl.String, "word": pl.String, "count": pl.Int64},
        orient="row",
    )
    return {**names.to_frames(), **terms.to_frames(), "words": counts}


def _split_by_language(
    text: str, code: str, vocabularies: dict[str, Vocabulary]
) -> Iterator[tuple[int, int, Language, DocumentWords]]:
    """Yield the parts of a document in one language: (start, end, language, words)."""

    def vocabulary_of(code: str) -> Vocabulary:
        return vocabularies.setdefault(code, Vocabulary(language_of(code)))

    words = vocabulary_of(code).read_words(text)
    ranges = find_language_ranges(text, code) if mixes_languages(words) else []
    for start, end, own in ranges if len(ranges) > 1 else ((0, len(text), code),):
        if len(ranges) > 1:
            words = vocabulary_of(own).read_words(text[start:end])
        vocabulary_of(own).count_words(words)
        yield start, end, language_of(own), words


def classify_names(found: NameCandidates, lower: Mapping[str, Counter[str]]) -> ClassifiedNames:
    """Find the names in all distinct spans. Call it after all documents were read."""
    found.restore_cut_words()
    usage = CorpusStatistics(found, lower)
    names, languages_of, parts = _collect_names(found, UsedNames(usage))
    surface, named = parts["surface"].to_numpy(), parts["name"].to_numpy()
    times = np.maximum(np.bincount(named, np.asarray(usage.total)[surface], len(names)), 1)
    # The word before a span shows only the usage of the first name in the span.
    first = parts["offset"].to_numpy() == 0
    lengths = np.fromiter(map(len, found.names), np.int32, len(found.names))
    whole = first & (parts["length"].to_numpy() == lengths[surface])

    cued = parts["cue"].to_numpy()

    def share_of_cue(number: int, kind: str) -> np.ndarray:
        rows = cued == number
        inside = np.bincount(named[rows], np.asarray(usage.total)[surface[rows]], len(names))
        return share_of_mentions(usage.cues[kind], whole) + inside / times

    def share_of_mentions(count: Sequence[int] | np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.bincount(named[rows], np.asarray(count)[surface[rows]], len(names)) / times

    named_in = [*zip(names, languages_of, strict=True)]
    words = {(word, language.code) for name, language in named_in for word in name.split(" ")}
    return ClassifiedNames(
        names=names,
        languages=languages_of,
        # Names share the strings of their words, which saves memory.
        bases=[
            tuple(map(sys.intern, usage.base_form(name.split(" "), language)))
            for name, language in named_in
        ],
        parts=parts,
        place_share=share_of_mentions(usage.place, first),
        preposition_share=share_of_mentions(usage.preposition, first),
        determiner_share=share_of_mentions(usage.determiner, first),
        article_share=share_of_mentions(usage.article, first),
        person_share=share_of_mentions(usage.person, whole),
        common=frozenset(word for word, code in words if usage.is_common(word, code)),
        cue_shares={kind: share_of_cue(number, kind) for number, kind in enumerate(CUE_TYPES)},
        hint_shares={kind: share_of_mentions(count, whole) for kind, count in usage.hints.items()},
        written_lower=frozenset(word for word, code in words if usage.count_lower(word, code)),
    )


def _collect_names(
    found: NameCandidates, used: UsedNames
) -> tuple[list[str], list[Language], pl.DataFrame]:
    """Return the names in all spans, their languages, and their places in the spans."""
    # The second of two words is a surname if the first is a given name.
    pairs = (name.split(" ") for name in found.names if name.count(" ") == 1)
    surnames = {surname for first, surname in pairs if first in GIVEN_NAMES}
    names: dict[str, int] = {}
    languages_of: list[Language] = []
    columns = {column: array("i") for column in ("surface", "name", "offset", "length", "cue")}
    for number in range(len(found.names)):
        parts_of_span: Iterable[tuple[int, str, str]] = [(0, found.names[number], "")]
        if not found.is_defined(number):
            parts_of_span = cut_names(SpanWords(used, surnames, number))
        for offset, text, cue in parts_of_span:
            name = names.setdefault(text, len(names))
            if name == len(languages_of):
                languages_of.append(found.languages[number])
            row = (number, name, offset, len(text), CUE_TYPES.index(cue) if cue else -1)
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    parts = pl.DataFrame({name: np.frombuffer(a, np.int32) for name, a in columns.items()})
    return list(names), languages_of, parts
