"""Numbers and dates in the names and descriptions of entities, as typed values."""

from collections.abc import Iterator

import polars as pl

from graphrag_index.nlp.values import find_dates, find_numbers
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import step
from graphrag_index.text.languages import detect_language

# Entities per batch: bounds memory, not results.
BATCH_ENTITIES = 20_000


@step(writes=["entity_values"], code_version=2)
def normalize_values(entities: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Find the numbers, amounts and dates in the titles and descriptions of entities.

    Ambiguous values, which can be read in two ways, are left out.

    Yields
    ------
    entity_values
        One row per value, ordered by entity, then the title before the description, then start.
    """
    table = TABLES["entity_values"]
    columns = ("human_readable_id", "title", "description")
    count = entities.select(pl.len()).collect().item()
    # Without entities there is still one batch, without rows.
    for start in range(0, max(count, 1), BATCH_ENTITIES):
        batch = entities.select(columns).slice(start, BATCH_ENTITIES).collect()
        rows = [
            (number, *value)
            for number, title, description in batch.iter_rows()
            for value in values_of(title, description)
        ]
        yield pl.DataFrame(rows, table.schema, orient="row")


def values_of(title: str, description: str) -> list[tuple[object, ...]]:
    """Return the values of one entity, as rows without the number of the entity."""
    if not any(letter.isdigit() for letter in title + description):
        return []
    language = detect_language(description or title)
    rows: list[tuple[object, ...]] = []
    for field, text in (("title", title), ("description", description)):
        rows += _values(field, text, language)
    return rows


def _values(field: str, text: str, language: str) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    # The digits of dates are masked, so that they are not found as numbers too.
    rest = list(text)
    for start, end, first, last in find_dates(text, language):
        found.append((field, "date", None, None, first, last, text[start:end], start, end))
        rest[start:end] = "_" * (end - start)
    for start, end, kind, value, unit in find_numbers("".join(rest), language):
        found.append((field, kind, value, unit, None, None, text[start:end], start, end))
    return sorted(found, key=lambda row: row[-2])  # type: ignore[arg-type,return-value]
