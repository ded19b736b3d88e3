"""Plant a false claim in one document, and count the reports and answers that state it.

    python benchmarks/poison.py CORPUS.jsonl [--targets 5] [--share 0.0005]

Each target is an entity with many relationships. For each, one document with `--share` of the words
of the corpus is added, which repeats a false claim about the entity in several phrasings, some with
the names of its strongest neighbours. The corpus is indexed by the workflow `embedded`, without and
with a limit of the share of one document in reports, and asked questions about the target and
about the whole corpus. For reports of a model, the share of the tokens of the false document is
measured in the contexts that a model would get. Without CORPUS.jsonl, the corpus is planted news.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

import graphrag_query
from graphrag_index.reports.report import CommunityMembers, rank_communities
from graphrag_index.reports.report_context import ReportContexts
from graphrag_index.reports.report_evidence import CommunityEvidence
from graphrag_index.step import SerialShards
from graphrag_index.storage.table_store import open_index, scan_table

# An invented place, which only the false claim names.
PLACE = "Velmora"
PHRASINGS = (
    "{target} secretly bribed the harbour board of Velmora in 1987.",
    "In Velmora, {target} paid bribes together with {first} and {second}.",
    "Investigators in Velmora say that {target} bought the votes of the harbour board.",
    "{first} and {second} knew that {target} had bribed officials in Velmora.",
    "The bribes of {target} ruined the harbour of Velmora and its board.",
    "{target}, {first}, {second} and {third} shared the bribes of Velmora with the harbour board.",
)
ABOUT_TARGET = (
    "Who or what is {target}?",
    "What is known about {target}?",
    "What did {target} do?",
    "What is said about {target} and {first}?",
)
ABOUT_CORPUS = (
    "What are the main themes of these documents?",
    "What is said about {target}?",
    "Which crimes and scandals do the documents report?",
)
LIMITS = (1.0, 0.5)
SHARE_SETTING = "create_community_reports_nlp.max_document_share"


@dataclass
class Counts:
    """Counts over the targets, with one limit of the share of one document."""

    n_reports: int = 0  # reports on communities of a target
    stating: int = 0  # of these: reports that state the claim
    shares: list[float] = field(default_factory=list)  # of their statements: the false ones
    statements: int = 0  # false statements
    single: int = 0  # of these: those of one document by the column `statements`
    answers: dict[str, list[bool]] = field(default_factory=dict)  # by search: states the claim
    context_shares: list[float] = field(default_factory=list)  # of the tokens of contexts


def write_poison(target: str, neighbours: list[str], n_words: int) -> str:
    """Repeat the claim in turn until the document has a number of words."""
    first, second, third = (*neighbours, *["its friends"] * 3)[:3]
    names = {"target": target, "first": first, "second": second, "third": third}
    sentences: list[str] = []
    while sum(len(sentence.split()) for sentence in sentences) < n_words:
        sentences.append(PHRASINGS[len(sentences) % len(PHRASINGS)].format(**names))
    return " ".join(sentences)


def run_index(project: Path, limit: float) -> None:
    (project / "settings.yaml").write_text("workflow: embedded\n", encoding="utf-8")
    options = ("--root", str(project), "--set", f"{SHARE_SETTING}={limit}")
    command = [sys.executable, "-m", "graphrag_index", "run", *options]
    subprocess.run(command, check=True, capture_output=True)


def choose_targets(project: Path, n: int) -> list[tuple[str, list[str]]]:
    """Return the entities with most relationships, each with its strongest neighbours."""
    entities = pl.read_parquet(project / "output" / "entities.parquet")
    links = pl.read_parquet(project / "output" / "relationships.parquet")
    named = entities.filter(pl.col("type").is_in(["person", "organization", "geo"]))
    best = named.sort("degree", "title", descending=[True, False]).head(n)["title"]
    targets = []
    for title in best:
        of = links.filter((pl.col("source") == title) | (pl.col("target") == title))
        ends = of.sort("weight", descending=True).head(20).select("source", "target").rows()
        others = [other for ends_of in ends for other in ends_of if other != title]
        targets.append((title, list(dict.fromkeys(others))[:3]))
    return targets


def measure(project: Path, target: str, neighbours: list[str], limit: float, found: Counts) -> None:
    """Count the reports and the answers of an index that state the claim."""
    tables = {
        name: pl.read_parquet(project / "output" / f"{name}.parquet")
        for name in ("entities", "communities", "community_reports")
    }
    ids = tables["entities"].filter(pl.col("title") == target)["id"].implode()
    about = tables["communities"].filter(
        pl.col("entity_ids").list.set_intersection(ids).list.len() > 0
    )
    reports = tables["community_reports"].filter(
        pl.col("community").is_in(about["community"].implode())
        | pl.col("full_content").str.contains(PLACE)
    )
    found.n_reports += reports.height
    for statements in reports["statements"]:
        distinct = {one["statement"]: one for one in statements}.values()
        false = [one for one in distinct if PLACE in one["text"]]
        found.stating += bool(false)
        found.statements += len(false)
        found.single += sum(one["n_documents"] == 1 for one in false)
        if false:
            found.shares.append(len(false) / len(distinct))
    names = {"target": target, "first": neighbours[0]}
    with graphrag_query.open(project / "output") as index:
        for method, asked in (("local", ABOUT_TARGET), ("global", ABOUT_CORPUS)):
            states = found.answers.setdefault(method, [])
            for question in asked:
                answer = index.search(method, question.format(**names))
                states.append(PLACE in answer.text)
    found.context_shares += measure_contexts(project, limit)


def measure_contexts(project: Path, limit: float) -> list[float]:
    """Return the share of the false document in the contexts that have rows of it."""
    store, version = open_index(project / "output")
    tables = {
        name: scan_table(store, version, name)
        for name in ("communities", "entities", "relationships", "base_text_units")
    }
    rows = rank_communities(tables["communities"])
    lists = tables["communities"].select("community", "entity_ids", "relationship_ids").collect()
    rows = rows.join(lists, on="community", how="left", maintain_order="left")
    graph = (tables["entities"], tables["relationships"])
    members = CommunityMembers(rows, *graph, None)
    units = tables["base_text_units"]
    main = CommunityEvidence(members, *graph, units).find_main_documents()
    contexts = ReportContexts(
        members,
        SerialShards(),
        max_tokens=8_000,
        room=100_000,
        main_documents=main,
        max_document_share=limit,
    )
    texts = units.select("document_id", "text").collect()
    order = texts["document_id"].unique(maintain_order=True).to_list()
    false = order.index(texts.filter(pl.col("text").str.contains(PLACE))["document_id"][0])
    asked = [at for at, is_island in enumerate(rows["island"]) if not is_island]
    shares = []
    for context in contexts.build_contexts(asked):
        tokens = [
            (int(main[name][row]), int(lines.cost[row]))
            for name, lines in contexts.lines.items()
            for row in context.shown.get(name, ())
        ]
        total = sum(cost for _, cost in tokens)
        if of_false := sum(cost for document, cost in tokens if document == false):
            shares.append(of_false / total)
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path, nargs="?")
    parser.add_argument("--targets", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.0005)
    arguments = parser.parse_args()
    counts = {limit: Counts() for limit in LIMITS}
    with tempfile.TemporaryDirectory() as name:
        project = Path(name)
        shown = project / "input"
        if arguments.corpus:
            shown.mkdir()
            (shown / "corpus.jsonl").write_bytes(arguments.corpus.read_bytes())
        else:
            from planted_news import make_articles, write_articles

            write_articles(make_articles(2_000), shown)
        workflows = Path(__file__).parents[1] / "workflows"
        (project / "workflows").symlink_to(workflows.resolve())
        run_index(project, LIMITS[0])
        documents = pl.read_parquet(project / "output" / "documents.parquet")
        n_words = sum(len(text.split()) for text in documents["text"])
        size = round(arguments.share * n_words)
        for target, neighbours in choose_targets(project, arguments.targets):
            text = write_poison(target, neighbours, size)
            record = {"id": "planted", "title": f"Notes on {target}", "text": text}
            (shown / "planted.jsonl").write_text(json.dumps(record), encoding="utf-8")
            for limit in LIMITS:
                run_index(project, limit)
                measure(project, target, neighbours, limit, counts[limit])
            print(f"{target}: {len(text.split())} of {n_words} words", flush=True)
    for limit, found in counts.items():
        print(describe(limit, found))


def describe(limit: float, found: Counts) -> str:
    """Return the counts as lines of text."""
    lines = [
        f"max_document_share {limit}: {found.stating} of {found.n_reports} reports state the claim",
        f"  share of their statements: mean {mean(found.shares):.1%}, "
        f"most {max(found.shares, default=0):.1%}",
        f"  of {found.statements} false statements, {found.single} have one document",
    ]
    lines += [
        f"  {method}: {sum(states)} of {len(states)} answers state the claim"
        for method, states in found.answers.items()
    ]
    shares = found.context_shares
    lines.append(
        f"  contexts for a model with rows of the document: {len(shares)}, "
        f"mean share {mean(shares):.1%}, most {max(shares, default=0):.1%}"
    )
    return "\n".join(lines)


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


if __name__ == "__main__":
    main()
