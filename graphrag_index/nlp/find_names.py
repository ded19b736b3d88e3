"""Mentions of entities in a corpus, and the pairs of entities that are mentioned together.

An entity is a name, a noun phrase, or a recurring string in a script without capitals. Mentions
are a table with one row per mention, in the order of the text; pairs are computed from its columns.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from graphrag_index.nlp.name_classifier import ClassifiedNames, classify_names
from graphrag_index.nlp.name_spans import PROSE, NameCandidates
from graphrag_index.nlp.name_words import find_entity_type
from graphrag_index.nlp.uncased import ReadTexts, find_uncased_names
from graphrag_index.nlp.variants import NamesByDocument, Variants, merge_variants
from graphrag_index.nlp.word_table import TermCandidates, Vocabulary
from graphrag_index.schema.list_columns import distinct_pairs, gather_lists
from graphrag_index.schema.settings.step_sections import ExtractGraphNlp
from graphrag_index.step import Progress, ShardFrames, Shards
from graphrag_index.text.languages import language_of
from graphrag_index.text.sentences import Sentence

# Number of mentions that are linked in one batch. It limits memory; results do not change.
BATCH_MENTIONS = 400_000
# A pair of entities is stored as one number: source * _PAIR_FACTOR + target.
_PAIR_FACTOR = 1 << 32
# Minimum score of a link between two names in one quotable sentence.
_MIN_QUOTE_SCORE = 5.0
# Number of characters of an ideal quotation: sentences of about this length score highest.
IDEAL_QUOTE_CHARS = 160

_NUMBER_COLUMNS = dict.fromkeys(("document", "start", "end", "entity"), pl.Int32)
MENTION_COLUMNS = {**_NUMBER_COLUMNS, "flags": pl.UInt8}


@dataclass
class Entities:
    """Entities as columns. The index of an entity is its number.

    `aliases` has the other names of the entities that have any.
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
    settings: ExtractGraphNlp,
    progress: Progress,
    shards: Shards,
) -> tuple[pl.DataFrame, Entities]:
    """Find the entities of a corpus and their mentions.

    Returns the mentions and the entities. Mentions have the columns `MENTION_COLUMNS`. Their rows
    are sorted by document and offset, and no two begin at the same offset. Some entities have no
    mention.
    """
    names, terms = NameCandidates(), TermCandidates()
    lower: Counter[str] = Counter()
    codes: set[str] = set()
    work = _prepare_shards(texts, sentences)
    collected = shards.map(_collect_candidates, work, settings.noun_phrases, keep_parts=True)
    for (first, languages), found in collected:
        names.add_frames(found, first)
        terms.add_frames(found, first)
        lower.update(dict(found["words"].iter_rows()))
        codes.update(languages)
        progress.advance(len(languages))
    named, entities = _find_names(names, lower, settings)
    del names, lower
    parts = [named]
    if settings.noun_phrases:
        parts.append(_find_term_mentions(terms, settings, entities))
    del terms
    uncased = list(find_uncased_names(texts, codes, settings.min_frequency_caseless))
    recurring = sorted({name for *_, name in uncased})
    entity_of = {name: number for number, name in enumerate(recurring, len(entities.titles))}
    rows = [(*place, entity_of[name], PROSE) for *place, name in uncased]
    parts.append(pl.DataFrame(rows, schema=MENTION_COLUMNS, orient="row"))
    entities.add_entities(recurring, "name")
    del uncased, rows
    mentions = pl.concat(parts).sort("document", "start", "end", "entity")
    # If several mentions begin at the same offset, keep the longest.
    mentions = mentions.filter(pl.struct("document", "start").is_last_distinct())
    return mentions.filter(pl.len().over("entity") >= settings.min_frequency), entities


