"""Measure what a vector index finds of the nearest rows, and what that costs.

    python benchmarks/vector_recall.py --rows 32768 400000

The vectors are those of the passages and sentences of the retrieval sets in ../shared, repeated
with noise until there are enough; the questions are those of the sets. Printed as Markdown.
"""

import argparse
import gzip
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.llm.local.local_models import load_embedding_model
from graphrag_index.llm.local.model_package import MINILM
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.vector_store import (
    ROW_NUMBER,
    ROWS_PER_FRAGMENT,
    VectorTable,
    VectorWriter,
)
from graphrag_index.text.sentences import split_sentences

SETS = Path(__file__).parent.parent.parent / "shared/data/retrieval"
SENTENCES = 8_000
TABLE = TABLES["entity_description"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[32_768, 400_000])
    arguments = parser.parse_args()
    known, questions = read_vectors()
    print("| rows | making, s | recall of 10 | recall of 100 | ms | CPU ms |")
    print("| --- | --- | --- | --- | --- | --- |")
    for n_rows in arguments.rows:
        vectors = repeat(known, n_rows)
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            table = write(Path(folder), vectors)
            made = time.perf_counter() - started
            cells = measure(table, vectors, questions)
        print(f"| {n_rows:,} | {made:.0f} | {' | '.join(cells)} |", flush=True)


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
    """Return the shares found of the nearest 10 and 100, and the medians of one search."""
    nearest = [np.argsort(-(vectors @ question))[:100].tolist() for question in questions]
    for question in questions:
        table.nearest(question, 100, [ROW_NUMBER])
    shares, costs = [], []
    for question, expected in zip(questions, nearest, strict=True):
        started, worked = time.perf_counter(), time.process_time()
        found = table.nearest(question, 100, [ROW_NUMBER])[ROW_NUMBER].to_list()
        costs.append((time.perf_counter() - started, time.process_time() - worked))
        shares.append([len({*found[:n]} & {*expected[:n]}) / n for n in (10, 100)])
    return [
        *(f"{share:.3f}" for share in np.mean(shares, axis=0)),
        *(f"{ms:.1f}" for ms in np.median(costs, axis=0) * 1000),
    ]


if __name__ == "__main__":
    main()
