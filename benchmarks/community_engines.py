"""Measure engines of communities on the same corpora: sizes, tokens, changes and coverage.

Each corpus is indexed once; then each engine makes its communities and reports. "Prompt" is the
tokens of the rows that a model would read for all reports, up to `MAX_PROMPT_TOKENS` each, and
"reports" the tokens of the reports that were written without a model. "Changed" is the share of
communities with other members after an update that brings 1 % of the documents, drawn
`N_UPDATES` times from the graph; themes and islands are left out. Coverage is the share of gold
statements in the context of global search: by default, and of reports alone, at the level that
covers most for the engine and the corpus. That level is chosen on one half of the questions, at
the smaller budget; the other half is held out. The questions of the sample are those that
`graphrag-index evaluate make` makes, split by document; the halves of a set follow from a hash of
the question. Differences are paired, to the first engine; p-values are corrected by Holm over the
other engines.
"""

import gzip
import json
import multiprocessing
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import yaml
from global_coverage import questions_of_set
from retrieval import REPOSITORY, SETS, WHOLE_DOCUMENTS, cache, index

from graphrag_evaluation.coverage import THRESHOLD, statement_scores
from graphrag_evaluation.generation.make_questions import KINDS, SPLITS, make_questions
from graphrag_evaluation.graph_quality.community_stability import (
    EvidenceGraph,
    measure_stability,
    read_evidence_graph,
)
from graphrag_evaluation.graph_quality.graph_figures import Figure
from graphrag_evaluation.graph_quality.graph_measurement import open_place
from graphrag_evaluation.retrieval_scores import TOKEN_BUDGETS, contexts_within
from graphrag_evaluation.statistics import (
    SEED,
    Interval,
    bootstrap_interval,
    compare_paired,
    holm_p_values,
)
from graphrag_evaluation.systems import Place, System, SystemPlan, open_systems
from graphrag_index.communities.core_hierarchy import HEURISTICS
from graphrag_index.communities.hierarchy_update import find_changed_nodes, update_hierarchy
from graphrag_index.communities.leiden import build_hierarchy
from graphrag_index.communities.simple_graph import Integers
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.schema.settings.step_sections import CreateCommunities

REPORTS_ALONE = ("global_search.passage_share=0", "global_search.max_map_share=1")
# To tune on, and held out.
HALVES = SPLITS
N_UPDATES = 20
N_RESAMPLES = 20
UPDATED_SHARE = 0.01
MAX_PROMPT_TOKENS = 8_000
N_TIMED = 5
N_WORKERS = 2

# (search, budget of tokens) → share of the statements of each question.
Coverage = dict[tuple[str, int], list[float]]


class Question(NamedTuple):
    """A question with the statements that answer it; a cluster depends on one document."""

    text: str
    statements: tuple[str, ...]
    half: str
    cluster: str


class Measured(NamedTuple):
    """The figures of one engine on one corpus; `changed` by the way to update."""

    levels: str
    n_communities: int
    prompt_tokens: int
    report_tokens: int
    stable: Interval
    cpu_seconds: float
    changed: dict[str, list[float]]
    level: str
    coverage: dict[str, Coverage]  # by half


def compare_engines(engines: Sequence[str], corpora: Sequence[str], n_questions: int) -> None:
    """Print tables of the engines on each corpus, then the coverage of all corpora together."""
    pooled: dict[str, dict[str, Coverage]] = {half: {} for half in HALVES}
    pooled_clusters: dict[str, list[str]] = {half: [] for half in HALVES}
    measure_one = partial(measure_corpus, engines=engines, limit=n_questions)
    with ProcessPoolExecutor(N_WORKERS, multiprocessing.get_context("spawn")) as pool:
        for corpus, (questions, found) in zip(corpora, pool.map(measure_one, corpora), strict=True):
            if not found:
                print(f"{corpus}: {SETS / corpus} is not there", flush=True)
                continue
            print_engines(corpus, found)
            for half in HALVES:
                clusters = [one.cluster for one in questions if one.half == half]
                part = {engine: one.coverage[half] for engine, one in found.items()}
                print_coverage(f"{corpus}, {half}", part, clusters)
                pooled_clusters[half] += [f"{corpus} {cluster}" for cluster in clusters]
                for engine, coverage in part.items():
                    of_engine = pooled[half].setdefault(engine, {})
                    for key, shares in coverage.items():
                        of_engine.setdefault(key, []).extend(shares)
    for half in HALVES:
        print_coverage(f"all corpora, {half}", pooled[half], pooled_clusters[half])