def _prepare_shards(
    texts: ReadTexts, sentences: pl.DataFrame
) -> Iterator[tuple[tuple[int, list[str]], ShardFrames]]:
    """Yield ((first document, languages), shard) for some documents and their sentences.

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
    columns = shard["sentences"].partition_by("document", as_dict=True, include_key=False)
    for number, text, code in shard["documents"].iter_rows():
        if (number,) not in columns:
            continue
        sentences = [Sentence(*row) for row in columns[(number,)].iter_rows()]
        language = language_of(code)
        words = vocabularies.setdefault(code, Vocabulary(language)).read_words(text)
        names.add_document(number, text, words, sentences, language)
        if with_noun_phrases:
            terms.add_document(number, text, words, language)
    lower = sum((part.count_lower_words() for part in vocabularies.values()), Counter())
    counts = pl.DataFrame(list(lower.items()), {"word": pl.String, "count": pl.Int64}, orient="row")
    return {**names.to_frames(), **terms.to_frames(), "words": counts}


def _find_names(
    found: NameCandidates, lower: Counter[str], settings: ExtractGraphNlp
) -> tuple[pl.DataFrame, Entities]:
    if not found.surfaces:
        return pl.DataFrame(schema=MENTION_COLUMNS), Entities([], [], {})
    classified = classify_names(found, lower)
    mentions = (
        pl.DataFrame(found.get_columns())
        .join(classified.parts, on="surface", maintain_order="left")
        .with_columns(start=pl.col("start") + pl.col("offset"))
        .with_columns(end=pl.col("start") + pl.col("length"))
        .drop("surface", "offset", "length")
    )
    counts = np.bincount(mentions["name"].to_numpy(), minlength=len(classified.names))
    variants = Variants(classified.names, np.arange(len(classified.names)), {}, frozenset())
    if settings.merge_variants:
        variants = _find_variants(found, classified, mentions, counts)
    mentions = _assign_entities(mentions, variants)
    names = variants.names
    aliases: dict[int, list[str]] = defaultdict(list)
    forms = mentions.group_by("entity", "name").len()
    by_frequency = forms.sort("entity", "len", "name", descending=[False, True, False])
    for entity, name, _ in by_frequency.iter_rows():
        if names[name] != names[entity]:
            aliases[entity].append(names[name])
    types = _find_types(variants, classified, counts)
    return mentions.select(list(MENTION_COLUMNS)), Entities(names, types, aliases)


def _find_variants(
    found: NameCandidates, classified: ClassifiedNames, mentions: pl.DataFrame, counts: np.ndarray
) -> Variants:
    document, name = (mentions[column].to_numpy() for column in ("document", "name"))
    by_document = NamesByDocument(*distinct_pairs(document, name))
    # The name at the start of each span; -1 if none.
    name_of = np.full(len(found.names), -1, np.int32)
    first = classified.parts.filter(offset=0)
    name_of[first["surface"].to_numpy()] = first["name"].to_numpy()
    pairs = np.array(list(found.abbreviations), np.int64).reshape(-1, 2)
    named = name_of[pairs][(name_of[pairs] >= 0).all(axis=1)]
    return merge_variants(classified, counts, by_document, sorted(map(tuple, named.tolist())))


def _assign_entities(mentions: pl.DataFrame, variants: Variants) -> pl.DataFrame:
    entity = pl.Series(variants.entity_of[mentions["name"].to_numpy()], dtype=pl.Int32)
    local = pl.DataFrame(
        [(*place, entity) for place, entity in variants.in_document.items()],
        schema={"document": pl.Int32, "name": pl.Int32, "local": pl.Int32},
        orient="row",
    )
    return (
        mentions.with_columns(entity=entity)
        .join(local, on=["document", "name"], how="left", maintain_order="left")
        .with_columns(entity=pl.coalesce("local", "entity"))
        .drop("local")
    )


def _find_types(variants: Variants, classified: ClassifiedNames, counts: np.ndarray) -> list[str]:
    """Return the type of each entity, from the prepositions before all its names."""
    n = len(variants.names)
    entity_of_name = variants.entity_of[: len(classified.names)]
    times = np.maximum(np.bincount(entity_of_name, counts, n), 1)
    shares: Sequence[list[float]] = [
        (np.bincount(entity_of_name, counts * share, n) / times).tolist()
        for share in (classified.place_share, classified.preposition_share)
    ]
    persons = map(variants.persons.__contains__, range(n))
    return list(map(find_entity_type, variants.names, persons, *shares))


def _find_term_mentions(
    terms: TermCandidates, settings: ExtractGraphNlp, entities: Entities
) -> pl.DataFrame:
    """Add the accepted noun phrases to the entities, and return their mentions."""
    term_of = terms.map_to_terms(settings.min_frequency_noun_phrase)
    numbers = np.unique(term_of[term_of >= 0])
    if not len(numbers):
        return pl.DataFrame(schema=MENTION_COLUMNS)
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
    return places.with_columns(
        entity=pl.Series(entity_of[term[kept]]), flags=pl.lit(PROSE, pl.UInt8)
    )


def pair_mentions(mentions: pl.DataFrame, max_links: int, neighbour_weight: float) -> pl.DataFrame:
    """Link mentions of two entities in the same sentence or in neighbouring sentences.

    Each mention is linked with at most `max_links` later mentions. A link inside one sentence
    counts 1; a link between neighbouring sentences counts `neighbour_weight`.

    Returns
    -------
    pairs
        One row per pair of entities, with `source` < `target`, sorted by both. `evidence` is the
        sum of the links. `mention` is the row of the first mention of the best link. `is_quotable`
        is true if a quotable sentence names both entities.
    """
    parts = [
        _merge_links(links, pl.col("value").sum())
        for links in _link_mentions(mentions, max_links, neighbour_weight)
    ]
    pairs = _merge_links(pl.concat(parts), pl.col("evidence").sum())
    return pairs.select(
        (pl.col("pair") // _PAIR_FACTOR).cast(pl.Int32).alias("source"),
        (pl.col("pair") % _PAIR_FACTOR).cast(pl.Int32).alias("target"),
        "evidence",
        pl.col("mention").cast(pl.Int32),
        is_quotable=pl.col("score") >= _MIN_QUOTE_SCORE,
    )


def text_units_of_pairs(
    pairs: pl.DataFrame, mentions: pl.DataFrame, max_links: int, neighbour_weight: float
) -> pl.Series:
    """Return the text units in which the two entities of each pair are linked, sorted.

    The links are computed again instead of stored, to save memory: most pairs were pruned.
    """
    pair = pl.col("source").cast(pl.Int64) * _PAIR_FACTOR + pl.col("target")
    rows = pairs.select(pair=pair).with_row_index("row")
    links = _link_mentions(mentions, max_links, neighbour_weight)
    found = pl.concat(part.join(rows, on="pair").select("row", "mention") for part in links)
    columns = found["row"], mentions["text_unit"].gather(found["mention"])
    owners, values = distinct_pairs(*(column.cast(pl.Int64).to_numpy() for column in columns))
    return gather_lists(owners, pl.Series(values), len(pairs))


def _link_mentions(
    mentions: pl.DataFrame, max_links: int, neighbour_weight: float
) -> Iterator[pl.DataFrame]:
    """Yield the links between neighbouring mentions in batches of rows.

    `pair` is the number of the pair, `value` is the weight of the link, `score` rates the link as
    evidence, and `mention` is the row of the first mention.
    """
    names = ("document", "sentence", "start", "quotable", "sentence_length")
    document, sentence, start, quotable, length = (mentions[name].to_numpy() for name in names)
    entity = mentions["entity"].to_numpy().astype(np.int64)
    for begin in range(0, max(len(entity), 1), BATCH_MENTIONS):
        rows = np.arange(begin, min(begin + BATCH_MENTIONS, len(entity)))
        blocks = []
        for distance in range(1, max_links + 1):
            first = rows[rows + distance < len(entity)]
            second = first + distance
            apart = sentence[second] - sentence[first]
            near = (document[first] == document[second]) & (apart <= 1)
            # Drop a mention if the other one is too far away: later mentions are even farther.
            rows = first[near]
            linked = near & (entity[first] != entity[second])
            if neighbour_weight == 0:
                linked &= apart == 0
            a, b = first[linked], second[linked]
            same = apart[linked] == 0
            # The best evidence is a quotable sentence of a good length in which both names are
            # close together; even a long sentence is better than any heading or list.
            gap = np.minimum(start[b] - start[a], 400).astype(np.float32)
            off = np.minimum(np.abs(length[a] - IDEAL_QUOTE_CHARS), 400).astype(np.float32)
            score = 4.0 * same + 2 * _MIN_QUOTE_SCORE * (quotable[a] & same) - gap / 400 - off / 400
            source, target = np.minimum(entity[a], entity[b]), np.maximum(entity[a], entity[b])
            columns = {
                "pair": source * _PAIR_FACTOR + target,
                "value": np.where(same, 1.0, neighbour_weight),
                "score": score.astype(np.float64),
                "mention": a,
            }
            blocks.append(pl.DataFrame(columns))
            if not len(rows):
                break
        yield pl.concat(blocks)


def _merge_links(links: pl.DataFrame, evidence: pl.Expr) -> pl.DataFrame:
    """Sum the evidence of each pair, and keep its link with the highest score or the first."""
    return (
        links.sort("pair", "score", "mention", descending=[False, True, False])
        .group_by("pair", maintain_order=True)
        .agg(evidence=evidence, score=pl.col("score").first(), mention=pl.col("mention").first())
    )


def weight_pairs(pairs: pl.DataFrame, n_mentions: np.ndarray) -> pl.DataFrame:
    """Add the column `weight` to pairs: the evidence times the strength of the association.

    The strength is log2(1 + evidence / expected evidence), divided by the largest possible value,
    so it is 0–1. For strong associations it is close to pointwise mutual information, never
    negative.
    """
    total = float(n_mentions.sum())
    source, target = (n_mentions[pairs[end].to_numpy()] for end in ("source", "target"))
    expected = source.astype(np.float64) * target / max(total, 1.0)
    evidence = pairs["evidence"].to_numpy()
    lift = np.log2(1 + evidence / expected) / np.log2(2 + total)
    return pairs.with_columns(weight=pl.Series(evidence * lift, dtype=pl.Float64))
