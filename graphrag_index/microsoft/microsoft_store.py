"""An index of Microsoft GraphRAG, opened in place of a `TableStore`; no file is converted.

Search tables are computed, and vectors are read, on first use; both are kept in memory.
"""

import math
import re
import shutil
import threading
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from graphrag_index.llm.local.local_models import BUILT_IN_MODELS, MINILM, find_vector_identity
from graphrag_index.microsoft.import_folder import read_export
from graphrag_index.microsoft.prepended_text import restore_text
from graphrag_index.microsoft.read_files import (
    MicrosoftVectors,
    get_column_defaults,
    name_damaged_file,
)
from graphrag_index.microsoft.read_positions import find_first_rows
from graphrag_index.microsoft.read_tables import MicrosoftIndex, renumber_rows
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.tables import EMBEDDED_COLUMNS, ROWS_OF, SEARCH_TABLES, TABLES
from graphrag_index.storage.mapped_table import MappedTable
from graphrag_index.storage.memo import join_batches
from graphrag_index.storage.search_tables import create_search_tables
from graphrag_index.storage.table_writer import cast_to_table
from graphrag_index.storage.versions import StepRecord, StoredTable, Vectors, Version
from graphrag_nlp.text.normalize import UNSPACED, stem_word
from graphrag_nlp.text.subjects import HEAD_CHARS

if TYPE_CHECKING:
    import numpy.typing as npt

# Parameters k1 and b of the BM25 score, with their usual values.
_SATURATION, _LENGTH_SHARE = 1.2, 0.75
# A shorter stem matches only the same word; a longer stem also matches with up to 4 more letters.
_MIN_STEM_LETTERS = 4
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(f"{UNSPACED}+")


