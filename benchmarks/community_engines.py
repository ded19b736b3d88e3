"""Measure engines of communities on the same corpora: sizes, tokens, changes and coverage.

Each corpus is indexed once; then each engine makes its communities and reports. "Prompt" is the
tokens of the rows that a model would read for all reports, up to `MAX_PROMPT_TOKENS` each, and
"reports" the tokens of the reports that were written without a model. "Changed" is the share of
communities with other members after an update that brings 1 % of the documents, drawn
`N_UPDATES` times from the graph; themes and islands are left out. Coverage is the share of gold
statements in the context of global search, by default and of reports alone. Half of the questions,
chosen by a hash, is for the choice of a variant; the other half is held out. Differences are
paired, to the first engine; p-values are corrected by Holm over the other engines.
"""

import gzip
import json
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import yaml
from global_coverage import Questions, questions_of_sample, questions_of_set
from retrieval import REPOSITORY, SETS, WHOLE_DOCUMENTS, cache, index

from graphrag_evaluation.coverage import THRESHOLD, statement_scores
from graphrag_evaluation.graph_quality.community_stability import (
    EvidenceGraph,
    measure_stability,
    read_evidence_graph,
)
from graphrag_evaluation.graph_quality.graph_figures import Figure
from graphrag_evaluation.graph_quality.graph_measurement import open_place
from graphrag_evaluation.runs import TOKEN_BUDGETS, context_within
from graphrag_evaluation.statistics import (
    SEED,
    Interval,
    bootstrap_interval,
    compare_paired,
    holm_p_values,
)
from graphrag_evaluation.systems import Place, SystemPlan, open_systems
from graphrag_index.communities.core_hierarchy import HEURISTICS
from graphrag_index.communities.hierarchy_update import find_changed_nodes, update_hierarchy
from graphrag_index.communities.leiden import build_hierarchy
from graphrag_index.communities.simple_graph import Integers
from graphrag_index.schema.settings.step_sections import CreateCommunities
from graphrag_index.text.tokens import count_tokens, load_encoding

SEARCHES = {"default": (), "reports alone": ("global_search.passage_share=0",)}
HALVES = ("dev", "held out")
N_UPDATES = 20
N_RESAMPLES = 20
UPDATED_SHARE = 0.01
MAX_PROMPT_TOKENS = 8_000
N_TIMED = 5

# (search, budget of tokens) → share of the statements of each question.
Coverage = dict[tuple[str, int], list[float]]


class Measured(NamedTuple):
    """The figures of one engine on one corpus; `changed` by the way to update."""

    levels: str
    n_communities: int
    prompt_tokens: int
    report_tokens: int
    stable: Interval
    cpu_seconds: float
    changed: dict[str, list[float]]
    coverage: Coverage


def compare_engines(engines: Sequence[str], corpora: Sequence[str], n_questions: int) -> None:
    """Print tables of the engines on each corpus, then the coverage of all corpora together."""
    pooled: dict[str, dict[str, Coverage]] = {half: {} for half in HALVES}
    pooled_names: dict[str, list[str]] = {half: [] for half in HALVES}
    for corpus in corpora:
        project = prepare(corpus)
        if project is None:
            print(f"{corpus}: {SETS / corpus} is not there", flush=True)
            continue
        questions: Questions = []
        found: dict[str, Measured] = {}
        for engine in engines:
            choices = (
                f"create_communities.engine={engine}",
                "create_communities.stability=rebuild",
            )
            index(project, *choices)
            questions = questions or read_questions(corpus, project, n_questions)
            found[engine] = measure(project, engine, questions)
        print_engines(corpus, found)
        halves = [half_of(text) for text, _ in questions]
        for half in HALVES:
            kept = [at for at, one in enumerate(halves) if one == half]
            names = [questions[at][0] for at in kept]
            part = {engine: select(one.coverage, kept) for engine, one in found.items()}
            print_coverage(f"{corpus}, {half}", part, names)
            pooled_names[half] += names
            for engine, coverage in part.items():
                of_engine = pooled[half].setdefault(engine, {})
                for key, shares in coverage.items():
                    of_engine.setdefault(key, []).extend(shares)
    for half in HALVES:
        print_coverage(f"all corpora, {half}", pooled[half], pooled_names[half])


def half_of(question: str) -> str:
    """Return the half of a question, which depends on its text alone."""
    return HALVES[blake2b(question.encode(), digest_size=1).digest()[0] % 2]


def select(coverage: Coverage, kept: Sequence[int]) -> Coverage:
    """Return the coverage of some of the questions."""
    return {key: [shares[at] for at in kept] for key, shares in coverage.items()}