def measure_corpus(
    corpus: str, engines: Sequence[str], limit: int
) -> tuple[list[Question], dict[str, Measured]]:
    """Index a corpus with each engine; return its questions and the figures of the engines."""
    questions: list[Question] = []
    found: dict[str, Measured] = {}
    project = prepare(corpus)
    for engine in engines if project else ():
        assert project is not None
        choices = (f"create_communities.engine={engine}", "create_communities.stability=rebuild")
        index(project, *choices)
        questions = questions or read_questions(corpus, project, limit)
        found[engine] = measure(project, engine, questions)
        print(f"{corpus}, {engine}: measured", file=sys.stderr, flush=True)
    return questions, found


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


def read_questions(corpus: str, project: Path, limit: int) -> list[Question]:
    """Return the questions of a set, or as many that are made from the sample."""
    if corpus != "sample":
        return [
            Question(text, tuple(statements), half_of(text), text)
            for text, statements in questions_of_set(corpus, limit)
        ]
    kinds = [kind for kind in KINDS if kind != "unanswerable"]
    with ExitStack() as stack:
        [system] = open_systems(stack, [SystemPlan("global", Place(project), "global")])
        made = make_questions(system.index, limit, SEED, kinds)
    return [
        Question(
            one.text,
            one.statements or tuple(span.text for span in one.spans),
            one.split,
            one.cluster,
        )
        for one in made
    ]


def half_of(question: str) -> str:
    """Return the half of a question, which depends on its text alone."""
    return HALVES[blake2b(question.encode(), digest_size=1).digest()[0] % 2]


def measure(project: Path, engine: str, questions: Sequence[Question]) -> Measured:
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
    level, coverage = measure_coverage(project, questions, levels["level"].to_list())
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
        level,
        coverage,
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


def measure_coverage(
    project: Path, questions: Sequence[Question], levels: Sequence[int]
) -> tuple[str, dict[str, Coverage]]:
    """Return the best level of reports alone, and the coverage of both searches by half."""

    def cover(half: str, budget: int, *overrides: str) -> list[float]:
        """Return the share of the statements of each question of a half."""
        chosen = [one for one in questions if one.half == half]
        with ExitStack() as stack:
            plans = [SystemPlan("global", Place(project), "global", overrides)]
            [system] = open_systems(stack, plans)
            return [cover_one(system, one, budget) for one in chosen]

    tuned = {
        level: sum(
            cover(HALVES[0], TOKEN_BUDGETS[0], *REPORTS_ALONE, f"global_search.level={level}")
        )
        for level in ("null", *map(str, levels))
    }
    best = max(tuned, key=lambda level: tuned[level])
    searches = {"default": (), "reports alone": (*REPORTS_ALONE, f"global_search.level={best}")}
    coverage = {
        half: {
            (name, budget): cover(half, budget, *overrides)
            for name, overrides in searches.items()
            for budget in TOKEN_BUDGETS
        }
        for half in HALVES
    }
    return "of each question" if best == "null" else best, coverage


def cover_one(system: System, question: Question, budget: int) -> float:
    """Return the share of the statements of a question that a context covers."""
    lines = contexts_within(system, question.text, [budget])[budget].splitlines()
    scores = statement_scores(question.statements, lines, system.word_weights)
    return sum(score >= THRESHOLD for score in scores) / len(scores)


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
        print(f"- {engine}: reports alone of level {one.level}; by level, no islands: {one.levels}")
    sys.stdout.flush()


def describe_difference(base: Sequence[float], values: Sequence[float]) -> str:
    """Return the mean of the paired differences with its interval."""
    one = bootstrap_interval(np.subtract(values, base).tolist())
    assert one is not None
    return f"({one.mean:+.3f} [{one.low:+.3f}, {one.high:+.3f}])"


def print_coverage(name: str, found: dict[str, Coverage], clusters: Sequence[str]) -> None:
    """Print the coverage of each engine, and its paired difference to the first one."""
    if not clusters:
        return
    engines = list(found)
    first = found[engines[0]]
    print(f"\n{name}: coverage, {len(clusters)} questions\n")
    titles = [f"{search}, {budget:,}" for search, budget in first]
    print(f"| engine | {' | '.join(titles)} |")
    print("| --- " * (len(titles) + 1) + "|")
    columns = [column(found, key, clusters) for key in first]
    for at, engine in enumerate(engines):
        print(f"| {engine} | {' | '.join(one[at] for one in columns)} |", flush=True)


def column(found: dict[str, Coverage], key: tuple[str, int], clusters: Sequence[str]) -> list[str]:
    """Return the cells of one search and budget, one for each engine."""
    engines = list(found)
    base = found[engines[0]][key]
    differences = [compare_paired(base, found[engine][key], clusters) for engine in engines[1:]]
    corrected = holm_p_values([one.p_value for one in differences if one is not None])
    cells = [f"{np.mean(base):.3f}"]
    for engine, p_value in zip(engines[1:], corrected, strict=True):
        shares = found[engine][key]
        difference = describe_difference(base, shares)
        cells.append(f"{np.mean(shares):.3f} {difference}, p {p_value:.3f}")
    return cells
