"""Extract entities and relationships without a model, by rules and corpus statistics."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from graphrag_index.core.languages import language_of
from graphrag_index.core.lists import gather_lists
from graphrag_index.core.progress import Progress
from graphrag_index.core.sentences import Sentence
from graphrag_index.core.settings import ExtractGraphNlp
from graphrag_index.core.tables import TABLES
from graphrag_index.linguistics.association import associate, pair_mentions
from graphrag_index.linguistics.caseless import find_caseless
from graphrag_index.linguistics.judging import judge
from graphrag_index.linguistics.kinds import type_of
from graphrag_index.linguistics.names import DEFINED, INITIAL, PROSE, Names
from graphrag_index.linguistics.terms import Terms
from graphrag_index.linguistics.variants import merge_variants
from graphrag_index.step import step

# Documents read at once: bounds memory, not results.
BATCH_DOCUMENTS = 512
# Sentences that describe an entity.
MAX_DESCRIPTION_SENTENCES = 2


@step(writes=["raw_entities", "raw_relationships", "raw_mentions"])
def extract_graph_nlp(
    documents: pl.LazyFrame,
    base_text_units: pl.LazyFrame,
    sentences: pl.DataFrame,
    *,
    settings: ExtractGraphNlp,
    progress: Progress,
) -> Mapping[str, pl.DataFrame]:
    """Find names and terms, merge their variants, and relate those that stand together.

    Names are capitalized spans that the corpus uses as names; scripts without
    capitals fall back to what recurs (see `linguistics`). Two entities are related
    if they are mentioned in one sentence or in neighbouring ones; the weight is
    their association, the description the sentence that says it best.

    Returns
    -------
    raw_entities
        One row per entity, in order of first mention. `type` is person, organization,
        geo, event, acronym, noun phrase, or name where the words do not tell.
    raw_relationships
        One row per pair of entities, in order of first evidence.
    raw_mentions
        One row per mention and text unit that holds it.
    """
    corpus = _read(documents, sentences, settings, progress)
    mentions, entities = _resolve(corpus, settings)
    mentions = _place(mentions, _text_unit_spans(base_text_units, corpus.ids))
    mentions = _with_sentences(mentions, corpus.sentences)
    frequency = np.bincount(mentions["entity"].to_numpy(), minlength=len(entities.titles))
    pairs = pair_mentions(mentions, settings.max_links, settings.neighbour_weight)
    pairs = associate(pairs, frequency).filter(
        pl.col("evidence") >= settings.min_evidence, pl.col("weight") >= settings.min_weight
    )
    sentence = mentions["sentence"]
    pairs = pairs.sort("mention", "source", "target")
    pairs = pairs.with_columns(sentence=sentence[pairs["mention"]])
    best = _best_sentences(mentions)
    best = best.with_columns(sentence=sentence[best["mention"]])
    texts = _sentence_texts(documents, corpus, pl.concat([pairs["sentence"], best["sentence"]]))
    return {
        "raw_entities": _entity_rows(entities, best, texts),
        "raw_relationships": _relationship_rows(pairs, texts),
        "raw_mentions": _mention_rows(mentions),
    }


@dataclass
class Corpus:
    """What one reading of all documents leaves in memory: columns of offsets, no text."""

    ids: list[str]
    sentences: pl.DataFrame
    names: Names
    terms: Terms
    # Mentions in scripts without capitals: document, start, end, name.
    caseless: list[tuple[int, int, int, str]]


@dataclass
class Entities:
    """The entities by number: title, type and the other forms of the name."""

    titles: list[str]
    types: list[str]
    aliases: list[list[str]]


def _read(
    documents: pl.LazyFrame, sentences: pl.DataFrame, settings: ExtractGraphNlp, progress: Progress
) -> Corpus:
    """Collect everything that may be a name or term."""
    names, terms = Names(), Terms()
    codes: set[str] = set()
    ids = documents.select("id").collect()["id"].to_list()
    # The sentences of document i are rows bounds[i] to bounds[i + 1].
    bounds = np.searchsorted(sentences["document"].to_numpy(), np.arange(len(ids) + 1)).tolist()
    columns = [sentences[name].to_numpy() for name in ("start_char", "end_char", "quotable")]
    progress.start(len(ids), "documents")
    for number, text, code in _texts(documents):
        codes.add(code)
        language = language_of(code)
        parts = (column[bounds[number] : bounds[number + 1]].tolist() for column in columns)
        words = text.replace("\n", " ").split(" ")
        names.add(number, text, words, list(map(Sentence, *parts)), language)
        if settings.noun_phrases:
            terms.add(number, words, language)
        progress.advance()
    found = find_caseless(lambda: _texts(documents), codes, settings.min_frequency_caseless)
    return Corpus(ids, sentences, names, terms, list(found))


def _texts(documents: pl.LazyFrame) -> Iterator[tuple[int, str, str]]:
    """Stream number, text and language of each document."""
    columns = documents.select("human_readable_id", "text", "language")
    offset = 0
    while True:
        batch = columns.slice(offset, BATCH_DOCUMENTS).collect()
        yield from batch.iter_rows()
        if batch.height < BATCH_DOCUMENTS:
            return
        offset += BATCH_DOCUMENTS


def _resolve(corpus: Corpus, settings: ExtractGraphNlp) -> tuple[pl.DataFrame, Entities]:
    """Decide what the spans found name.

    Returns the mentions (`document`, `start`, `end`, `entity`, `flags`), sorted by place,
    and the entities, numbered in order of first mention.
    """
    named, names = _named(corpus, settings)
    terms = _term_mentions(corpus.terms, settings, offset=len(names.titles))
    caseless = _caseless_mentions(corpus, offset=len(names.titles) + len(corpus.terms.phrases))
    unique = sorted({name for *_, name in corpus.caseless})
    titles = [*names.titles, *corpus.terms.phrases, *unique]
    types = [
        *names.types,
        *["noun phrase"] * len(corpus.terms.phrases),
        *["name"] * len(unique),
    ]
    aliases = [*names.aliases, *[[] for _ in range(len(titles) - len(names.aliases))]]
    mentions = pl.concat([named, terms, caseless]).sort("document", "start", "end", "entity")
    # Of overlapping mentions the longer one stays: a term inside of a name is no mention.
    mentions = mentions.unique(subset=["document", "start"], keep="last", maintain_order=True)
    frequency = np.bincount(mentions["entity"].to_numpy(), minlength=len(titles))
    mentions = mentions.filter((frequency >= settings.min_frequency)[mentions["entity"].to_numpy()])
    first = mentions["entity"].unique(maintain_order=True)
    new_number = np.full(len(titles), -1, np.int32)
    new_number[first.to_numpy()] = np.arange(len(first), dtype=np.int32)
    mentions = mentions.with_columns(
        entity=pl.Series(new_number[mentions["entity"].to_numpy()], dtype=pl.Int32)
    )
    order = first.to_list()
    return mentions, Entities(
        [titles[n] for n in order], [types[n] for n in order], [aliases[n] for n in order]
    )


_MENTIONS = {
    **{"document": pl.Int32, "start": pl.Int32, "end": pl.Int32},
    **{"entity": pl.Int32, "flags": pl.Int8},
}


def _named(corpus: Corpus, settings: ExtractGraphNlp) -> tuple[pl.DataFrame, Entities]:
    """Judge the capitalized spans and merge the variants of a name."""
    found = corpus.names
    if not found.surfaces:
        return pl.DataFrame(schema=_MENTIONS), Entities([], [], [])
    verdict = judge(found)
    mentions = (
        pl.DataFrame(
            {
                "document": np.frombuffer(found.document, np.int32),
                "start": np.frombuffer(found.start, np.int32),
                "surface": np.frombuffer(found.surface, np.int32),
                "flags": np.frombuffer(found.flags, np.int8),
            }
        )
        .join(verdict.parts, on="surface", maintain_order="left")
        .with_columns(start=pl.col("start") + pl.col("offset"))
        .with_columns(end=pl.col("start") + pl.col("length"))
        .drop("surface", "offset", "length")
    )
    counts = np.bincount(mentions["name"].to_numpy(), minlength=len(verdict.names))
    names, entity_of = verdict.names, np.arange(len(verdict.names))
    persons: frozenset[int] = frozenset()
    in_document: dict[tuple[int, int], int] = {}
    if settings.merge_variants:
        pairs = mentions.select("document", "name").unique().sort("document", "name")
        whole = dict(verdict.parts.filter(offset=0).select("surface", "name").iter_rows())
        abbreviations = sorted(
            (whole[short], whole[long])
            for short, long in found.abbreviations
            if short in whole and long in whole
        )
        variants = merge_variants(verdict, counts, list(pairs.iter_rows()), abbreviations)
        names, entity_of = variants.names, variants.entity_of
        persons, in_document = variants.persons, variants.in_document
    entity = entity_of[mentions["name"].to_numpy()].astype(np.int32)
    mentions = mentions.with_columns(entity=pl.Series(entity, dtype=pl.Int32))
    if in_document:
        local = pl.DataFrame(
            [(document, name, entity) for (document, name), entity in in_document.items()],
            schema={"document": pl.Int32, "name": pl.Int32, "local": pl.Int32},
            orient="row",
        )
        mentions = (
            mentions.join(local, on=["document", "name"], how="left", maintain_order="left")
            .with_columns(entity=pl.coalesce("local", "entity"))
            .drop("local")
        )
    aliases: list[list[str]] = [[] for _ in names]
    forms = (
        mentions.group_by("entity", "name")
        .len()
        .sort("entity", "len", "name", descending=[False, True, False])
    )
    for entity_number, name_number, _ in forms.iter_rows():
        if names[name_number] != names[entity_number]:
            aliases[entity_number].append(names[name_number])
    # An entity is a place if all the forms of its name are used as one.
    entity_of_name = entity_of[: len(verdict.names)]
    placed = np.bincount(entity_of_name, counts * verdict.place_share, len(names))
    share = placed / np.maximum(np.bincount(entity_of_name, counts, len(names)), 1)
    types = [
        type_of(text, number in persons, float(share[number])) for number, text in enumerate(names)
    ]
    return mentions.select(list(_MENTIONS)), Entities(names, types, aliases)


def _term_mentions(terms: Terms, settings: ExtractGraphNlp, offset: int) -> pl.DataFrame:
    accepted = terms.accepted(settings.min_frequency_noun_phrase)
    if not accepted.any():
        return pl.DataFrame(schema=_MENTIONS)
    phrase = np.frombuffer(terms.phrase, np.int32)
    kept = accepted[phrase]
    return pl.DataFrame(
        {
            "document": np.frombuffer(terms.document, np.int32)[kept],
            "start": np.frombuffer(terms.start, np.int32)[kept],
            "end": np.frombuffer(terms.end, np.int32)[kept],
            "entity": phrase[kept] + np.int32(offset),
            "flags": np.full(int(kept.sum()), PROSE, np.int8),
        },
        schema=_MENTIONS,
    )


def _caseless_mentions(corpus: Corpus, offset: int) -> pl.DataFrame:
    unique = {name: n for n, name in enumerate(sorted({name for *_, name in corpus.caseless}))}
    rows = [
        (document, start, end, offset + unique[name], PROSE)
        for document, start, end, name in corpus.caseless
    ]
    return pl.DataFrame(rows, schema=_MENTIONS, orient="row")


def _text_unit_spans(base_text_units: pl.LazyFrame, ids: list[str]) -> pl.DataFrame:
    """Return number, document number, start and end of each text unit, sorted by place."""
    numbers = pl.DataFrame({"document_id": ids, "document": range(len(ids))}).lazy()
    return (
        base_text_units.select("human_readable_id", "document_id", "start_char", "end_char")
        .join(numbers, on="document_id")
        .select("human_readable_id", "document", "start_char", "end_char")
        .sort("document", "start_char")
        .collect()
    )


def _place(mentions: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """Say which text units hold each mention.

    Adds `text_unit`, the last that holds its start, and `earlier`, the number of text
    units before that one which hold the mention too, because they overlap with it.
    """
    # One sortable number for a place in the corpus: the document, then the character.
    width = np.int64(1 << 40)
    starts = units["document"].to_numpy() * width + units["start_char"].to_numpy()
    begin = mentions["document"].to_numpy() * width + mentions["start"].to_numpy()
    row = np.searchsorted(starts, begin, side="right") - 1
    document, end = units["document"].to_numpy(), units["end_char"].to_numpy()
    earlier = np.zeros(len(row), np.int32)
    for back in range(1, 4):
        before = np.maximum(row - back, 0)
        holds = (row >= back) & (document[before] == mentions["document"].to_numpy())
        holds &= end[before] >= mentions["end"].to_numpy()
        earlier += holds.astype(np.int32)
    unit = units["human_readable_id"].to_numpy()[row].astype(np.int32)
    return mentions.with_columns(text_unit=pl.Series(unit), earlier=pl.Series(earlier))


def _with_sentences(mentions: pl.DataFrame, sentences: pl.DataFrame) -> pl.DataFrame:
    """Add each mention's `sentence` (its row), and whether that is `quotable`, and its length."""
    width = np.int64(1 << 40)
    starts = sentences["document"].to_numpy() * width + sentences["start_char"].to_numpy()
    begin = mentions["document"].to_numpy() * width + mentions["start"].to_numpy()
    row = np.maximum(np.searchsorted(starts, begin, side="right") - 1, 0)
    length = (sentences["end_char"] - sentences["start_char"]).to_numpy()
    return mentions.with_columns(
        sentence=pl.Series(row, dtype=pl.Int64),
        quotable=pl.Series(sentences["quotable"].to_numpy()[row]),
        sentence_length=pl.Series(length[row], dtype=pl.Int32),
        sentence_start=pl.Series(sentences["start_char"].to_numpy()[row]),
    )


