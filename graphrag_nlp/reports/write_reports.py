"""The entry point: reports on communities, written from candidate sentences with texts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import polars as pl

from graphrag_nlp.corpus import ShardFrames, Shards
from graphrag_nlp.list_columns import gather_by_owner, gather_lists
from graphrag_nlp.reports.drafts import SUMMARY, draft_reports
from graphrag_nlp.reports.extent import describe_extent
from graphrag_nlp.reports.findings import Limits
from graphrag_nlp.reports.titles import TitleParts, Titles
from graphrag_nlp.reports.words import CorpusWords
from graphrag_nlp.text.citations import format_citations
from graphrag_nlp.text.languages import join_titles

T = TypeVar("T")
_SECTIONS = {"Entities": "entities", "Relationships": "relationships", "Sources": "source"}


def write_reports(
    shards: Shards,
    material: Iterable[tuple[T, ShardFrames]],
    corpus: CorpusWords,
    limits: Limits,
    find_relationships: Callable[[pl.Series], pl.Series],
    text_unit_ids: pl.Series,
    document_ids: pl.Series,
) -> Iterator[tuple[T, pl.DataFrame]]:
    """Yield the reports of each shard of communities, with the context of the shard.

    Sub-communities come before their parents. `material` is described at `draft_reports`. Of
    `communities`, the columns `community`, `parent`, `n_documents`, `first_date`, `last_date` and
    `kinds` are read, too. `find_relationships` returns the numbers of the relationships between
    the entities of each list. A result has, in the order of the communities of a shard, the columns
    `title`, `summary`, `headings`, `explanations` and `statements`.
    """
    titles = Titles()
    kept = (
        ((context, shard["communities"], shard["entities"]), shard) for context, shard in material
    )
    drafted = shards.map(draft_reports, kept, corpus, limits)
    for (context, communities, entities), part in drafted:
        drafts, statements = part["drafts"], part["statements"]
        n = communities.height
        first = statements.filter(pl.struct("report", "statement").is_first_distinct())
        first = first.with_columns(relationships=find_relationships(first["entities"]))
        summaries, explanations = write_texts(first, n)
        named = dict(entities.select("entity", "title").iter_rows())
        chosen = [
            titles.choose(community, parent, TitleParts(*parts))
            for community, parent, *parts in zip(
                communities["community"],
                communities["parent"],
                *(drafts[name].to_list() for name in TitleParts._fields),
                strict=True,
            )
        ]
        shown = zip(
            communities.iter_rows(named=True),
            summaries,
            drafts["things"].list.len() > 0,
            strict=True,
        )
        yield (
            context,
            pl.DataFrame(
                {
                    "title": chosen,
                    "summary": [
                        f"{summary or _name_members(row['main'], named)} "
                        f"{describe_extent(row, is_mixed)}"
                        for row, summary, is_mixed in shown
                    ],
                    "headings": pl.Series(
                        [
                            # The heading of a finding must differ from the title of the report.
                            [f"More on {one}" if one == title else one for one in some]
                            for title, some in zip(
                                chosen, drafts["headings"].to_list(), strict=True
                            )
                        ],
                        dtype=pl.List(pl.String),
                    ),
                    "explanations": pl.Series(explanations, dtype=pl.List(pl.String)),
                    "statements": place_statements(statements, n, text_unit_ids, document_ids),
                },
                schema_overrides={"title": pl.String, "summary": pl.String},
            ),
        )


def _name_members(main: Sequence[int], titles: dict[int, str]) -> str:
    """Return the summary of a report without sentences: no text says anything of the members."""
    cited = ", ".join(map(str, main))
    named = join_titles([titles[entity] for entity in main])
    return f"No whole sentence speaks of {named}. [Data: Entities ({cited})]"


def write_texts(statements: pl.DataFrame, n_reports: int) -> tuple[list[str], list[list[str]]]:
    """Return the summary of each report, and the explanations of its findings.

    `statements` has the first sentence of each statement, with the numbers of the `relationships`
    that it cites.
    """
    ids = {section: pl.concat_list(column) for section, column in _SECTIONS.items()}
    cited = statements.select(
        "report", "finding", text=pl.concat_str("text", pl.lit(" "), format_citations(ids))
    )
    texts = cited.group_by("report", "finding", maintain_order=True).agg(
        pl.col("text").str.join(" ")
    )
    is_summary = texts["finding"] == SUMMARY
    summaries, explanations = (
        gather_lists(part["report"].to_numpy(), part["text"], n_reports)
        for part in (texts.filter(is_summary), texts.filter(~is_summary))
    )
    return summaries.list.join("").to_list(), explanations.to_list()


def place_statements(
    statements: pl.DataFrame, n_reports: int, text_unit_ids: pl.Series, document_ids: pl.Series
) -> pl.Series:
    """Return the column `statements` of reports, with a record for each sentence of a statement.

    `text` is that of the quoted sentence; `text_unit_ids` and `document_ids` have the ids of rows.
    """
    rows = statements.select(
        "statement",
        owner="report",
        finding=pl.when(pl.col("finding") != SUMMARY).then(pl.col("finding").cast(pl.Int64)),
        text=pl.first("text").over("report", "statement"),
        n_documents=pl.col("n_documents").cast(pl.Int64),
        text_unit_id=text_unit_ids.gather(statements["source"]),
        document_id=document_ids.gather(statements["document"]),
        start_char=pl.col("start_char").cast(pl.Int64),
        end_char=pl.col("end_char").cast(pl.Int64),
    )
    return gather_by_owner(rows, n_reports).alias("statements")