class MicrosoftStore:
    """The tables and vectors of a Microsoft GraphRAG index, with the interface of `TableStore`.

    `is_ours` distinguishes this class from `TableStore`. `lacks_vectors` is the reason why vector
    search is impossible, or an empty text.
    """

    is_ours = False

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.index = MicrosoftIndex(folder)
        self.output = self.index.path.absolute()
        # Name of the model of the vectors, if this is an export of this program.
        self._made_by = (read_export(self.index.path) or {}).get("embedding_model")
        self._lock = threading.RLock()
        self._vectors: dict[str, InMemoryVectors] = {}
        self._written: dict[str, Path] = {}
        dimensions = {name: v.dimension for name, v in self.index.vectors.items()}
        # A question has one dimension: use the tables with the most frequent dimension.
        counts = Counter(dimensions.values())
        self.dimension = counts.most_common(1)[0][0] if counts else 1
        self._usable = {name for name, n in dimensions.items() if n == self.dimension}
        self.lacks_vectors = self._explain_missing_vectors(settings)
        self.version = self._describe_as_version(settings)

    @property
    def place(self) -> str:
        """The folder of the index, for people."""
        return str(self.output)

    @property
    def gaps(self) -> tuple[str, ...]:
        """One sentence about each defect of this index; answers show the sentences."""
        notes = [self.lacks_vectors] if self.lacks_vectors else []
        lacking = [name for name in self._list_vector_tables() if name not in self._usable]
        if lacking and not self.lacks_vectors:
            rows = " and ".join(EMBEDDED_COLUMNS[name][0].replace("_", " ") for name in lacking)
            notes.append(
                f"There are no vectors of {rows} of {self.dimension:,} numbers in "
                f"{self.output / 'lancedb'}: these rows are found by names and words alone."
            )
        # This takes no time: the search that shows these notes has already computed the spans.
        are_found = self.index.text_unit_spans["is_found"]
        if n_lost := int((~are_found).sum()):
            notes.append(
                f"{n_lost:,} of {len(are_found):,} text units do not occur literally in their "
                "documents: character offsets are counted from the start of these text units."
            )
        return tuple(notes)

    def _list_vector_tables(self) -> list[str]:
        return [name for name, (table, _) in EMBEDDED_COLUMNS.items() if table in self.index.tables]

    def _explain_missing_vectors(self, settings: Settings) -> str:
        """Return the reason why vector search is impossible; empty if it is possible."""
        by_words = "the index was searched by names and words alone"
        if not self._usable:
            damaged = [
                f"{path} cannot be opened ({why[:120]})"
                for path, why in self.index.damaged_vectors.values()
            ]
            where = "; ".join(damaged) or f"{self.output} has no vectors in lancedb/"
            return f"{where}: {by_words}."
        name = settings.generate_text_embeddings.model
        identity = find_vector_identity(settings)
        if name not in BUILT_IN_MODELS or self._may_be_made_by(identity):
            return ""
        made_by = self._made_by or "another model"
        return (
            f"The vectors of {self.output}, of {self.dimension:,} numbers, were made by {made_by} "
            f"and not by {identity[0]}: {by_words}. Add the model that made the vectors to the "
            "section models, and set generate_text_embeddings.model to its name."
        )

    def _may_be_made_by(self, identity: tuple[str, int | None]) -> bool:
        """Return whether a model that needs no settings may have made the vectors.

        Only an export of this program records the model of its vectors. The static model is
        known to this program alone.
        """
        from graphrag_index.llm.local.onnx_model import DIMENSION

        if self._made_by is not None:
            return bool(self._made_by == identity[0])
        return identity == (MINILM.model, None) and self.dimension == DIMENSION

    def _describe_as_version(self, settings: Settings) -> Version:
        """Return a `Version` that describes this index."""
        counts = {name: self.index.n_rows(name) for name in self.index.files if name in TABLES}
        tables = {name: StoredTable(n, "") for name, n in counts.items()}
        for name in (*SEARCH_TABLES, "text_unit_vectors"):
            tables[name] = StoredTable(counts.get(ROWS_OF.get(name, ""), 0), "")
        tables["mentions"] = StoredTable(0, "")
        for name in self._list_vector_tables():
            n_rows = counts[EMBEDDED_COLUMNS[name][0]]
            tables[name] = StoredTable(n_rows, "", vectors=Vectors(self.dimension, True))
        # Questions are answered by the model of the reports, if the settings give access to it.
        wrote = settings.models.get(settings.create_community_reports.model)
        is_reachable = wrote and (wrote.key or wrote.base_url)
        step = StepRecord("create_community_reports" if is_reachable else "microsoft", "", tables)
        name = f"Microsoft GraphRAG {self.index.generation}"
        secret: Any = {"models": {"__all__": {"api_key"}}}
        values = settings.model_dump(mode="json", exclude=secret)
        # Microsoft GraphRAG keeps no versions, so the number is 0.
        return Version(0, f"that of {name}", name, (step,), values)

    def is_gone(self, number: int) -> bool:
        """Return whether the folder was deleted after it was opened."""
        return not self.output.is_dir()

    def read_pointer(self) -> Version | None:
        """Return the version of this index; there is only one."""
        return self.version

    @cached_property
    def tables(self) -> Mapping[str, pl.LazyFrame]:
        """The public tables by name; `human_readable_id` is the row number."""
        with self._lock, name_damaged_file(self.index.files):
            tables = renumber_rows(self.index.tables)
            tables["documents"] = _add_missing_documents(tables["documents"], tables["text_units"])
            if "community_reports" in tables:
                tables["communities"] = _add_missing_communities(
                    tables["communities"], tables["community_reports"]
                )
            if "covariates" in tables:
                values = pl.col("object_id", "status", "start_date", "end_date")
                # Microsoft GraphRAG writes the text NONE for null in claims.
                known = pl.when(values != "NONE").then(values)
                tables["covariates"] = tables["covariates"].with_columns(known)
            return tables

    def scan(self, name: str, table: StoredTable) -> pl.LazyFrame:
        """Open a public table."""
        return self.tables[name]

    def map(self, name: str, table: StoredTable) -> MappedTable:
        """Open a mapped table; the first call computes all mapped tables."""
        with self._lock:
            if name == "text_unit_vectors":
                held = self.vectors("text_unit_text", table)
                values = pl.Series("vector", held.matrix, pl.Array(pl.Float32, held.dimension))
                return MappedTable.of(values.to_frame())
            return self._mapped_tables[name]

    @cached_property
    def _mapped_tables(self) -> dict[str, MappedTable]:
        with name_damaged_file(self.index.files):
            head = pl.col("text").str.slice(0, HEAD_CHARS)
            tables = {
                # Read each file only once: otherwise each search table would read the file again.
                name: (rows.with_columns(head) if name == "documents" else rows).collect().lazy()
                for name, rows in self.tables.items()
            }
        made = join_batches(create_search_tables(**tables))
        return {
            name: MappedTable.of(
                cast_to_table(made[name], TABLES[name]) if name in made else TABLES[name].empty()
            )
            for name in SEARCH_TABLES
        }

    def public_files(self) -> Mapping[str, Path]:
        """Write the public tables as temporary Parquet files for SQL and Cypher queries."""
        with self._lock, name_damaged_file(self.index.files):
            if not self._written:
                for name, rows in self.tables.items():
                    path = self._temporary_folder / f"{name}.parquet"
                    rows.collect().write_parquet(path)
                    self._written[name] = path
            return self._written

    @property
    def graphs(self) -> Path:
        """The temporary folder of the graph database for Cypher queries."""
        return self._temporary_folder / "cypher"

    @cached_property
    def _temporary_folder(self) -> Path:
        folder = mkdtemp(prefix="graphrag-query-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def vectors(self, name: str, table: StoredTable) -> "InMemoryVectors":
        """Open a vector table; its rows and vectors are read on first use."""
        with self._lock:
            if name not in self._vectors:
                usable = name in self._usable and not self.lacks_vectors
                vectors = self.index.vectors[name] if usable else None
                width = 1 if self.lacks_vectors else self.dimension
                columns = [c for c in TABLES[name].columns if c not in ("text", "vector")]
                source, texts = EMBEDDED_COLUMNS[name]
                text = pl.concat_str(texts, separator=":")
                rows = self.tables[source]
                if source == "text_units":
                    # Let a search find the words of metadata before the text.
                    rows = restore_text(rows)
                rows = rows.select(*columns, text=text)
                # `self.tables` makes ids unique, but vectors are stored under the original ids.
                ids = self.index.tables[source].select("id")
                self._vectors[name] = InMemoryVectors(rows, ids, vectors, width)
            return self._vectors[name]


def _add_missing_documents(documents: pl.LazyFrame, text_units: pl.LazyFrame) -> pl.LazyFrame:
    """Add an empty document for each missing document that text units refer to."""
    known = documents.select("id").collect()
    named = text_units.select(id="document_id").collect().unique(maintain_order=True)
    unknown = named.join(known, on="id", how="anti", maintain_order="left").with_columns(
        title="id",
        path="id",
        human_readable_id=known.height + pl.int_range(pl.len(), dtype=pl.Int64),
        language=pl.lit("und"),
    )
    return _append_rows("documents", documents, unknown)


def _add_missing_communities(communities: pl.LazyFrame, reports: pl.LazyFrame) -> pl.LazyFrame:
    """Add a community without members for each missing community that a report names."""
    known = communities.select("community")
    unknown = (
        reports.join(known, on="community", how="anti", maintain_order="left")
        .unique("community", keep="first", maintain_order=True)
        .select(
            pl.col("community", "level", "parent", "children", "title", "period"),
            id=pl.format("unknown-{}", "community"),
            human_readable_id="community",
        )
        .collect()
    )
    return _append_rows("communities", communities, unknown)


def _append_rows(name: str, rows: pl.LazyFrame, new: pl.DataFrame) -> pl.LazyFrame:
    """Append new rows to a table, with default values for their missing columns."""
    if new.is_empty():
        return rows
    columns = [
        column if column in new.columns else default.alias(column)
        for column, default in get_column_defaults(TABLES[name]).items()
    ]
    return pl.concat([rows, new.lazy().select(columns)])


class InMemoryVectors:
    """Rows with texts and vectors in memory, with the search methods of `VectorTable`.

    Vectors are normalized to length 1. A row without a vector gets a vector of zeros, and only
    full-text search finds this row. If the argument `vectors` is None, no row has a vector.
    """

    def __init__(
        self,
        rows: pl.LazyFrame,
        ids: pl.LazyFrame,
        vectors: MicrosoftVectors | None,
        dimension: int,
    ) -> None:
        self._lazy, self._ids, self._vectors, self.dimension = rows, ids, vectors, dimension
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return self.rows.height

    @cached_property
    def rows(self) -> pl.DataFrame:
        """The rows without their vectors."""
        with self._lock:
            return self._lazy.collect()

    @cached_property
    def matrix(self) -> "npt.NDArray[np.float32]":
        """One vector per row, of length 1, or of zeros if the row has no vector."""
        with self._lock:
            ids = self._ids.collect()["id"]
            found = np.zeros((len(ids), self.dimension), np.float32)
            if self._vectors is None:
                return found
            for batch in self._vectors.batches():
                at = find_first_rows(batch["id"], ids)
                found[at[at >= 0]] = batch["vector"].to_numpy()[at >= 0]
            # Rows that repeat an id share the vector of the first row with this id.
            again = ids.is_first_distinct().not_().arg_true().to_numpy()
            found[again] = found[find_first_rows(ids.gather(again), ids)]
            np.nan_to_num(found, copy=False)
            lengths = np.linalg.norm(found, axis=1, keepdims=True)
            found /= np.where(lengths > 0, lengths, 1)
            return found

    def nearest(
        self, vector: "np.ndarray", top_k: int, columns: Sequence[str], where: str | None = None
    ) -> pl.DataFrame:
        """Return the rows nearest to a vector, best first; `similarity` is the cosine."""
        cosines = pl.Series(self.matrix @ np.asarray(vector, np.float32), dtype=pl.Float32)
        has_vector = pl.Series(self.matrix.any(axis=1), dtype=pl.Boolean)
        rows = self.rows.with_columns(similarity=cosines).filter(has_vector)
        return _select_best_rows(rows, "similarity", top_k, columns, where)

    def find_matching_rows(
        self, words: str, top_k: int, columns: Sequence[str], where: str | None = None
    ) -> pl.DataFrame:
        """Return the rows whose text matches the words best; `score` is the BM25 score."""
        patterns = list(dict.fromkeys(_make_word_patterns(words)))
        rows = self.rows
        if not patterns or not rows.height:
            return pl.DataFrame(schema=[*columns, "score"])
        text = pl.col("text")
        length = text.str.len_bytes().cast(pl.Float64)
        norm = rows.select(1 - _LENGTH_SHARE + _LENGTH_SHARE * length / length.mean()).to_series()
        score = pl.Series([0.0] * rows.height)
        counts = rows.select(text.str.count_matches(pattern).alias(pattern) for pattern in patterns)
        for count in counts.iter_columns():
            n_holding = int((count > 0).sum())
            rarity = math.log(1 + (rows.height - n_holding + 0.5) / (n_holding + 0.5))
            score = score + rarity * (count * (_SATURATION + 1) / (count + _SATURATION * norm))
        rows = rows.with_columns(score=score).filter(pl.col("score") > 0)
        return _select_best_rows(rows, "score", top_k, columns, where)

    def at(self, numbers: Sequence[int], columns: Sequence[str]) -> pl.DataFrame:
        """Return the rows with these row numbers, in the given order."""
        wanted = list(numbers)
        found = self.rows[wanted]
        if "vector" in columns:
            dtype = pl.Array(pl.Float32, self.dimension)
            found = found.with_columns(vector=pl.Series(self.matrix[wanted], dtype=dtype))
        return found.select(columns)


def _select_best_rows(
    rows: pl.DataFrame, score: str, top_k: int, columns: Sequence[str], where: str | None
) -> pl.DataFrame:
    """Return the `top_k` rows with the highest scores that meet the SQL condition `where`."""
    if where is not None:
        rows = rows.filter(pl.sql_expr(where))
    rows = rows.select(*columns, score)
    order = rows.sort(score, columns[0], descending=[True, False], maintain_order=True)
    return order.head(top_k)


def _make_word_patterns(words: str) -> list[str]:
    """Return a regular expression for each word of a question; it also matches inflected words.

    In scripts without spaces, each pair of adjacent characters counts as a word.
    """
    found = []
    for word in _WORD.findall(words.lower()):
        for run in _UNSPACED.findall(word):
            found += [run[at : at + 2] for at in range(max(1, len(run) - 1))]
        for part in _UNSPACED.sub(" ", word).split():
            # The stem of story and stories is stori: remove the i to match both words.
            root = stem_word(part).removesuffix("i")
            if len(root) >= _MIN_STEM_LETTERS:
                found.append(rf"(?i)\b{re.escape(root)}\w{{0,4}}\b")
            elif len(part) > 1 or part.isdigit():
                found.append(rf"(?i)\b{re.escape(part)}\b")
    return found