def _best_sentences(mentions: pl.DataFrame) -> pl.DataFrame:
    """Choose the sentences that say best what an entity is.

    A sentence that begins with the name, defines it ("... was a ..."), stands early
    and is of a good length comes first. Returns `entity` and `mention` (its row), in
    order of entity and place; entities that are in no quotable sentence are left out.
    """
    flags = pl.col("flags")
    score = (
        3.0 * (flags & DEFINED).ne(0)
        + 1.5 * (flags & INITIAL).ne(0)
        - (pl.col("sentence_length") - 150).abs().clip(0, 300) / 200
        - (pl.col("start") - pl.col("sentence_start")).clip(0, 200) / 200
        - pl.col("start").clip(0, 20_000) / 20_000
    )
    return (
        mentions.select(
            "entity", "sentence", "quotable", mention=pl.int_range(pl.len()), score=score
        )
        .filter("quotable")
        .sort("entity", "score", "mention", descending=[False, True, False])
        .unique(subset=["entity", "sentence"], keep="first", maintain_order=True)
        .group_by("entity", maintain_order=True)
        .head(MAX_DESCRIPTION_SENTENCES)
        .sort("entity", "mention")
        .select("entity", "mention")
    )


def _sentence_texts(
    documents: pl.LazyFrame, corpus: Corpus, rows: pl.Series
) -> dict[int, tuple[str, str, int, int]]:
    """Fetch sentences by their row: text, id of the document, start and end."""
    wanted = corpus.sentences[rows.unique().sort()].with_columns(row=rows.unique().sort())
    by_document = wanted.partition_by("document", as_dict=True, maintain_order=True)
    texts = {}
    for number, text, _ in _texts(documents) if by_document else ():
        part = by_document.get((number,))
        if part is None:
            continue
        for row, start, end in part.select("row", "start_char", "end_char").iter_rows():
            words = " ".join(text[start:end].split())
            texts[row] = (words, corpus.ids[number], start, end)
    return texts