def prepare(corpus: str) -> Path | None:
    """Write the project of a corpus: the sample, or a set; None without its data."""
    project = cache() / f"communities-{corpus}"
    is_sample = corpus == "sample"
    if not is_sample and not (SETS / corpus / "corpus.jsonl.gz").exists():
        return None
    shutil.copytree(REPOSITORY / "workflows", project / "workflows", dirs_exist_ok=True)
    if is_sample:
        shutil.copytree(REPOSITORY / "input", project / "input", dirs_exist_ok=True)
        shutil.copy(REPOSITORY / "settings.yaml", project)
        return project
    (project / "input").mkdir(exist_ok=True)
    with gzip.open(SETS / corpus / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    passages = (
        {**row, "id": str(row["id"]), "text": f"{row.get('title') or ''}\n{row['text']}".strip()}
        for row in rows
    )
    text = "".join(json.dumps(passage) + "\n" for passage in passages)
    (project / "input" / "passages.jsonl").write_text(text, encoding="utf-8")
    settings = {
        "workflow": "embedded",
        "load_documents": {"id_column": "id", "include": ["*.jsonl"]},
        "create_text_units": WHOLE_DOCUMENTS,
    }
    (project / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return project


def read_questions(corpus: str, project: Path, limit: int) -> Questions:
    """Return the questions of a corpus, with the statements that answer them."""
    if corpus != "sample":
        return questions_of_set(corpus, limit)
    with ExitStack() as stack:
        [system] = open_systems(stack, [SystemPlan("global", Place(project), "global")])
        return questions_of_sample(system)[:limit]


def measure(project: Path, engine: str, questions: Questions) -> Measured:
    """Measure the communities of the index of a project."""
    output = project / "output"
    names = ("communities", "community_reports", "entities", "relationships")
    tables = {name: pl.read_parquet(output / f"{name}.parquet") for name in names}
    levels = (
        tables["communities"]
        .filter(~pl.col("island"))
        .group_by("level")
        .agg(n=pl.len(), median=pl.col("size").median(), largest=pl.col("size").max())
        .sort("level")
    )
    described = ", ".join(f"{n} of {m:.0f} (≤ {most})" for _, n, m, most in levels.rows())
    checked = open_place(Place(project))
    stable = measure_stability(checked, N_RESAMPLES, SEED)["stable_communities"]
    assert isinstance(stable, Figure)
    evidence = read_evidence_graph(checked)
    assert evidence is not None
    seconds, changed = measure_updates(
        evidence, CreateCommunities.model_validate({"engine": engine})
    )
    encoding = load_encoding("o200k_base")
    texts = tables["community_reports"]["full_content"]
    return Measured(
        described,
        tables["communities"].height,
        count_prompt_tokens(tables),
        sum(count_tokens(text, encoding) for text in texts),
        stable.interval,
        seconds,
        changed,
        measure_coverage(project, questions),
    )


def count_prompt_tokens(tables: dict[str, pl.DataFrame]) -> int:
    """Count the tokens of the rows of all communities that are no islands, within the limit."""
    encoding = load_encoding("o200k_base")
    communities = tables["communities"].filter(~pl.col("island"))
    parts = []
    for name, ids, columns in (
        ("entities", "entity_ids", ("title", "type", "description")),
        ("relationships", "relationship_ids", ("source", "target", "description")),
    ):
        lines = tables[name].select(
            "id", line=pl.concat_str(columns, separator=",", ignore_nulls=True)
        )
        costs = [count_tokens(line, encoding) for line in lines["line"]]
        rows = communities.select("id", row=ids).explode("row").drop_nulls()
        known = pl.DataFrame({"row": lines["id"], "cost": costs})
        parts.append(rows.join(known, on="row").select("id", "cost"))
    sums = pl.concat(parts).group_by("id").agg(pl.col("cost").sum())
    return int(sums["cost"].clip(upper_bound=MAX_PROMPT_TOKENS).sum())


def measure_updates(
    evidence: EvidenceGraph, settings: CreateCommunities
) -> tuple[float, dict[str, list[float]]]:
    """Return the CPU seconds of the hierarchy, and the shares that each update changes."""
    whole = evidence.resample(np.ones(evidence.n_documents, dtype=bool))
    seconds = []
    for _ in range(N_TIMED):
        started = time.process_time()
        rebuilt = build_hierarchy(whole, settings)
        seconds.append(time.process_time() - started)
    random = np.random.default_rng(SEED)
    n_new = max(1, round(UPDATED_SHARE * evidence.n_documents))
    # The hierarchies of k-cores of the paper are built again in any case.
    changed: dict[str, list[float]] = {"rebuild": [], "keep": []}
    for _ in range(N_UPDATES):
        is_old = np.ones(evidence.n_documents, dtype=bool)
        is_old[random.choice(evidence.n_documents, n_new, replace=False)] = False
        old = evidence.resample(is_old)
        before = build_hierarchy(old, settings)
        changed["rebuild"].append(share_of_new(before, rebuilt))
        if settings.engine in HEURISTICS:
            changed["keep"].append(changed["rebuild"][-1])
            continue
        is_changed = find_changed_nodes(whole, old, np.zeros(old.n_nodes, dtype=bool))
        kept = update_hierarchy(whole, before, is_changed, settings)
        changed["keep"].append(share_of_new(before, kept))
    return float(np.median(seconds)), changed


def share_of_new(before: Sequence[Integers], after: Sequence[Integers]) -> float:
    """Return the share of the communities of several entities that had other members before."""
    old, new = (
        [one for labels in levels for one in members_of(labels)] for levels in (before, after)
    )
    known = set(old)
    return sum(one not in known for one in new) / max(1, len(new))


def members_of(labels: Integers) -> list[bytes]:
    """Return the members of each part with several nodes, as bytes."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-2))
    parts = np.split(order, starts[1:])
    return [part.tobytes() for part in parts if len(part) > 1 and labels[part[0]] >= 0]


def measure_coverage(project: Path, questions: Questions) -> Coverage:
    """Return the share of the statements of each question in the contexts of global search."""
    coverage: Coverage = {}
    plans = [SystemPlan(name, Place(project), "global", set_) for name, set_ in SEARCHES.items()]
    with ExitStack() as stack:
        for system in open_systems(stack, plans):
            for budget in TOKEN_BUDGETS:
                shares = coverage[system.name, budget] = []
                for text, statements in questions:
                    lines = context_within(system, text, budget).splitlines()
                    scores = statement_scores(statements, lines, system.word_weights)
                    shares.append(sum(score >= THRESHOLD for score in scores) / len(scores))
    return coverage


def print_engines(corpus: str, found: dict[str, Measured]) -> None:
    """Print a table of communities, and one of what updates change."""
    print(f"\n### {corpus}\n")
    print("| engine | communities | prompt | reports | stable | CPU s | changed, rebuild | keep |")
    print("| --- " * 8 + "|")
    for engine, one in found.items():
        shares = []
        for way, values in one.changed.items():
            mean = bootstrap_interval(values)
            base = next(iter(found.values())).changed[way]
            assert mean is not None
            shares.append(f"{mean.mean:.1%} {describe_difference(base, values)}")
        print(
            f"| {engine} | {one.n_communities} | {one.prompt_tokens:,} | {one.report_tokens:,} "
            f"| {one.stable.mean:.2f} [{one.stable.low:.2f}, {one.stable.high:.2f}] "
            f"| {one.cpu_seconds:.3f} | {' | '.join(shares)} |"
        )
    print()
    for engine, one in found.items():
        print(f"- {engine}, by level without islands: {one.levels}")
    sys.stdout.flush()


def describe_difference(base: Sequence[float], values: Sequence[float]) -> str:
    """Return the mean of the paired differences with its interval."""
    one = bootstrap_interval(np.subtract(values, base).tolist())
    assert one is not None
    return f"({one.mean:+.3f} [{one.low:+.3f}, {one.high:+.3f}])"


def print_coverage(name: str, found: dict[str, Coverage], questions: Sequence[str]) -> None:
    """Print the coverage of each engine, and its paired difference to the first one."""
    if not questions:
        return
    engines = list(found)
    first = found[engines[0]]
    print(f"\n{name}: coverage, {len(questions)} questions\n")
    titles = [f"{search}, {budget:,}" for search, budget in first]
    print(f"| engine | {' | '.join(titles)} |")
    print("| --- " * (len(titles) + 1) + "|")
    columns = [column(found, key, questions) for key in first]
    for at, engine in enumerate(engines):
        print(f"| {engine} | {' | '.join(one[at] for one in columns)} |", flush=True)


def column(found: dict[str, Coverage], key: tuple[str, int], questions: Sequence[str]) -> list[str]:
    """Return the cells of one search and budget, one for each engine."""
    engines = list(found)
    base = found[engines[0]][key]
    differences = [compare_paired(base, found[engine][key], questions) for engine in engines[1:]]
    corrected = holm_p_values([one.p_value for one in differences if one is not None])
    cells = [f"{np.mean(base):.3f}"]
    for engine, p_value in zip(engines[1:], corrected, strict=True):
        shares = found[engine][key]
        difference = describe_difference(base, shares)
        cells.append(f"{np.mean(shares):.3f} {difference}, p {p_value:.3f}")
    return cells
