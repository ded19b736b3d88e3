"""Compare engines of communities: Leiden, and communities by k-cores.

    python benchmarks/communities.py [--sets sample,hotpot_train100] [--questions 100]
    python benchmarks/communities.py --corpus CORPUS.jsonl
    python benchmarks/communities.py --planted 400

The first form indexes the sample and the sets of benchmarks/retrieval.py with each engine, and
measures the communities, the tokens of their reports, what updates by 1 % change, and which gold
statements the context of global search covers; see benchmarks/community_engines.py.
The second form indexes a corpus without 1 % of its records, then with all, by `graphrag-index run`.
The third form indexes a planted corpus (`benchmarks/planted.py`), and compares the communities
with the planted topics by the adjusted Rand index, which is 0 for chance and 1 for equality.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import planted
import polars as pl

from graphrag_index.llm.tokens import count_tokens, load_encoding

WORKFLOWS = Path(__file__).parents[1] / "workflows"


def index(project: Path, *settings: str) -> dict[str, pl.DataFrame]:
    """Index a project, and return its communities, reports and entities."""
    (project / "settings.yaml").write_text("workflow: embedded\n", encoding="utf-8")
    shutil.copytree(WORKFLOWS, project / "workflows", dirs_exist_ok=True)
    options = [word for setting in settings for word in ("--set", f"create_communities.{setting}")]
    command = [sys.executable, "-m", "graphrag_index", "run", "--root", str(project), *options]
    subprocess.run(command, check=True, capture_output=True)
    names = ("communities", "community_reports", "entities")
    return {name: pl.read_parquet(project / "output" / f"{name}.parquet") for name in names}


def describe(tables: dict[str, pl.DataFrame]) -> str:
    """Return the sizes of the communities of each level, and the tokens of all reports."""
    levels = (
        tables["communities"]
        .group_by("level")
        .agg(n=pl.len(), median=pl.col("size").median(), largest=pl.col("size").max())
    )
    encoding = load_encoding("o200k_base")
    reports = tables["community_reports"]["full_content"]
    tokens = sum(count_tokens(text, encoding) for text in reports)
    rows = [f"{n} of {m:.0f} (at most {most})" for _, n, m, most in levels.sort("level").rows()]
    return f"by level {', '.join(rows)}; {len(reports)} reports, {tokens} tokens"


def compare_update(corpus: Path, engine: str, stability: str, folder: Path) -> str:
    """Index a corpus without the last 1 % of its records, then with all; describe the change."""
    records = corpus.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "input").mkdir()
    shown = folder / "input" / "corpus.jsonl"
    settings = (f"engine={engine}", f"stability={stability}")
    shown.write_text("".join(records[: -max(1, len(records) // 100)]), encoding="utf-8")
    before = list_contents(index(folder, *settings))
    shown.write_text("".join(records), encoding="utf-8")
    tables = index(folder, *settings)
    shares = [
        np.mean([one not in set(old) for one in new])
        for old, new in zip(before, list_contents(tables), strict=True)
    ]
    return (
        f"{describe(tables)}; changed by 1 %: members of {shares[0]:.1%} of the communities, "
        f"text of {shares[1]:.1%} of the reports"
    )


def list_contents(tables: dict[str, pl.DataFrame]) -> tuple[list[str], list[str]]:
    """Return the members of each community, and the text of each report without citations."""
    members = tables["communities"]["entity_ids"].list.sort().list.join(" ")
    texts = [
        re.sub(r" \[Data: [^]]*\]", "", text)
        for text in tables["community_reports"]["full_content"]
    ]
    return members.to_list(), texts


def compare_planted(text_units: int, engine: str, folder: Path) -> str:
    """Index a planted corpus; return the agreement of each level with the planted topics."""
    planted.make_corpus(text_units, folder)
    truth = json.loads((folder / "ground_truth.json").read_text(encoding="utf-8"))
    topics = {one["name"].upper(): one["topic"] for one in truth["entities"]}
    tables = index(folder, f"engine={engine}")
    titles = dict(tables["entities"].select("id", pl.col("title").str.to_uppercase()).rows())
    found = tables["communities"].select("level", "community", "entity_ids").explode("entity_ids")
    indices = []
    for _, level in found.sort("level").group_by("level", maintain_order=True):
        pairs = [
            (topics[titles[entity]], community)
            for community, entity in level.select("community", "entity_ids").rows()
            if titles[entity] in topics
        ]
        indices.append(f"{adjusted_rand(*zip(*pairs, strict=True)):.3f} ({len(pairs)} entities)")
    return f"{describe(tables)}; agreement by level {', '.join(indices)}"


def adjusted_rand(first: tuple[int, ...], second: tuple[int, ...]) -> float:
    """Return the adjusted Rand index of two partitions of the same items."""

    def count_pairs(labels: object) -> float:
        _, sizes = np.unique(np.array(labels), axis=0, return_counts=True)
        return float((sizes * (sizes - 1)).sum() / 2)

    both = count_pairs(list(zip(first, second, strict=True)))
    one, other, n = count_pairs(first), count_pairs(second), len(first)
    chance = one * other / (n * (n - 1) / 2)
    return (both - chance) / ((one + other) / 2 - chance)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--engines", default="native,core,rkh,m2hc,mrc")
    parser.add_argument("--planted", type=int, help="number of text units of a planted corpus")
    parser.add_argument("--sets", default="sample,hotpot_train100,2wiki_101s,musique_train100")
    parser.add_argument("--questions", type=int, default=100, help="at most, of each set")
    arguments = parser.parse_args()
    engines = arguments.engines.split(",")
    if not arguments.planted and not arguments.corpus:
        from community_engines import compare_engines

        compare_engines(engines, arguments.sets.split(","), arguments.questions)
    for name in engines:
        if arguments.planted:
            with tempfile.TemporaryDirectory() as made:
                print(name, compare_planted(arguments.planted, name, Path(made)), flush=True)
        for stability in ("keep", "rebuild") if arguments.corpus else ():
            with tempfile.TemporaryDirectory() as made:
                text = compare_update(arguments.corpus, name, stability, Path(made))
                print(name, stability, text, flush=True)
