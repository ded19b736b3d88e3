"""Mentions of entities in a corpus: names, terms, and recurring strings."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from graphrag_index.nlp.name_classifier import ClassifiedNames, classify_names
from graphrag_index.nlp.name_spans import PROSE, Names
from graphrag_index.nlp.type_keywords import type_of
from graphrag_index.nlp.uncased import find_uncased
from graphrag_index.nlp.variants import Variants, merge_variants
from graphrag_index.nlp.word_table import Terms, Vocabulary
from graphrag_index.schema.settings.embedded_steps import ExtractGraphNlp
from graphrag_index.step import Progress
from graphrag_index.text.languages import language_of
from graphrag_index.text.sentences import Sentence

# Streams number, text and language of each document, as often as it is called.
Texts = Callable[[], Iterable[tuple[int, str, str]]]

MENTIONS = {
    **{"document": pl.Int32, "start": pl.Int32, "end": pl.Int32},
    **{"entity": pl.Int32, "flags": pl.UInt8},
}


@dataclass
class Entities:
    """The entities by number: title, type and the other forms of the name."""

    titles: list[str]
    types: list[str]
    aliases: list[list[str]]

    def extend(self, titles: Iterable[str], kind: str) -> None:
        """Add entities of one type, without aliases."""
        before = len(self.titles)
        self.titles.extend(titles)
        added = len(self.titles) - before
        self.types.extend([kind] * added)
        self.aliases.extend([] for _ in range(added))


def find_mentions(
    texts: Texts, sentences: pl.DataFrame, settings: ExtractGraphNlp, progress: Progress
) -> tuple[pl.DataFrame, Entities]:
    """Find names, terms and recurring strings, and the entity of each mention.

    Returns
    -------
    mentions
        `document`, `start`, `end`, `entity`, `flags`, one row per mention, sorted by place;
        no two begin at one place.
    entities
        All that may be mentioned; some are not.
    """
    names, terms, vocabularies = _read(texts, sentences, settings, progress)
    lower: Counter[str] = Counter()
    for vocabulary in vocabularies.values():
        vocabulary.add_lower_words(lower)
    codes = set(vocabularies)
    del vocabularies
    named, entities = _named(names, lower, settings)
    del names, lower
    parts = [named]
    if settings.noun_phrases:
        parts.append(_term_mentions(terms, settings, entities))
    found = list(find_uncased(texts, codes, settings.min_frequency_caseless))
    recurring = {name: number for number, name in enumerate(sorted({name for *_, name in found}))}
    rows = [
        (document, start, end, len(entities.titles) + recurring[name], PROSE)
        for document, start, end, name in found
    ]
    parts.append(pl.DataFrame(rows, schema=MENTIONS, orient="row"))
    entities.extend(recurring, "name")
    del found, rows, terms
    mentions = pl.concat(parts).sort("document", "start", "end", "entity")
    # Of those that begin at one place the longest stays.
    document, start = mentions["document"].to_numpy(), mentions["start"].to_numpy()
    is_last = np.append((document[1:] != document[:-1]) | (start[1:] != start[:-1]), True)
    mentions = mentions.filter(is_last[: mentions.height])
    frequency = np.bincount(mentions["entity"].to_numpy(), minlength=len(entities.titles))
    frequent = frequency >= settings.min_frequency
    return mentions.filter(frequent[mentions["entity"].to_numpy()]), entities


def _read(
    texts: Texts, sentences: pl.DataFrame, settings: ExtractGraphNlp, progress: Progress
) -> tuple[Names, Terms, dict[str, Vocabulary]]:
    """Collect candidates for names and terms, and the vocabulary of each language."""
    names, terms = Names(), Terms()
    vocabularies: dict[str, Vocabulary] = {}
    # The sentences of document i are rows bounds[i] to bounds[i + 1].
    counts = np.bincount(sentences["document"].to_numpy()) if len(sentences) else np.zeros(0, int)
    bounds = [0, *np.cumsum(counts).tolist()]
    columns = [sentences[name].to_numpy() for name in ("start_char", "end_char", "quotable")]
    for number, text, code in texts():
        progress.advance()
        if number + 1 >= len(bounds):
            # The last documents are blank.
            continue
        language = language_of(code)
        rows = slice(bounds[number], bounds[number + 1])
        parts = map(Sentence, *(column[rows].tolist() for column in columns))
        words = vocabularies.setdefault(code, Vocabulary(language)).read(text)
        names.add(number, text, words, list(parts), language)
        if settings.noun_phrases:
            terms.add(number, text, words, language)
    return names, terms, vocabularies


def _named(
    found: Names, lower: Counter[str], settings: ExtractGraphNlp
) -> tuple[pl.DataFrame, Entities]:
    """Classify the capitalized spans and merge the variants of a name."""
    if not found.surfaces:
        return pl.DataFrame(schema=MENTIONS), Entities([], [], [])
    classified = classify_names(found, lower)
    mentions = (
        pl.DataFrame(
            {
                "document": np.frombuffer(found.document, np.int32),
                "start": np.frombuffer(found.start, np.int32),
                "surface": np.frombuffer(found.surface, np.int32),
                "flags": np.frombuffer(found.flags, np.uint8),
            }
        )
        .join(classified.parts, on="surface", maintain_order="left")
        .with_columns(start=pl.col("start") + pl.col("offset"))
        .with_columns(end=pl.col("start") + pl.col("length"))
        .drop("surface", "offset", "length")
    )
    counts = np.bincount(mentions["name"].to_numpy(), minlength=len(classified.names))
    variants = (
        _variants(found, classified, mentions, counts)
        if settings.merge_variants
        else Variants(classified.names, np.arange(len(classified.names)), {}, frozenset())
    )
    mentions = _assign(mentions, variants)
    names = variants.names
    aliases: list[list[str]] = [[] for _ in names]
    forms = (
        mentions.group_by("entity", "name")
        .len()
        .sort("entity", "len", "name", descending=[False, True, False])
    )
    for entity, name, _ in forms.iter_rows():
        if names[name] != names[entity]:
            aliases[entity].append(names[name])
    types = _types(variants, classified, counts)
    return mentions.select(list(MENTIONS)), Entities(names, types, aliases)


def _variants(
    found: Names, classified: ClassifiedNames, mentions: pl.DataFrame, counts: np.ndarray
) -> Variants:
    pairs = mentions.select("document", "name").unique().sort("document", "name")
    whole = dict(classified.parts.filter(offset=0).select("surface", "name").iter_rows())
    abbreviations = sorted(
        (whole[short], whole[long])
        for short, long in found.abbreviations
        if short in whole and long in whole
    )
    return merge_variants(classified, counts, list(pairs.iter_rows()), abbreviations)


def _assign(mentions: pl.DataFrame, variants: Variants) -> pl.DataFrame:
    """Add the `entity` of each mention's `name` in its document."""
    entity = variants.entity_of[mentions["name"].to_numpy()].astype(np.int32)
    mentions = mentions.with_columns(entity=pl.Series(entity, dtype=pl.Int32))
    if not variants.in_document:
        return mentions
    local = pl.DataFrame(
        [(*place, entity) for place, entity in variants.in_document.items()],
        schema={"document": pl.Int32, "name": pl.Int32, "local": pl.Int32},
        orient="row",
    )
    return (
        mentions.join(local, on=["document", "name"], how="left", maintain_order="left")
        .with_columns(entity=pl.coalesce("local", "entity"))
        .drop("local")
    )


