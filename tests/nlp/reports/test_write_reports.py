"""Reports on communities, written from candidate sentences."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from graphrag_index.step import SerialShards
from graphrag_nlp.reports.extent import COUNTED_TYPES
from graphrag_nlp.reports.findings import Limits
from graphrag_nlp.reports.words import CorpusWords
from graphrag_nlp.reports.write_reports import write_reports

CORPUS = CorpusWords(1_000, pl.DataFrame({"word": ["sledge"], "n": [1]}))
SCHEMA: dict[str, Any] = {
    **{"report": pl.Int32, "sentence": pl.Int32, "centrality": pl.Float32},
    **{"entities": pl.List(pl.Int32), "text": pl.String, "language": pl.String},
    **{"words": pl.List(pl.String), "clarity": pl.Int8, "source": pl.Int32},
    **{"document": pl.Int32, "start_char": pl.Int32, "end_char": pl.Int32},
}
FIRST = "Tom Crean pulled the heavy sledges over the Great Ice Barrier with William Lashly."
AGAIN = "Over the Great Ice Barrier Tom Crean and William Lashly pulled the heavy sledges."
OTHER = "In Annascaul Tom Crean opened a public house that stands there still."


def rows(report: int) -> list[tuple[Any, ...]]:
    return [
        (report, 0, 1.0, [4, 9], FIRST, "en", ["sledge"], 2, 5, 1, 0, 82),
        (report, 1, 0.9, [4, 9], AGAIN, "en", ["sledge"], 2, 6, 2, 900, 982),
        (report, 2, 0.5, [4], OTHER, "en", ["house"], 2, 5, 1, 500, 569),
    ]


def shard(reports: Sequence[int], first: int = 0) -> dict[str, pl.DataFrame]:
    """Make the shard of communities numbered from `first`; `reports` are those with sentences."""
    n = max(reports, default=0) + 1
    return {
        "communities": pl.DataFrame(
            {
                "community": [first + at for at in range(n)],
                "parent": [100] * n,
                "theme": [False] * n,
                "main": [[4, 9]] * n,
                "n_documents": [2] * n,
                "first_date": [None] * n,
                "last_date": [None] * n,
                "kinds": [[2] + [0] * (len(COUNTED_TYPES) - 1)] * n,
            }
        ),
        "sentences": pl.DataFrame(
            [row for report in reports for row in rows(report)], SCHEMA, orient="row"
        ),
        "entities": pl.DataFrame(
            {
                "entity": [4, 9],
                "title": ["Tom Crean", "William Lashly"],
                "weight": [3.0, 2.0],
                "weak": [False, False],
            }
        ),
        "documents": pl.DataFrame({"document": [1, 2], "headline": ["", ""]}),
    }


def write(*shards: dict[str, pl.DataFrame]) -> pl.DataFrame:
    def find_relationships(entities: pl.Series) -> pl.Series:
        return pl.Series(
            [[7] if len(one) == 2 else [] for one in entities], dtype=pl.List(pl.Int32)
        )

    written = write_reports(
        SerialShards(),
        enumerate(shards),
        CORPUS,
        Limits(6, 14, 0.5),
        find_relationships,
        pl.Series([f"t{n}" for n in range(9)]),
        pl.Series([f"d{n}" for n in range(9)]),
    )
    parts = [*written]
    assert [context for context, _ in parts] == [*range(len(shards))]
    return pl.concat([part for _, part in parts])


def test_a_report_quotes_sentences_with_citations_and_their_places() -> None:
    [report] = write(shard([0])).rows(named=True)
    assert report["title"] == "Tom Crean, William Lashly: heavy sledges"
    assert report["summary"] == (
        f"{FIRST} [Data: Entities (4, 9); Relationships (7); Sources (5)] "
        f"{OTHER} [Data: Entities (4); Sources (5)] 2 documents: 2 people."
    )
    assert report["headings"] == report["explanations"] == []
    places = [
        (
            one["statement"],
            one["finding"],
            one["n_documents"],
            one["text_unit_id"],
            one["start_char"],
        )
        for one in report["statements"]
    ]
    # Two documents state the first sentence.
    assert places == [(0, None, 2, "t5", 0), (0, None, 2, "t6", 900), (1, None, 1, "t5", 500)]
    assert {one["text"] for one in report["statements"]} == {FIRST, OTHER}
    assert {one["document_id"] for one in report["statements"]} == {"d1", "d2"}


def test_a_community_without_a_sentence_has_its_main_members() -> None:
    report = write(shard([]))
    assert report["title"].to_list() == ["Tom Crean, William Lashly"]
    assert report["summary"].to_list() == [
        "No whole sentence speaks of Tom Crean and William Lashly. [Data: Entities (4, 9)] "
        "2 documents: 2 people."
    ]
    assert report["statements"].to_list() == [[]]


def test_siblings_have_different_titles_in_one_shard_and_in_two() -> None:
    together, apart = write(shard([0, 1])), write(shard([0]), shard([0], 1))
    assert together["title"].n_unique() == 2
    assert together.equals(apart)


def test_no_finding_has_the_title_of_its_report() -> None:
    one = shard([0])
    named = one["sentences"].with_columns(words=pl.lit([], pl.List(pl.String)))
    report = write({**one, "sentences": named[[0, 2, 2, 2]]})
    assert report["title"][0] not in report["headings"][0]
