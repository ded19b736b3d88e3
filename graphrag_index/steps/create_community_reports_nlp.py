"""Community reports from sentences that mention the members, written without a model."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.reports.extractive import Evidence, write_findings
from graphrag_index.reports.report import Report, join_titles, make_report_rows, rank_communities
from graphrag_index.schema.list_columns import (
    Integers,
    RowGroups,
    distinct_pairs,
    find_rows,
    gather_lists,
)
from graphrag_index.schema.settings.step_sections import CreateCommunityReportsNlp
from graphrag_index.step import Progress, ShardFrames, Shards, step
from graphrag_index.steps.extract_graph_nlp import find_rows_at
from graphrag_index.text.sentences import Quotations, are_quotable

# Maximum number of candidate sentences for one report.
MAX_CANDIDATES_PER_REPORT = 24
# Minimum number of entities in the title of a report. A title that exists already gets more.
MIN_ENTITIES_IN_TITLE = 3
# Number of reports in a shard. The number limits memory and does not change the results.
SHARD_REPORTS = 1_000
# Maximum number of characters of a sentence with full score. Double the length halves the score.
MAX_FULL_SCORE_LENGTH = 200
# Maximum number of members that increase the score of a sentence. A sentence that mentions more
# members is probably a list.
MAX_SCORED_MEMBERS = 4

Floats = npt.NDArray[np.float64]


@step(writes=["community_reports"])
def create_community_reports_nlp(
    communities: pl.LazyFrame,
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
    mentions: pl.LazyFrame,
    sentences: pl.DataFrame,
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
    *,
    settings: CreateCommunityReportsNlp,
    progress: Progress,
    shards: Shards,
) -> Iterator[pl.DataFrame]:
    """Write a report on each community from sentences about its members, without a model.

    The score of a sentence grows with the number and the degree of the members in it. The
    summary is about the main members. Each finding is about one main member and the members that
    are mentioned with it. The rank (0 to 10) compares the size of a community with the sizes of
    other communities of its level. Reports are ordered by level, deepest first, then `community`.
    """
    named = entities.select("id", "title", "type", "degree").collect()
    named = named.with_columns(weight=np.log2(2 + named["degree"].to_numpy()))
    # One row per member: `level`, `community` and `entity` (a row number), sorted.
    ids = communities.select("level", "community", id="entity_ids").explode("id").collect()
    entity = pl.Series("entity", find_rows(ids["id"], named["id"]))
    members = ids.select("level", "community", entity).filter(entity >= 0)
    members = members.sort("community", "entity")
    rows = rank_communities(communities)
    candidates = _SentenceCandidates(
        members, named["weight"].to_numpy(), mentions, sentences, base_text_units, documents
    )
    work = _prepare_shards(
        rows, members, named, candidates, _RelationshipLookup(relationships, named["id"])
    )
    progress.start(rows.height, "reports")
    limits = (settings.max_findings, settings.max_sentences)
    for n_reports, written in shards.map(_write_reports, work, *limits):
        yield written["community_reports"]
        progress.advance(n_reports)


def _prepare_shards(
    rows: pl.DataFrame,
    members: pl.DataFrame,
    named: pl.DataFrame,
    candidates: "_SentenceCandidates",
    links: "_RelationshipLookup",
) -> Iterator[tuple[int, ShardFrames]]:
    """Yield (number of reports, shard): communities with their titles and candidate sentences."""
    members_of = RowGroups(
        members["community"].to_numpy(), members["entity"].to_numpy(), candidates.n_numbers
    )
    # Order of the members in a title: names before noun phrases, then by descending degree.
    order = np.lexsort((-named["weight"].to_numpy(), (named["type"] == "noun phrase").to_numpy()))
    rank = np.argsort(order)
    titles, used = named["title"], set[str]()
    for part in rows.iter_slices(SHARD_REPORTS):
        main = []
        for community in part["community"]:
            numbers = members_of[community]
            main.append(_choose_title_members(numbers[np.argsort(rank[numbers])], titles, used))
        sentences = candidates.find_evidence(part["community"].to_numpy(), members_of, links)
        shown = pl.concat([sentences["entities"].explode(), pl.Series(main).explode()])
        shown = shown.drop_nulls().unique().sort()
        yield (
            part.height,
            {
                "communities": part.with_columns(main=pl.Series(main, dtype=pl.List(pl.Int64))),
                "sentences": sentences,
                "entities": named[shown].select(entity=shown, title="title", weight="weight"),
            },
        )


def _choose_title_members(ranked: Integers, titles: pl.Series, used: set[str]) -> list[int]:
    """Choose members for the title of a report: more than three if the short title is taken.

    A community and its largest sub-community often have the same main members. The title is
    added to `used`.
    """
    n = MIN_ENTITIES_IN_TITLE
    while (title := join_titles(titles[ranked[:n]].to_list())) in used and n < len(ranked):
        n += 1
    used.add(title)
    return [int(entity) for entity in ranked[:n]]


def _write_reports(shard: ShardFrames, max_findings: int, max_sentences: int) -> ShardFrames:
    """Write the reports of a shard of communities."""
    entities, communities = shard["entities"], shard["communities"]
    titles, weight = (
        dict(entities.select("entity", name).iter_rows()) for name in ("title", "weight")
    )
    columns = ("text", "entities", "relationships", "source", "score")
    rows = list(shard["sentences"].select(columns).iter_rows())
    bounds = np.searchsorted(
        shard["sentences"]["at"].to_numpy(), np.arange(communities.height + 1)
    ).tolist()
    reports = []
    for row, span in zip(communities.iter_rows(named=True), pairwise(bounds), strict=True):
        main = row["main"]
        title = join_titles([titles[entity] for entity in main])
        evidence = [Evidence(*sentence) for sentence in rows[slice(*span)]]
        summary, findings = write_findings(
            evidence, weight, titles, main, max_findings, max_sentences
        )
        if not summary:
            # Cite the entities if no sentence, but only tables and lists mention the members.
            cited = ", ".join(map(str, main))
            summary = f"No whole sentence speaks of {title}. [Data: Entities ({cited})]"
        if row["island"]:
            title = f"Island: {title}"
        reports.append(Report(title, summary, findings, row["rank"], _explain_rank(row)))
    return {"community_reports": make_report_rows(communities.drop("main"), reports)}


def _explain_rank(row: Mapping[str, object]) -> str:
    nouns = {
        "size": ("entity", "entities"),
        "n_relationships": ("relationship", "relationships"),
        "n_text_units": ("text unit", "text units"),
    }
    entities, *others = (f"{row[name]} {noun[row[name] != 1]}" for name, noun in nouns.items())
    counts = f"{entities}, {' and '.join(others)}"
    return f"{row['rank']} of 10 among the communities of its level, for {counts}."


class _SentenceCandidates:
    """The candidate sentences of the reports of all communities."""

    def __init__(
        self,
        members: pl.DataFrame,
        weight: Floats,
        mentions: pl.LazyFrame,
        sentences: pl.DataFrame,
        base_text_units: pl.LazyFrame,
        documents: pl.LazyFrame,
    ) -> None:
        units = base_text_units.select("document_id", "start_char").collect()
        document = find_rows(units["document_id"], documents.select("id").collect()["id"])
        units = units.with_columns(document=document).with_row_index("number")
        sentence, entity = _pair_sentences_with_entities(mentions, sentences, document)
        length = (sentences["end_char"] - sentences["start_char"]).to_numpy()
        worth = np.minimum(1.0, MAX_FULL_SCORE_LENGTH / np.maximum(length, 1))
        schema = {"community": pl.Int64, "sentence": pl.Int64, "score": pl.Float64}
        levels = members.partition_by("level", maintain_order=True)
        best = (_choose_best_sentences(level, sentence, entity, weight, worth) for level in levels)
        chosen = pl.concat([pl.DataFrame(schema=schema), *best])
        self._rows = chosen["sentence"].to_numpy()
        self._scores = chosen["score"].to_numpy()
        # Communities are numbered from 0; imported ones may have gaps.
        self.n_numbers = int(members["community"].to_numpy().max(initial=-1)) + 1
        at = np.arange(chosen.height)
        self._by_community = RowGroups(chosen["community"].to_numpy(), at, self.n_numbers)
        self._quotations = Quotations(documents, sentences, self._rows)
        # Imported text units may be in any order, so sort them.
        units = units.sort("document", "start_char", maintain_order=True)
        rows = find_rows_at(units, self._quotations.places).clip(0)
        # The number of the text unit of each quotation.
        self._sources = units["number"].to_numpy()[rows]
        kept = np.isin(sentence, self._quotations.rows)
        self._entities = RowGroups(sentence[kept], entity[kept], sentences.height)

    def find_evidence(
        self, communities: Integers, members_of: RowGroups, links: "_RelationshipLookup"
    ) -> pl.DataFrame:
        """Return the candidate sentences of communities, best first for each community.

        `at` is the position in `communities`. `entities` are the members that the sentence
        mentions, `relationships` those between them, `source` is the number of the text unit.
        """
        at, candidates = self._by_community.take(communities)
        rows = self._rows[candidates]
        quoted = self._quotations.map_sentence_rows(rows)
        candidate, entity = self._entities.take(rows)
        member_at, member = members_of.take(communities)
        keys = member_at * links.width + member
        is_member = np.isin(at[candidate] * links.width + entity, keys)
        candidate, entity = candidate[is_member], entity[is_member]
        return pl.DataFrame(
            {
                "at": at,
                "text": self._quotations.texts[quoted],
                "entities": gather_lists(candidate, pl.Series(entity), len(at)),
                "relationships": links.find_between(candidate, entity, len(at)),
                "source": self._sources[quoted],
                "score": self._scores[candidates],
            }
        )


def _pair_sentences_with_entities(
    mentions: pl.LazyFrame, sentences: pl.DataFrame, document: Integers
) -> tuple[Integers, Integers]:
    """Return two arrays: rows of quotable sentences, and mentioned entities; sorted."""
    found = mentions.select("entity", "text_unit", "start_char").collect()
    places = pl.DataFrame(
        {"document": document[found["text_unit"].to_numpy()], "start_char": found["start_char"]}
    )
    row = find_rows_at(sentences, places)
    is_quotable = are_quotable(sentences).to_numpy()[row] if len(row) else np.zeros(0, bool)
    # Remove duplicate pairs, because overlapping text units repeat mentions.
    return distinct_pairs(row[is_quotable], found["entity"].to_numpy()[is_quotable])


def _choose_best_sentences(
    level: pl.DataFrame, sentence: Integers, entity: Integers, weight: Floats, worth: Floats
) -> pl.DataFrame:
    """Choose the candidate sentences of the communities of one level.

    The columns of the result are `community`, `sentence` (a row number) and `score`. The best
    sentence of a community comes first.
    """
    of_entity = np.full(len(weight), -1, np.int64)
    of_entity[level["entity"].to_numpy()] = level["community"].to_numpy()
    community = of_entity[entity]
    inside = community >= 0
    score = weight[entity[inside]] * worth[sentence[inside]]
    return (
        pl.DataFrame({"community": community[inside], "sentence": sentence[inside], "score": score})
        .group_by("community", "sentence")
        .agg(pl.col("score").sum() * (MAX_SCORED_MEMBERS / pl.len()).clip(upper_bound=1.0))
        .sort("community", "score", "sentence", descending=[False, True, False])
        .group_by("community", maintain_order=True)
        .head(MAX_CANDIDATES_PER_REPORT)
    )


class _RelationshipLookup:
    """Lookup of the numbers of relationships by their two entities."""

    def __init__(self, relationships: pl.LazyFrame, entity_ids: pl.Series) -> None:
        rows = relationships.select("source_id", "target_id", "human_readable_id").collect()
        pairs = np.stack([find_rows(rows[end], entity_ids) for end in ("source_id", "target_id")])
        known = (pairs >= 0).all(axis=0)
        low, high = pairs[:, known].min(axis=0), pairs[:, known].max(axis=0)
        self.width = len(entity_ids)
        keys = low * self.width + high
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._numbers = rows["human_readable_id"].to_numpy()[known][order]

    def find_between(self, owners: Integers, entities: Integers, n_owners: int) -> pl.Series:
        """Return the relationships between the entities of each owner, as sorted lists.

        `owners` has the owner of each entity, ascending.
        """
        rows = pl.LazyFrame({"owner": owners, "entity": entities})
        pairs = (
            rows.join(rows, on="owner")
            .filter(pl.col("entity") < pl.col("entity_right"))
            .select("owner", key=pl.col("entity") * self.width + pl.col("entity_right"))
            .collect()
        )
        keys = pairs["key"].to_numpy()
        place = np.minimum(np.searchsorted(self._keys, keys), max(len(self._keys) - 1, 0))
        found = self._keys[place] == keys if len(self._keys) else np.zeros(len(keys), bool)
        numbers = self._numbers[place[found]].astype(np.int64)
        owners, values = distinct_pairs(pairs["owner"].to_numpy()[found], numbers)
        return gather_lists(owners, pl.Series(values), n_owners)
