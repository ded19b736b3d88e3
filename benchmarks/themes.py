"""Measure whether the themes of projects are topics: whether similar documents share a theme.

    python benchmarks/themes.py PROJECT ... [--titles]

Of the 5 documents that are most similar to a document, by all-MiniLM-L6-v2 of its first 600
characters (extra minilm; the model reads English), counted are those of the same theme. 0 is what
chance gives with themes of these sizes, 1 is all. A document is of the theme with most of its text
units. `--titles` prints the reports' titles, and ten documents of each theme, to be read.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.llm.local.local_models import load_embedding_model

READ_CHARS, NEIGHBOURS = 600, 5
TITLES = 10
BATCH = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("projects", type=Path, nargs="+")
    parser.add_argument("--titles", action="store_true", help="print ten documents of each theme")
    arguments = parser.parse_args()
    columns = "project,documents,themes,as even as,largest %,themes of a document,shared"
    print(f"| {columns.replace(',', ' | ')} |\n|---{'|---:' * columns.count(',')}|")
    for project in arguments.projects:
        tables = read_tables(project / "output")
        print(f"| {' | '.join(map(str, measure(project.name, **tables)))} |", flush=True)
        if arguments.titles:
            print_titles(**tables)


def read_tables(output: Path) -> dict[str, pl.DataFrame]:
    """Read the documents, and the themes of their text units with the titles of reports."""
    documents = pl.read_parquet(output / "documents.parquet", columns=["id", "text"])
    units = pl.read_parquet(output / "text_units.parquet", columns=["id", "document_id"])
    communities = pl.read_parquet(output / "communities.parquet").filter(level=0)
    titles = pl.read_parquet(output / "community_reports.parquet").select("community", "title")
    themes = (
        communities.select("community", id="text_unit_ids")
        .explode("id")
        .join(units, on="id")
        .join(titles, on="community", how="left")
    )
    return {"documents": documents, "themes": themes}


def measure(name: str, documents: pl.DataFrame, themes: pl.DataFrame) -> tuple[Any, ...]:
    """Return the row of a project in the printed table."""
    main = documents.join(
        find_main_themes(themes), left_on="id", right_on="document_id", how="left"
    )
    label = main["community"].fill_null(-1).to_numpy()
    of_document = themes.select("document_id", "community").unique()
    sizes = np.unique(label[label >= 0], return_counts=True)[1] / max((label >= 0).sum(), 1)
    evenness = np.exp(-(sizes * np.log(sizes)).sum())
    near = find_nearest(documents["text"])
    same = float(((label[near] == label[:, None]) & (label >= 0)[:, None]).mean())
    chance = float(np.square(sizes).sum())
    return (
        name,
        documents.height,
        themes["community"].n_unique(),
        f"{evenness:.1f}",
        f"{100 * sizes.max():.0f}",
        f"{of_document.height / max(of_document['document_id'].n_unique(), 1):.2f}",
        f"{(same - chance) / (1 - chance):.3f}",
    )


def find_main_themes(themes: pl.DataFrame) -> pl.DataFrame:
    """Return for each document the theme with most of its text units."""
    counts = themes.group_by("document_id", "community", "title").len()
    order = counts.sort("document_id", "len", "community", descending=[False, True, False])
    return order.unique("document_id", keep="first", maintain_order=True)


def find_nearest(texts: pl.Series) -> npt.NDArray[np.int64]:
    """Return the numbers of the most similar other texts of each text."""
    model = load_embedding_model("all-MiniLM-L6-v2")
    vectors = np.asarray(model.embed(texts.str.head(READ_CHARS).to_list()), np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    near = []
    for start in range(0, len(vectors), BATCH):
        similarity = vectors[start : start + BATCH] @ vectors.T
        rows = np.arange(len(similarity))
        similarity[rows, start + rows] = -np.inf
        near.append(np.argsort(-similarity, axis=1, kind="stable")[:, :NEIGHBOURS])
    return np.concatenate(near)


def print_titles(documents: pl.DataFrame, themes: pl.DataFrame) -> None:
    """Print the title of each theme's report and the first lines of ten of its documents."""
    lines = documents.select("id", line=pl.col("text").str.strip_chars().str.split("\n").list[0])
    main = find_main_themes(themes).join(lines, left_on="document_id", right_on="id")
    for (number, title), rows in main.sort("community", "document_id").group_by(
        "community", "title", maintain_order=True
    ):
        print(f"\n{number} {title} ({rows.height} documents)")
        print("   ", " | ".join(rows["line"].str.head(75).head(TITLES)))


if __name__ == "__main__":
    main()
