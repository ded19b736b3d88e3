"""An index of Microsoft's as our public tables, with all of our columns."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.microsoft.read_communities import whole_communities
from graphrag_index.microsoft.read_files import (
    MicrosoftVectors,
    RawTable,
    find_folder,
    open_table,
    open_vectors,
    unreadable,
)
from graphrag_index.microsoft.read_positions import (
    Places,
    degrees,
    lists_turned,
    pairs_of,
    rows_of,
)
from graphrag_index.schema.tables import TABLES
from graphrag_index.text.citations import renumber_citations
from graphrag_index.text.languages import detect_language

# The columns without which a table says nothing. Of a name with | one is enough.
_NEEDED: Mapping[str, Sequence[str]] = {
    "documents": ("id", "text"),
    "text_units": ("id", "text", "document_id|document_ids"),
    "entities": ("id", "title"),
    "relationships": ("id", "source", "target"),
    "communities": ("community",),
    "community_reports": ("community", "full_content"),
    "covariates": ("subject_id", "text_unit_id"),
}
# An index may be without them.
_OPTIONAL = ("community_reports", "covariates")
# Documents whose texts are looked at at once.
_AT_ONCE = 1_024
_ENCODING = "cl100k_base"


class MicrosoftIndex:
    """The tables and vectors of a folder, opened for reading; nothing is copied.

    `tables` are our public tables by name, `mentions` with them. `raw` are the files themselves
    with the names and types of ours. `notes` say what is missing or was made up, a sentence each.
    """

    def __init__(self, folder: Path) -> None:
        found = find_folder(folder)
        self.place, self.files, self.is_early = found.place, found.files, found.is_early
        self.raw: Mapping[str, RawTable] = {
            name: open_table(name, path) for name, path in found.files.items()
        }
        self._check()
        self.tables: Mapping[str, pl.LazyFrame] = self._tables()

    @property
    def generation(self) -> str:
        """Which versions write tables like these: `0 or 1`, `2` or `2 or 3`."""
        return generation(self.is_early, self.raw)

    @cached_property
    def _opened_vectors(self) -> Any:
        return open_vectors(self.place, self.files)

    @property
    def vectors(self) -> Mapping[str, MicrosoftVectors]:
        """The tables of vectors by our names, as far as they are there and can be opened."""
        found: Mapping[str, MicrosoftVectors] = self._opened_vectors[0]
        return found

    @property
    def damaged_vectors(self) -> Mapping[str, tuple[Path, str]]:
        """Where vectors are that cannot be opened, and why."""
        found: Mapping[str, tuple[Path, str]] = self._opened_vectors[1]
        return found

    @cached_property
    def places(self) -> Places:
        """Where text units and names stand. Asking for it reads all texts once."""
        base = self._base
        return Places(*(base[name] for name in list(_NEEDED)[:4]))

    def n_rows(self, table: str) -> int:
        """Count the rows of a table that is a file."""
        try:
            return int(self.raw[table].rows.select(pl.len()).collect().item())
        except (pl.exceptions.PolarsError, OSError) as error:
            raise unreadable(self.files[table], error) from error

    def _check(self) -> None:
        """See that what cannot be derived is there."""
        for name, columns in _NEEDED.items():
            if name not in self.raw:
                if name in _OPTIONAL:
                    continue
                raise TableError(
                    f"{self.place} has no {name}.parquet (in version 0 and 1 "
                    f"create_final_{name}.parquet): copy it there from where the index was made."
                )
            given = self.raw[name]
            lacking = [c for c in columns if not set(c.split("|")) & set(given.columns)]
            if lacking:
                column = lacking[0].partition("|")[0]
                path = self.files[name]
                if column in given.left_out:
                    raise TableError(
                        f"{path}: the column {column} is {given.left_out[column]}, and should be "
                        f"{TABLES[name].schema[column]}: write it anew from a whole index."
                    )
                raise TableError(
                    f"{path} has no column {column}: is it the table {name} of Microsoft GraphRAG? "
                    "Copy it again from where the index was made."
                )

    @cached_property
    def _base(self) -> dict[str, pl.LazyFrame]:
        """The tables as far as each file tells by itself: no nulls where ours have none."""
        found = {}
        for name in _NEEDED:
            if name not in self.raw:
                continue
            rows, has = self.raw[name].rows, set(self.raw[name].columns)
            if name == "text_units" and "document_id" not in has:
                rows = rows.with_columns(document_id=pl.col("document_ids").list.first())
                has.add("document_id")
            table = TABLES[name]
            nullable = set(table.nullable or ())
            columns = []
            for column, dtype in table.schema.items():
                if column in has:
                    value = pl.col(column)
                    nothing = _nothing(dtype)
                    if column not in nullable and nothing is not None:
                        value = value.fill_null(pl.lit(nothing, dtype))
                    columns.append(value)
                elif column in nullable:
                    columns.append(pl.lit(None, dtype).alias(column))
                elif (nothing := _nothing(dtype)) is not None:
                    columns.append(pl.lit(nothing, dtype).alias(column))
            rows = rows.select(columns)
            if "human_readable_id" in table.columns:
                number = pl.int_range(pl.len(), dtype=pl.Int64)
                known = [pl.col("human_readable_id")] if "human_readable_id" in has else []
                rows = rows.with_columns(human_readable_id=pl.coalesce(*known, number))
            found[name] = rows
        return found

    def _tables(self) -> dict[str, pl.LazyFrame]:
        tables = {
            "documents": self._beside("documents", self._of_documents),
            "text_units": self._beside("text_units", self._of_text_units),
            "entities": self._beside("entities", self._of_entities),
            "relationships": self._beside("relationships", self._of_relationships),
            "mentions": pl.defer(lambda: self.places.mentions, schema=TABLES["mentions"].schema),
            "communities": pl.defer(lambda: self._communities, schema=TABLES["communities"].schema),
        }
        if "community_reports" in self.raw:
            schema = TABLES["community_reports"].schema
            tables["community_reports"] = pl.defer(lambda: self._reports, schema=schema)
        if "covariates" in self.raw:
            rows = self._base["covariates"]
            if "id" not in self.raw["covariates"].columns:
                rows = rows.with_columns(id=pl.col("human_readable_id").cast(pl.String))
            if "covariate_type" not in self.raw["covariates"].columns:
                rows = rows.with_columns(covariate_type=pl.lit("claim"))
            tables["covariates"] = rows
        return {name: tables[name].select(list(TABLES[name].columns)) for name in tables}

    def _beside(self, name: str, made: Callable[[], pl.DataFrame]) -> pl.LazyFrame:
        """Put columns that are found when they are asked for in the place of those of a file."""
        schema = TABLES[name].schema
        columns = pl.Schema({column: schema[column] for column in _DERIVED[name]})
        found = cache(lambda: made().select(columns.names()).cast(columns))
        own = self._base[name].drop(columns.names(), strict=False)
        derived = pl.defer(found, schema=columns)
        return pl.concat([own, derived], how="horizontal")

    def _of_documents(self) -> pl.DataFrame:
        rows, has = self._base["documents"], set(self.raw["documents"].columns)
        n_rows = self.n_rows("documents")
        languages: list[str] = []
        metadata: list[str | None] = []
        for start in range(0, n_rows, _AT_ONCE):
            columns = ("text", "raw_data", "metadata")
            for text, record, stated in (
                rows.select(columns).slice(start, _AT_ONCE).collect().rows()
            ):
                languages.append(detect_language(text))
                is_record = _record_in(stated) is not None
                metadata.append(stated if is_record else _short_values(record, text))
        small = rows.select("id", "title", "text_unit_ids").collect()
        title = small["title"] if "title" in has else small["id"]
        text_unit_ids = small["text_unit_ids"]
        if "text_unit_ids" not in has:
            units = self._base["text_units"].select("id", "document_id").collect()
            owners = rows_of(units["document_id"], small["id"])
            known = owners >= 0
            text_unit_ids = lists_turned(known.nonzero()[0], owners[known], units["id"], n_rows)
        return pl.DataFrame(
            {
                "title": title,
                "text_unit_ids": text_unit_ids,
                "path": title,
                "metadata": pl.Series(metadata, dtype=pl.String),
                "language": pl.Series(languages, dtype=pl.String),
            }
        )

    def _of_text_units(self) -> pl.DataFrame:
        has = set(self.raw["text_units"].columns)
        rows = self._base["text_units"]
        ids = rows.select("id").collect()["id"]
        made = self.places.text_units.select("start_char", "end_char").to_dict()
        others = {
            "entity_ids": "entities",
            "relationship_ids": "relationships",
            "covariate_ids": "covariates",
        }
        for column, table in others.items():
            if column in has or table not in self._base:
                made[column] = rows.select(column).collect()[column]
                continue
            links = "text_unit_id" if table == "covariates" else "text_unit_ids"
            linked = self.tables[table].select("id", links).collect()
            lists = linked[links]
            if lists.dtype == pl.String:
                lists = lists.reshape((len(lists), 1)).arr.to_list()
            made[column] = lists_turned(*pairs_of(lists, ids), linked["id"], len(ids))
        if "n_tokens" in has:
            made["n_tokens"] = rows.select("n_tokens").collect()["n_tokens"]
        else:
            made["n_tokens"] = self._counted()
        return pl.DataFrame(made)

    def _counted(self) -> pl.Series:
        """Count the tokens of text units, where the file does not say."""
        from graphrag_index.text.tokens import count_tokens, load_encoding

        encoding, counts = load_encoding(_ENCODING), []
        rows = self._base["text_units"].select("text")
        for start in range(0, self.n_rows("text_units"), _AT_ONCE):
            texts = rows.slice(start, _AT_ONCE).collect()["text"]
            counts += [count_tokens(text, encoding) for text in texts]
        return pl.Series("n_tokens", counts, pl.Int64)

    def _of_entities(self) -> pl.DataFrame:
        has, rows = set(self.raw["entities"].columns), self._base["entities"]
        small = rows.select("title", "frequency", "degree", "text_unit_ids", "x", "y").collect()
        made = {"evidence": self.places.of_entities["evidence"]}
        text_unit_ids = small["text_unit_ids"]
        if "text_unit_ids" not in has and "entity_ids" in self.raw["text_units"].columns:
            units = self._base["text_units"].select("id", "entity_ids").collect()
            ids = rows.select("id").collect()["id"]
            pairs = pairs_of(units["entity_ids"], ids)
            text_unit_ids = lists_turned(*pairs, units["id"], len(ids))
        made["text_unit_ids"] = text_unit_ids
        made["frequency"] = (
            small["frequency"] if "frequency" in has else text_unit_ids.list.n_unique()
        )
        made["degree"] = (
            small["degree"] if "degree" in has else _numbers_of(small["title"], self._degrees)
        )
        places = small.select("x", "y")
        nodes = self.raw.get("nodes")
        if nodes is not None and "x" not in has and {"title", "x", "y"} <= set(nodes.columns):
            first = nodes.rows.select("title", "x", "y").unique("title", keep="first").collect()
            titles = small.select("title")
            places = titles.join(first, on="title", how="left", maintain_order="left")
        made |= {"x": places["x"], "y": places["y"]}
        return pl.DataFrame([values.alias(name) for name, values in made.items()])

    @cached_property
    def _degrees(self) -> dict[str, int]:
        return degrees(self._base["relationships"])

    def _of_relationships(self) -> pl.DataFrame:
        has, rows = set(self.raw["relationships"].columns), self._base["relationships"]
        small = rows.select("source", "target", "combined_degree", "weight").collect()
        known = self._base["entities"].select("id", "title").collect()
        made = {"evidence": self.places.of_relationships["evidence"]}
        for end in ("source", "target"):
            at = rows_of(small[end], known["title"])
            ids = pl.concat([known["id"], pl.Series("id", [""])])
            # A title that no entity has gives the last, which is no id.
            made[f"{end}_id"] = ids.gather(at)
        made["combined_degree"] = small["combined_degree"]
        if "combined_degree" not in has:
            ends = [_numbers_of(small[end], self._degrees) for end in ("source", "target")]
            made["combined_degree"] = ends[0] + ends[1]
        made["weight"] = small["weight"]
        if "weight" not in has:
            made["weight"] = pl.Series([1.0] * small.height, dtype=pl.Float64)
        return pl.DataFrame([values.alias(name) for name, values in made.items()])

    @cached_property
    def _communities(self) -> pl.DataFrame:
        nodes = self.raw.get("nodes")
        return whole_communities(
            self.raw["communities"].rows,
            nodes.rows if nodes else None,
            self._base["entities"],
            self._base["relationships"],
        )

    @cached_property
    def _reports(self) -> pl.DataFrame:
        """The reports, with what their communities tell."""
        has = set(self.raw["community_reports"].columns)
        rows = self._base["community_reports"].collect()
        known = self._communities
        at = rows_of(rows["community"], known["community"])
        for name, nothing in _OF_COMMUNITIES.items():
            if name not in has:
                values = pl.concat([known[name], pl.Series(name, [nothing], known[name].dtype)])
                rows = rows.with_columns(values.gather(at).alias(name))
        if "human_readable_id" not in has:
            rows = rows.with_columns(human_readable_id=pl.col("community"))
        if "id" not in has:
            rows = rows.with_columns(id=pl.col("community").cast(pl.String))
        if "title" not in has:
            rows = rows.with_columns(title=pl.concat_str(pl.lit("Community "), pl.col("community")))
        return rows.select(list(TABLES["community_reports"].columns))


# Columns that a file may lack, or that are ours, and how a table lacks nothing then.
_DERIVED = {
    "documents": ("title", "text_unit_ids", "path", "metadata", "language"),
    "text_units": (
        *("n_tokens", "entity_ids", "relationship_ids", "covariate_ids"),
        *("start_char", "end_char"),
    ),
    "entities": ("text_unit_ids", "frequency", "degree", "x", "y", "evidence"),
    "relationships": ("weight", "combined_degree", "source_id", "target_id", "evidence"),
}
# What a report has of its community, and what if there is no such.
_OF_COMMUNITIES: Mapping[str, Any] = {
    "level": 0,
    "parent": -1,
    "children": [],
    "period": "",
    "size": 0,
}


def generation(is_early: bool, raw: Mapping[str, RawTable]) -> str:
    """Tell which versions of Microsoft GraphRAG write tables like these."""
    if is_early:
        return "0 or 1"
    text_units = raw.get("text_units")
    if text_units is not None and "document_ids" in text_units.columns:
        return "2"
    return "2 or 3"


def _nothing(dtype: Any) -> Any:
    """What stands for a null where a column has none; None where a number would be invented."""
    if dtype == pl.String:
        return ""
    if isinstance(dtype, pl.List):
        return []
    if dtype in (pl.Int64, pl.Float64):
        return 0
    return False if dtype == pl.Boolean else None


def _short_values(record: str | None, text: str) -> str | None:
    """Return a record without the text of its document, so that filters can name its values."""
    values = _record_in(record)
    if values is None:
        return None
    short = {key: value for key, value in values.items() if value != text}
    return json.dumps(short, ensure_ascii=False)


def _record_in(text: str | None) -> dict[str, Any] | None:
    """Read a JSON object; None if it is anything else."""
    try:
        values = json.loads(text) if text is not None else None
    except ValueError:
        return None
    return values if isinstance(values, dict) else None


def _numbers_of(titles: pl.Series, numbers: Mapping[str, int]) -> pl.Series:
    return pl.Series([numbers.get(title, 0) for title in titles], dtype=pl.Int64)


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
