"""Measure what a vector index finds of the nearest rows, and what that costs.

    python benchmarks/vector_recall.py --rows 32768 400000
    python benchmarks/vector_recall.py --index FOLDER/100000/output-...

Without `--index`, the vectors are those of the passages and sentences of the retrieval sets in
../shared, repeated with noise until there are enough; the questions are those of the sets. With
`--index`, the vectors are those of each vector table of an index, and the questions are half
sentences of text units and questions about entities, embedded with the static model. The vectors
are written again, with an index as this version builds it. Printed as Markdown.
"""

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.llm.local.local_models import MINILM, load_embedding_model
from graphrag_index.llm.local.static_model import load_static_model
from graphrag_index.schema.tables import EMBEDDED_COLUMNS, TABLES
from graphrag_index.storage.table_store import open_index
from graphrag_index.storage.vector_store import (
    ROW_NUMBER,
    ROWS_PER_FRAGMENT,
    VectorTable,
    VectorWriter,
)
from graphrag_nlp.text.sentences import split_sentences

SETS = Path(__file__).parent.parent.parent / "shared/data/retrieval"
SENTENCES = 8_000
# Questions of each kind about an index, and characters of those that are part of a text unit.
INDEX_QUESTIONS = 60
SENTENCE_CHARS = 100
TABLE = TABLES["entity_description"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[32_768, 400_000])
    parser.add_argument("--index", type=Path, help="output folder of an index")
    arguments = parser.parse_args()
    print("| vectors | rows | making, CPU s | index, MiB | recall of 10 | of 100 | ms | CPU ms |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    sources = read_index(arguments.index) if arguments.index else repeat_known(arguments.rows)
    for name, vectors, questions in sources:
        with tempfile.TemporaryDirectory() as folder:
            started = time.process_time()
            table = write(Path(folder), vectors)
            made = time.process_time() - started
            size = sum(path.stat().st_size for path in Path(folder).glob("*/_indices/**/*.*"))
            cells = [f"{made:.0f}", f"{size / 2**20:,.0f}", *measure(table, vectors, questions)]
        print(f"| {name} | {len(vectors):,} | {' | '.join(cells)} |", flush=True)


def repeat_known(counts: Sequence[int]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield (name, vectors, questions) for each number of rows."""
    known, questions = read_vectors()
    for n_rows in counts:
        yield "retrieval sets", repeat(known, n_rows), questions


def read_index(output: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield (name, vectors, questions) for each vector table of an index."""
    store, version = open_index(output)
    tables = {
        name: store.vectors(name, version.tables[name])
        for name in EMBEDDED_COLUMNS
        if name in version.tables
    }
    random = np.random.default_rng(0)

    def draw(name: str, column: str) -> list[str]:
        rows = np.sort(random.choice(len(tables[name]), INDEX_QUESTIONS, replace=False))
        return tables[name].at(rows.tolist(), [column])[column].to_list()

    texts = [text[len(text) // 2 :][:SENTENCE_CHARS] for text in draw("text_unit_text", "text")]
    titles = [f"What is known about {title}?" for title in draw("entity_description", "title")]
    questions = load_static_model().embed([*texts, *titles])
    for name, table in tables.items():
        batches = table.batches(["vector"])
        yield name, np.concatenate([batch["vector"].to_numpy() for batch in batches]), questions


def read_vectors() -> tuple[np.ndarray, np.ndarray]:
    """Embed passages and some of their sentences, and the questions."""
    texts, sentences, questions = [], [], []
    for folder in sorted(path.parent for path in SETS.glob("*/corpus.jsonl.gz")):
        passages = [row["text"] for row in read_lines(folder / "corpus.jsonl.gz")]
        questions += [row["question"] for row in read_lines(folder / "questions.jsonl.gz")]
        texts += passages
        sentences += [text[s.start : s.end] for text in passages for s in split_sentences(text)]
    some = np.random.default_rng(0).permutation(sorted(set(sentences)))[:SENTENCES].tolist()
    model = load_embedding_model(MINILM.model)
    return model.embed([*texts, *some]), model.embed(questions)


def read_lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def repeat(known: np.ndarray, n_rows: int) -> np.ndarray:
    """Repeat vectors, each time with noise from a third of their length to all of it."""
    random = np.random.default_rng(1)
    vectors = known[random.permutation(n_rows) % len(known)]
    for start in range(0, n_rows, ROWS_PER_FRAGMENT):
        part = vectors[start : start + ROWS_PER_FRAGMENT]
        noise = random.standard_normal(part.shape, np.float32) / part.shape[1] ** 0.5
        part += noise * random.uniform(0.3, 1.0, (len(part), 1)).astype(np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return vectors


def write(folder: Path, vectors: np.ndarray) -> VectorTable:
    with VectorWriter(folder, TABLE, 1) as writer:
        for start in range(0, len(vectors), ROWS_PER_FRAGMENT):
            part = vectors[start : start + ROWS_PER_FRAGMENT]
            numbers = pl.int_range(start, start + len(part), eager=True)
            rows = pl.DataFrame({ROW_NUMBER: numbers, "id": numbers.cast(pl.String)}).with_columns(
                pl.lit("").alias("title"),
                pl.lit("").alias("type"),
                pl.lit(0, pl.Int64).alias("degree"),
                pl.lit("").alias("text"),
                pl.Series("vector", part, dtype=pl.Array(pl.Float32, part.shape[1])),
            )
            writer.append(rows)
    return VectorTable.open(folder, TABLE.name, writer.stored.lance_version)


def measure(table: VectorTable, vectors: np.ndarray, questions: np.ndarray) -> list[str]:
    """Return the shares found of the nearest 10 and 100, and the medians of one search.

    A row that is as near as the last of the nearest counts as one of them.
    """
    for question in questions:
        table.nearest(question, 100, [ROW_NUMBER])
    shares, costs = [], []
    for question in questions:
        started, worked = time.perf_counter(), time.process_time()
        found = table.nearest(question, 100, [ROW_NUMBER])[ROW_NUMBER].to_numpy()
        costs.append((time.perf_counter() - started, time.process_time() - worked))
        cosines = vectors @ question
        nearest = -np.sort(-np.partition(cosines, -100)[-100:])
        shares.append([(cosines[found[:n]] >= nearest[n - 1] - 1e-6).mean() for n in (10, 100)])
    return [
        *(f"{share:.3f}" for share in np.mean(shares, axis=0)),
        *(f"{ms:.1f}" for ms in np.median(costs, axis=0) * 1000),
    ]


if __name__ == "__main__":
    main()
