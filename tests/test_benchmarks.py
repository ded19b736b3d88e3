"""The benchmarks run, and measure what they say: not how long anything takes."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
import yaml

import graphrag_query
from benchmarks.labels import (
    HALVES,
    KINDS,
    LABELLED,
    LANGUAGES,
    OPTIONAL,
    TYPES,
    Mark,
    parse_marks,
    read_half,
)
from benchmarks.planted import make_corpus
from benchmarks.retrieval import write_project
from benchmarks.score import adjusted_rand_index
from benchmarks.synthetic import make_graph_index, make_index, title_of
from graphrag_index.cli.exchange_commands import GRAPH_FORMATS
from graphrag_index.export.graph_files import open_property_graph
from graphrag_query.answer import Answer, Context, Outcome
from tests.conftest import REPOSITORY
from tests.fixtures.small_graph import graph_of


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("aabb", "xxyy", 1.0),
        ("aabb", "yyxx", 1.0),
        ("aabb", "xxyz", 4 / 7),
        ("aaaa", "wxyz", 0.0),
        ("aabb", "xyxy", -0.5),
    ],
)
def test_the_adjusted_rand_index_of_small_partitions(
    left: str, right: str, expected: float
) -> None:
    assert adjusted_rand_index(left, right) == pytest.approx(expected)


def test_a_planted_corpus_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        make_corpus(16, tmp_path / name, seed)
    first, again, other = (
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*") if path.is_file()}
        for name in ("first", "again", "other")
    )
    assert first == again
    assert first != other


def test_a_synthetic_index_can_be_asked_for_its_neighbourhoods(tmp_path: Path) -> None:
    steps = make_index(tmp_path, 1_000)
    assert list(steps) == ["make_tables", "create_search_tables"]
    store = graphrag_query.open(tmp_path / "output").store
    assert store.links.n_text_units == 500
    titles = store.scan("entities").collect()["title"].to_list()
    assert titles == [title_of(number) for number in range(1_000)]
    assert len(set(titles)) == 1_000
    near = store.links.relationships_of(7)
    assert len(near.entities) == store.entities([7])["degree"].item()
    assert near.weights.tolist() == sorted(near.weights.tolist(), reverse=True)
    assert store.reports([0, 1, 50])["level"].to_list() == [0, 1, 2]
    assert (store.entities([7])["frequency"] > 0).all()


def test_a_graph_to_export_is_linked_in_all_its_parts(tmp_path: Path) -> None:
    make_graph_index(tmp_path, 1_000)
    graph = graph_of(tmp_path / "output", min_degree=1)
    nodes, links = open_property_graph(graph)
    n_rows = {part.name: sum(batch.height for batch in part.batches()) for part in nodes}
    n_rows |= {part.name: sum(batch.height for batch in part.batches()) for part in links}
    assert n_rows == {
        **{"Entity": 1_000, "Document": 63, "TextUnit": 500, "Community": 111},
        **{"RELATED": 5_000, "PART_OF": 500, "MENTIONS": 10_000, "IN_COMMUNITY": 3_000},
        "PARENT": 110,
    }
    assert graph.n_dangling == 0


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the benchmarks need os.wait4")
def test_a_million_relationships_are_exported_in_bounded_memory(tmp_path: Path) -> None:
    script = [sys.executable, str(REPOSITORY / "benchmarks/export.py"), "--folder", str(tmp_path)]
    done = subprocess.run(script, capture_output=True, encoding="utf-8", check=True)
    rows = [line.split("|")[1:-1] for line in done.stdout.splitlines() if line.startswith("| ")]
    peaks = {row[0].strip(): int(row[-1].replace(",", "")) for row in rows[2:]}
    assert set(peaks) == set(GRAPH_FORMATS)
    # The texts of the largest form are 2,500 MB.
    assert max(peaks.values()) < 1_000


def test_a_planted_corpus_states_what_its_truth_holds(tmp_path: Path) -> None:
    make_corpus(40, tmp_path)
    truth = json.loads((tmp_path / "ground_truth.json").read_text(encoding="utf-8"))
    texts = [path.read_text(encoding="utf-8") for path in sorted(tmp_path.glob("input/*.txt"))]
    kinds = {entity["name"]: entity["type"] for entity in truth["entities"]}

    assert len(texts) == 5
    assert [name for name in kinds if not any(name in text for text in texts)] == []
    for relation in truth["relations"]:
        ends = [relation["source"], relation["target"]]
        assert set(ends) <= kinds.keys()
        # A surname may stand for a person.
        forms = [{end, end.split()[-1]} if kinds[end] == "person" else {end} for end in ends]
        assert any(
            all(any(form in sentence for form in ways) for ways in forms)
            for text in texts
            for sentence in text.replace("\n\n", " ").split(". ")
        )


@pytest.mark.skipif(os.name == "nt", reason="the benchmarks need os.wait4")
def test_the_benchmark_of_indexing_prints_every_step_and_the_scores() -> None:
    script = REPOSITORY / "benchmarks/index.py"
    done = subprocess.run(
        [sys.executable, str(script), "--sizes", "4", "8"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split("|")[1].strip() for line in done.stdout.splitlines() if "|" in line]
    for step in ("extract_graph_nlp", "generate_text_embeddings"):
        assert rows.count(step) == 3  # once for each size, once for the growth
    assert {"entity_recall", "relation_precision", "ari_level_0"} <= set(rows)


def test_a_comparison_of_checkouts_finds_values_types_order_bytes_and_failures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    from compare_checkouts import FAILED, Table, compare

    rows = pl.DataFrame({"id": ["a", "b"], "n": [1, 2]})
    table = Table(rows, "digest")
    cases = {
        "equal": (table, Table(rows.clone(), "digest"), ""),
        "value": (table, Table(rows.with_columns(n=pl.Series([1, 3]))), "row 1, n:\n- 2\n+ 3"),
        "type": (table, Table(rows.cast({"n": pl.Int32})), "Int32"),
        "order": (table, Table(rows.reverse(), "digest"), "row 0, id:\n- a\n+ b"),
        "bytes": (table, Table(rows, "other"), "bytes"),
        "answer": ('{"outcome": "answered"}', '{"outcome": "no_evidence"}', "no_evidence"),
        "failure": (FAILED, FAILED, FAILED),
    }
    before = {("case", name): pair[0] for name, pair in cases.items()}
    after = {("case", name): pair[1] for name, pair in cases.items()}
    found = compare(before, after | {("case", "new"): table})
    assert found.pop(("case", "new")) == "It is only there after."
    assert [name for _, name in found if not found["case", name]] == ["equal"]
    for name, (_, _, expected) in cases.items():
        assert expected in found["case", name]


@pytest.mark.parametrize("kind", ["reports", "patients", "tickets"])
def test_documents_in_a_series_name_their_subject_at_one_place(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    from series import ANSWERABLE, PLACES, make_corpus, words, write_project

    corpus = make_corpus(kind, 5, 4, 36, seed=1)
    assert corpus.questions == make_corpus(kind, 5, 4, 36, seed=1).questions
    for asked in corpus.questions:
        assert bool(asked.evidence) == (asked.kind in ANSWERABLE)
        for sentence in asked.evidence:
            holding = {cell for cell, text in corpus.texts.items() if sentence in text}
            assert len(holding) == 1
            assert holding <= asked.cells

    names = {thing for thing, _ in corpus.texts}
    named = {}
    for place in PLACES:
        write_project(corpus, place, tmp_path / place, seed=1)
        paths = list((tmp_path / place / "input").iterdir())
        texts = [path.read_text(encoding="utf-8") for path in paths]
        files = [words(path.stem.replace("-", " ").replace("_", " ")) for path in paths]
        said = [sum(words(name)[0] in file for file in files) for name in names]
        named[place] = (all(said), any(name in text for name in names for text in texts))
    assert named == {
        "title": (False, True),
        "file": (True, False),
        "metadata": (False, True),
        "field": (False, True),
    }


def test_a_figure_of_another_document_is_foreign_as_an_answer_and_as_the_nearest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    from series import judge, make_corpus

    corpus = make_corpus("reports", 5, 4, 36, seed=1)
    asked = next(asked for asked in corpus.questions if asked.kind == "one")
    [right], [sentence] = asked.values, asked.evidence
    values = [((thing, number), value) for (thing, number, _), value in corpus.facts.items()]
    foreign = next(value for cell, value in values if cell not in asked.cells)
    own = next(value for cell, value in values if cell in asked.cells and value != right)
    nearest = "No sentence found answers this clearly. Nearest: So. [1]"
    refused = Answer(asked.text, f"It was {foreign}.", Outcome.NO_EVIDENCE)
    tables = {"Sources": pl.DataFrame({"text": ["Talk."] * 12 + [f"Talk. {sentence}"]})}
    deeper = Answer(asked.text, "", Outcome.ANSWERED, context=Context(tables, "", 0, {}))
    for text, expected in (
        (f"It was {right}. [1] It was {foreign}. [2]", (1.0, False, False, False)),
        (f"It was {foreign}. [1] It was {right}. [2]", (1.0, True, True, False)),
        (f"It was {own}. [1]", (0.0, False, True, False)),
        (f"{nearest} It was {foreign}. [2]", (0.0, False, False, True)),
    ):
        given = judge(corpus, asked, Answer(asked.text, text, Outcome.ANSWERED), deeper)
        assert (given.said, given.foreign, given.wrong, given.nearest) == expected, text
        assert (given.read, given.read_24, given.refused) == (0.0, 1.0, False)
    given = judge(corpus, asked, refused, deeper)
    assert (given.refused, given.said, given.foreign, given.wrong) == (True, 0.0, False, False)
    given = judge(corpus, asked, deeper, deeper)
    assert (given.read_12, given.read, given.n_passages) == (0.0, 1.0, 13)


class SmallSet:
    """A set of the retrieval harness, of two passages."""

    name = "small"
    corpus = (
        {"id": "p1", "title": "Tom Crean", "text": "He was an Irish seaman."},
        {"id": "p2", "title": "", "text": "The Fram was a ship."},
    )
    extractions = None


@pytest.mark.parametrize(("titled", "first"), [(True, "Tom Crean"), (False, "")])
def test_a_passage_of_a_retrieval_set_is_one_document(
    titled: bool, first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETRIEVAL_CACHE", str(tmp_path))
    project = write_project(SmallSet(), "embedded", {"workflow": "embedded"}, titled=titled)
    lines = (project / "input/passages.jsonl").read_text("utf-8").splitlines()
    text = "He was an Irish seaman."
    assert [json.loads(line) for line in lines] == [
        {"id": "p1", "title": first, "text": f"{first}\n{text}" if first else text},
        {"id": "p2", "title": "", "text": "The Fram was a ship."},
    ]
    assert project == write_project(SmallSet(), "embedded", {"workflow": "embedded"}, titled=titled)


def test_marks_are_spans_of_the_text_without_marks() -> None:
    text, marks = parse_marks("Dr. [[Leah Okafor|person]] of the [[WHO|organization/acronym]]")
    assert text == "Dr. Leah Okafor of the WHO"
    assert marks == (
        Mark(4, 15, frozenset({"person"})),
        Mark(23, 26, frozenset({"organization", "acronym"})),
    )


@pytest.mark.parametrize("half", HALVES)
def test_a_half_has_five_well_formed_passages_of_each_kind_and_language(half: str) -> None:
    passages = read_half(half)
    assert Counter((p.language, p.kind) for p in passages) == {
        (language, kind): 5 for language in LANGUAGES for kind in KINDS
    }
    assert len({p.id for p in passages}) == len(passages)
    for passage in passages:
        assert 60 <= len(passage.text.split()) <= 130, passage.id
        assert 1 <= len(passage.terms) <= 3, passage.id
        assert re.search(r"\[\[|\]\]", passage.text) is None, passage.id
        assert all(mark.types <= TYPES or mark.types == {OPTIONAL} for mark in passage.marks)


@pytest.mark.parametrize("file", ["questions.yaml", "held_questions.yaml"])
def test_a_question_says_what_a_good_answer_mentions_or_counts(file: str) -> None:
    entries = yaml.safe_load((LABELLED / file).read_text(encoding="utf-8"))
    assert len({(entry["corpus"], entry["question"]) for entry in entries}) == len(entries)
    for entry in entries:
        themes = [phrase for line in entry.get("mentions", []) for phrase in line]
        counts = [*entry.get("begins", []), *entry.get("order", [])]
        assert bool(themes) != bool(counts), entry["question"]
        assert all(isinstance(phrase, str) for phrase in themes + counts), entry["question"]