def _types(variants: Variants, classified: ClassifiedNames, counts: np.ndarray) -> list[str]:
    """Type each entity; it is a place if the forms of its name are mostly used as one."""
    n = len(variants.names)
    entity_of_name = variants.entity_of[: len(classified.names)]
    times = np.maximum(np.bincount(entity_of_name, counts, n), 1)
    shares: Sequence[list[float]] = [
        (np.bincount(entity_of_name, counts * share, n) / times).tolist()
        for share in (classified.place_share, classified.preposition_share)
    ]
    return [
        type_of(name, number in variants.persons, placed, behind_preposition)
        for number, (name, placed, behind_preposition) in enumerate(
            zip(variants.names, *shares, strict=True)
        )
    ]


def _term_mentions(terms: Terms, settings: ExtractGraphNlp, entities: Entities) -> pl.DataFrame:
    """Add the terms to the entities and return their mentions."""
    term_of = terms.accepted(settings.min_frequency_noun_phrase)
    numbers = np.unique(term_of[term_of >= 0])
    if not len(numbers):
        return pl.DataFrame(schema=MENTIONS)
    before = len(entities.titles)
    phrases = list(terms.phrases)
    entities.extend((phrases[number] for number in numbers), "noun phrase")
    entity_of = np.full(len(phrases), -1, np.int32)
    entity_of[numbers] = np.arange(before, before + len(numbers), dtype=np.int32)
    for number in np.flatnonzero((term_of >= 0) & (term_of != np.arange(len(phrases)))):
        entities.aliases[entity_of[term_of[number]]].append(phrases[number])
    term = term_of[np.frombuffer(terms.phrase, np.int32)]
    kept = term >= 0
    return pl.DataFrame(
        {
            "document": np.frombuffer(terms.document, np.int32)[kept],
            "start": np.frombuffer(terms.start, np.int32)[kept],
            "end": np.frombuffer(terms.end, np.int32)[kept],
            "entity": entity_of[term[kept]],
            "flags": np.full(int(kept.sum()), PROSE, np.uint8),
        },
        schema=MENTIONS,
    )
