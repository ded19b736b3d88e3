"""Community reports from sentences that mention the members, written without a model."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.reports.extractive import Evidence, write_findings
from graphrag_index.reports.report import Report, join_titles, make_report_rows, rank_communities
from graphrag_index.schema.list_columns import Integers, RowGroups, distinct_pairs, find_rows
from graphrag_index.schema.settings.step_sections import CreateCommunityReportsNlp
from graphrag_index.step import Progress, step
from graphrag_index.steps.extract_graph_nlp import find_rows_at
from graphrag_index.text.sentences import Quotations, are_quotable

# Maximum number of candidate sentences for one report.
MAX_CANDIDATES_PER_REPORT = 24
# Minimum number of entities in the title of a report. A title that exists already gets more.
MIN_ENTITIES_IN_TITLE = 3
# Number of reports per batch. The number limits memory and does not change the results.
BATCH_REPORTS = 2_000
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
) -> Iterator[pl.DataFrame]:
    """Write a report on each community from sentences of its evidence, without a model.

    The score of a sentence is the centrality of the mentioned members in the whole graph. The
    summary is about the main members. Each finding is about one main member and the members that
    are mentioned with it. The rank (0 to 10) compares the size of a community with the sizes of
    other communities of its level. Reports are ordered by level, deepest first, then `community`.
    """
    named = entities.select("id", "title", "type", "degree").collect()
    weight = np.log2(2 + named["degree"].to_numpy())
    # One row per member: `level`, `community` and `entity` (a row number), sorted.
    ids = communities.select("level", "community", id="entity_ids").explode("id").collect()
    entity = pl.Series("entity", find_rows(ids["id"], named["id"]))
    members = ids.select("level", "community", entity).filter(entity >= 0)
    members = members.sort("community", "entity")
    rows = rank_communities(communities)
    n_numbers = int(rows["community"].to_numpy().max(initial=-1)) + 1
    members_of = RowGroups(members["community"].to_numpy(), members["entity"].to_numpy(), n_numbers)
    tables = (mentions, sentences, base_text_units, documents)
    candidates = _SentenceCandidates(members, n_numbers, weight, *tables)
    links = _RelationshipLookup(relationships, named["id"])
    titles, types = named["title"].to_list(), named["type"].to_list()
    used_titles: set[str] = set()
    progress.start(rows.height, "reports")
    for part in rows.iter_slices(BATCH_REPORTS):
        reports = []
        for row in part.iter_rows(named=True):
            numbers = members_of[row["community"]]
            own = dict(zip(numbers.tolist(), weight[numbers].tolist(), strict=True))
            names = {entity: titles[entity] for entity in own}
            # Sort the members for the title: names before noun phrases, most central members first.
            ranked = sorted(own, key=lambda e: (types[e] == "noun phrase", -own[e], e))
            main = _choose_title_members(ranked, names, used_titles)
            title = join_titles([names[entity] for entity in main])
            used_titles.add(title)
            evidence = candidates.find_evidence(row["community"], own)
            limits = (settings.max_findings, settings.max_sentences)
            summary, findings = write_findings(
                evidence, own, names, main, links.find_between, *limits
            )
            if not summary:
                # Cite the entities if no sentence, but only tables and lists mention the members.
                cited = ", ".join(map(str, main))
                summary = f"No whole sentence speaks of {title}. [Data: Entities ({cited})]"
            if row["island"]:
                title = f"Island: {title}"
            reports.append(Report(title, summary, findings, row["rank"], _explain_rank(row)))
            progress.advance()
        yield make_report_rows(part, reports)


def _choose_title_members(
    ranked: Sequence[int], titles: Mapping[int, str], used: Collection[str]
) -> list[int]:
    """Choose members for the title of a report: more than three if the short title is taken.

    A community and its largest sub-community often have the same main members.
    """
    n = MIN_ENTITIES_IN_TITLE
    while n < len(ranked) and join_titles([titles[entity] for entity in ranked[:n]]) in used:
        n += 1
    return list(ranked[:n])


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
        n_numbers: int,
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
        at = np.arange(chosen.height)
        self._by_community = RowGroups(chosen["community"].to_numpy(), at, n_numbers)
        self._quotations = Quotations(documents, sentences, self._rows)
        # Imported text units may be in any order, so sort them.
        units = units.sort("document", "start_char", maintain_order=True)
        rows = find_rows_at(units, self._quotations.places).clip(0)
        # The number of the text unit of each quotation.
        self._sources = units["number"].to_numpy()[rows]
        kept = np.isin(sentence, self._quotations.rows)
        self._entities = RowGroups(sentence[kept], entity[kept], sentences.height)

    def find_evidence(self, community: int, members: dict[int, float]) -> list[Evidence]:
        """Return the candidate sentences of a community, best first."""
        candidates = self._by_community[community]
        rows = self._rows[candidates]
        at = self._quotations.map_sentence_rows(rows)
        mentioned = (
            tuple(entity for entity in self._entities[row].tolist() if entity in members)
            for row in rows.tolist()
        )
        sources, scores = self._sources[at].tolist(), self._scores[candidates].tolist()
        return list(map(Evidence, self._quotations.texts[at], mentioned, sources, scores))


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
        ends = np.stack([find_rows(rows[end], entity_ids) for end in ("source_id", "target_id")])
        known = (ends >= 0).all(axis=0)
        low, high = ends[:, known].min(axis=0), ends[:, known].max(axis=0)
        self._width = len(entity_ids)
        keys = low * self._width + high
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._numbers = rows["human_readable_id"].to_numpy()[known][order]

    def find_between(self, entities: Sequence[int]) -> tuple[int, ...]:
        """Return the sorted numbers of all relationships between these entities."""
        found = []
        for source, target in combinations(entities, 2):
            key = min(source, target) * self._width + max(source, target)
            place = int(self._keys.searchsorted(key))
            if place < len(self._keys) and self._keys[place] == key:
                found.append(int(self._numbers[place]))
        return tuple(sorted(found))