def _entity_rows(
    entities: Entities, best: pl.DataFrame, texts: Mapping[int, tuple[str, str, int, int]]
) -> pl.DataFrame:
    descriptions: list[list[str]] = [[] for _ in entities.titles]
    for entity, row in best.select("entity", "sentence").iter_rows():
        descriptions[entity].append(texts[row][0])
    owners = best["entity"].to_numpy().astype(np.int64)
    evidence = _evidence(texts[row] for row in best["sentence"])
    return pl.DataFrame(
        {
            "human_readable_id": range(len(entities.titles)),
            "title": entities.titles,
            "type": entities.types,
            "description": [" ".join(sentences) for sentences in descriptions],
            "aliases": entities.aliases,
            "evidence": gather_lists(owners, evidence, len(entities.titles)),
        },
        schema=TABLES["raw_entities"].schema,
    )


def _relationship_rows(
    pairs: pl.DataFrame, texts: Mapping[int, tuple[str, str, int, int]]
) -> pl.DataFrame:
    found = [texts[row] for row in pairs["sentence"]]
    evidence = gather_lists(np.arange(len(found)), _evidence(found), len(found))
    return pairs.select(
        pl.col("source").cast(pl.Int64),
        pl.col("target").cast(pl.Int64),
        pl.Series("description", [text for text, *_ in found], dtype=pl.String),
        "weight",
        pl.col("text_units").cast(pl.List(pl.Int64)),
        evidence.alias("evidence"),
    )


def _evidence(sentences: Iterable[tuple[str, str, int, int]]) -> pl.Series:
    """Return the places of sentences, one struct each."""
    rows = [place for _, *place in sentences]
    schema = {"document_id": pl.String, "start_char": pl.Int64, "end_char": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").to_struct()


def _mention_rows(mentions: pl.DataFrame) -> pl.DataFrame:
    """Repeat a mention for every text unit that holds it."""
    return (
        mentions.select(
            "entity",
            text_unit=pl.int_ranges(
                pl.col("text_unit") - pl.col("earlier"), pl.col("text_unit") + 1, dtype=pl.Int32
            ),
            start_char="start",
            end_char="end",
        )
        .explode("text_unit")
        .sort("text_unit", "start_char", "end_char", "entity")
    )
