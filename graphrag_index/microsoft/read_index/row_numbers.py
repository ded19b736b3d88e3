"""Row numbers for rows of Microsoft's: ours are known by them, and citations name them."""

from collections.abc import Mapping

import polars as pl

from graphrag_index.text.citations import renumber_citations

# How the tables are cited whose numbers reports name.
_CITED = {"Entities": "entities", "Relationships": "relationships", "Claims": "covariates"}
_NUMBERED = ("documents", "text_units", "entities", "relationships", "covariates")
# Beside them, tables whose ids must tell their rows apart.
_WITH_IDS = (*_NUMBERED, "communities", "community_reports")


def numbered(tables: Mapping[str, pl.LazyFrame]) -> dict[str, pl.LazyFrame]:
    """Give each row its row number as `human_readable_id`, and an id that no other row has.

    The numbers that reports cite change likewise; one that no row had is taken out, or it would
    name another row now. The second row of an id gets `-2` after it; what names the id means the
    first. Communities keep their numbers.
    """
    found = dict(tables)
    moved: dict[str, dict[int, int]] = {}
    for name in _WITH_IDS:
        if name not in tables:
            continue
        numbers = name in _NUMBERED
        columns = ["id", "human_readable_id"] if numbers else ["id"]
        rows = tables[name].select(columns).collect()
        if rows["id"].n_unique() < rows.height:
            again = pl.int_range(1, pl.len() + 1).over("id")
            apart = pl.when(again > 1).then(pl.format("{}-{}", "id", again)).otherwise("id")
            found[name] = _with_column(found[name], rows.select(apart.alias("id")))
        if numbers:
            row = pl.Series("human_readable_id", range(rows.height), pl.Int64)
            if not (rows["human_readable_id"] == row).all():
                found[name] = found[name].with_columns(
                    human_readable_id=pl.int_range(pl.len(), dtype=pl.Int64)
                )
                pairs = zip(rows["human_readable_id"].to_list(), row.to_list(), strict=True)
                # Of several rows of one number the first is meant.
                moved[name] = dict(reversed(list(pairs)))
    moves = {cited: moved[name] for cited, name in _CITED.items() if name in moved}
    if moves and "community_reports" in found:
        found["community_reports"] = _recited(found["community_reports"], moves)
    return found


def _with_column(rows: pl.LazyFrame, column: pl.DataFrame) -> pl.LazyFrame:
    order = rows.collect_schema().names()
    others = rows.drop(column.columns)
    return pl.concat([others, column.lazy()], how="horizontal").select(order)


def _recited(reports: pl.LazyFrame, moves: Mapping[str, Mapping[int, int]]) -> pl.LazyFrame:
    """Change the numbers in the citations of reports."""
    rows = reports.collect()
    texts = ("summary", "full_content", "full_content_json", "rating_explanation")
    changed = [
        pl.Series(name, [recited(text, moves) for text in rows[name]], pl.String) for name in texts
    ]
    findings = [
        [{key: recited(text or "", moves) for key, text in finding.items()} for finding in of_one]
        for of_one in rows["findings"]
    ]
    column = pl.Series("findings", findings, rows["findings"].dtype)
    return rows.with_columns(*changed, column).lazy()


def recited(text: str, moves: Mapping[str, Mapping[int, int]]) -> str:
    """Write a text with other numbers in its citations: `Entities (5)` as `Entities (4)`."""

    def number_of(name: str, number: int) -> int | None:
        return moves[name].get(number) if name in moves else number

    return renumber_citations(text, number_of)[0]
