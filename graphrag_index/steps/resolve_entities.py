"""Entity resolution: merging of entities that are one thing with several names."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl

from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.local.local_models import EmbeddingModel
from graphrag_index.llm.prompts import Prompts
from graphrag_index.resolution.blocking import (
    find_candidate_pairs,
    find_similar_pairs,
    parse_names,
)
from graphrag_index.resolution.candidates import (
    ExtractedEntities,
    Node,
    Nodes,
    find_unknown_names,
    forbidden_pairs,
)
from graphrag_index.resolution.decisions_file import Decisions, PartConditions, read_decisions
from graphrag_index.resolution.entity_merging import Resolution, TableRewriter, group_nodes
from graphrag_index.resolution.name_similarity import (
    Name,
    can_be_one_person,
    mean_different_things,
)
from graphrag_index.resolution.scoring import (
    Pair,
    ask_model,
    compare_pairs,
    score_pairs,
)
from graphrag_index.schema.settings.step_sections import ResolveEntities
from graphrag_index.step import Progress, Project, Shards, step
from graphrag_index.storage.memo import regroup_batches
from graphrag_nlp.text.normalize import title_key

logger = logging.getLogger(__name__)

# Maximum number of unknown names in warnings. A decisions file may have many names of deleted
# documents.
MAX_WARNINGS = 10

# Tables that are not rewritten if nothing is merged.
_REWRITTEN_TABLES = (
    "extracted_entities",
    "extracted_relationships",
    "extracted_mentions",
    "given_ids",
)


def _select_model_services(settings: ResolveEntities) -> list[str]:
    chat = ["chat_model"] * (settings.model is not None)
    return chat + ["embedding_model"] * (settings.max_embedded > 0)


def _check_decisions_file(settings: ResolveEntities, project: Project) -> None:
    read_decisions(project.root / settings.file)


@step(
    writes=[*_REWRITTEN_TABLES, "entity_resolutions", "doubtful_pairs"],
    fingerprint=lambda settings, root: read_decisions(root / settings.file).fingerprint(),
    check=_check_decisions_file,
    asks=_select_model_services,
    code_version=8,
)
def resolve_entities(
    extracted_entities: pl.LazyFrame,
    extracted_relationships: pl.LazyFrame,
    extracted_mentions: pl.LazyFrame,
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
    given_ids: pl.LazyFrame | None = None,
    *,
    settings: ResolveEntities,
    root: Path,
    chat_model: ChatModel | None,
    embedding_model: EmbeddingModel | None,
    prompts: Prompts,
    progress: Progress,
    shards: Shards,
) -> Iterator[Mapping[str, pl.DataFrame | None]]:
    """Merge entities that are one thing, by decisions of a person, by rules and by a model.

    An entity joins a group only if it matches the most mentioned entity of the group directly.

    Yields
    ------
    extracted_entities, extracted_relationships, extracted_mentions, given_ids
        The tables after resolution, in batches, in the same order. None if nothing was merged.
    entity_resolutions
        One row per name that was merged, renamed or split, with the source and the reason of the
        decision.
    doubtful_pairs
        One row per pair of entities that may be one thing but was not merged, best first.
    """
    decisions = read_decisions(root / settings.file)
    found = ExtractedEntities(
        extracted_entities, extracted_mentions, base_text_units, documents, decisions
    )
    table = Nodes(found, decisions)
    _warn_of_unused_decisions(decisions, found, table.places, settings.file)
    never = forbidden_pairs(decisions, table.places)
    described = partial(_read_descriptions, extracted_entities, found, table)
    nodes = table.load_decided()
    scored: list[Pair] = []
    if settings.merge:
        candidates = find_candidate_pairs(parse_names(table.rows["title"], shards), shards)
        pairs = _add_similar_pairs(
            candidates.pairs, table.rows["title"], embedding_model, settings.max_embedded
        )
        similar = compare_pairs(pairs, table.rows, shards)
        nodes = table.load({*nodes, *chain.from_iterable(similar)})
        scored = [
            pair
            for pair in score_pairs(
                nodes,
                similar,
                found.find_documents(nodes),
                table.find_neighbours(nodes, extracted_relationships),
                candidates.explained,
                described(_find_acronyms(pairs, table.rows["title"])),
            )
            if pair.score >= settings.doubt_above
            and frozenset((pair.left, pair.right)) not in never
        ]
    sure = [pair for pair in scored if pair.score >= settings.merge_above]
    answers: dict[Pair, bool | None] = {}
    if chat_model is not None:
        asked = _select_doubtful(scored, nodes, settings)
        texts = described({number for pair in asked for number in (pair.left, pair.right)})
        answers = ask_model(asked, nodes, texts, chat_model, prompts, progress)
        sure += [pair for pair in asked if answers[pair]]
    # Put nodes first whose title a person has decided: a group keeps the title of its first node.
    order = sorted(nodes, key=lambda at: not nodes[at].decided)
    joined = group_nodes(order, sure, never, partial(_must_stay_apart, nodes))
    resolution = Resolution(found, nodes, joined, scored, answers)
    yield resolution.make_resolution_tables()
    extracted = extracted_entities, extracted_relationships, extracted_mentions
    yield from _rewrite_tables(TableRewriter(resolution, base_text_units), *extracted, given_ids)


def _rewrite_tables(
    rewriter: TableRewriter,
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
    mentions: pl.LazyFrame,
    given_ids: pl.LazyFrame | None,
) -> Iterator[Mapping[str, pl.DataFrame | None]]:
    """Yield the tables after resolution, in batches; None if nothing was merged."""
    if rewriter.changes_nothing:
        yield dict.fromkeys(_REWRITTEN_TABLES if given_ids is not None else _REWRITTEN_TABLES[:-1])
        return
    tables = {
        "extracted_entities": rewriter.rewrite_entities(entities),
        "extracted_relationships": rewriter.rewrite_relationships(relationships),
        "extracted_mentions": rewriter.rewrite_mentions(mentions),
    }
    if given_ids is not None:
        tables["given_ids"] = rewriter.rewrite_given_ids(given_ids)
    for name, parts in tables.items():
        for batch in regroup_batches(parts):
            yield {name: batch}


def _add_similar_pairs(
    pairs: pl.DataFrame, titles: pl.Series, model: EmbeddingModel | None, max_embedded: int
) -> pl.DataFrame:
    """Search by vectors for names without a candidate pair; add the `similarity` of such pairs."""
    near = pl.DataFrame(schema={"left": pl.Int64, "right": pl.Int64, "similarity": pl.Float64})
    if model is not None:
        taken = pl.concat([pairs["left"], pairs["right"]]).to_numpy()
        left = np.setdiff1d(np.arange(len(titles)), taken)[:max_embedded]
        if len(left) > 1:
            near = find_similar_pairs(model.embed(titles[left].to_list()), left)
    return pairs.join(near, ["left", "right"], "full", coalesce=True).sort("left", "right")


def _find_acronyms(pairs: pl.DataFrame, titles: pl.Series) -> set[int]:
    """Return the numbers of acronyms, and of the names that an acronym may abbreviate."""
    shortened = pairs.filter(pl.col("share_first_letters").fill_null(False))
    ends = shortened.select("left", "right").rows()
    acronyms = {n for n in set(chain.from_iterable(ends)) if Name(titles[n]).is_acronym}
    return set(chain.from_iterable(pair for pair in ends if not acronyms.isdisjoint(pair)))


def _select_doubtful(
    scored: Iterable[Pair], nodes: Mapping[int, Node], settings: ResolveEntities
) -> list[Pair]:
    """Return the pairs to ask a model about, the best first."""
    doubtful = [pair for pair in scored if pair.score < settings.merge_above]
    doubtful.sort(key=lambda pair: (-pair.score, nodes[pair.left].key, nodes[pair.right].key))
    return doubtful[: settings.max_questions]


def _must_stay_apart(nodes: Mapping[int, Node], one: int, other: int) -> bool:
    if nodes[one].decided and nodes[other].decided:
        return True  # a person has decided two different titles
    a, b = nodes[one].name, nodes[other].name
    return mean_different_things(a, b) or not can_be_one_person(a, b)


def _read_descriptions(
    entities: pl.LazyFrame, found: ExtractedEntities, nodes: Nodes, wanted: set[int]
) -> dict[int, str]:
    """Return the description and the aliases of each wanted node, as one text per node."""
    loaded = nodes.load(wanted)
    first = {found.find_origin(node.numbers[0]): at for at, node in loaded.items()}
    if not first:
        return {}
    number = pl.col("human_readable_id")
    rows = entities.filter(number.is_in(list(first)))
    # Join both columns: a model fills `descriptions`, and extraction by rules `description`.
    said = pl.concat_str(pl.col("descriptions").list.join(" "), "description")
    forms = pl.col("aliases").list.join("; ")
    texts = rows.select(number, said.alias("said"), forms.alias("forms")).collect()
    return {first[row[0]]: f"{row[1]}\n{row[2]}".strip() for row in texts.iter_rows()}


def _warn_of_unused_decisions(
    decisions: Decisions, found: ExtractedEntities, places: Mapping[str, int], file: str
) -> None:
    """Warn about decisions with unknown names, and parts of split entities without text units."""
    titles = found.find_known_keys(decisions.named)
    unknown = find_unknown_names(decisions, {*places, *titles})
    for name, section in unknown[:MAX_WARNINGS]:
        logger.warning("%s: %s names %r, which no document has.", file, section, name)
    if len(unknown) > MAX_WARNINGS:
        logger.warning("%s: %d more names that no document has.", file, len(unknown) - MAX_WARNINGS)
    held = {title_key(part.title) for part in found.parts}
    parts = (part for key, parts in decisions.split.items() if key in titles for part in parts)
    # Warn about parts without text units, because their pattern may be wrong. A part without a
    # pattern gets all other text units, so it may be empty.
    empty = [
        p.title for p in parts if title_key(p.title) not in held and p != PartConditions(p.title)
    ]
    for title in empty[:MAX_WARNINGS]:
        logger.warning("%s: the conditions of the split entry %r match no text unit.", file, title)
