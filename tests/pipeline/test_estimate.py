"""Estimates: their parts, and the requests that a run then sends."""

import json
import re
import shutil
from collections import Counter
from dataclasses import astuple, replace
from io import StringIO
from pathlib import Path

import polars as pl
import pytest
import yaml

from graphrag_index.cli.printed_tables import write_estimate
from graphrag_index.extraction.graph_reply import EXTRACTION_INSTRUCTIONS
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.prompts import quote_text
from graphrag_index.llm.request import Usage
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.pipeline.estimate import (
    Estimate,
    GrowthRatios,
    PastReplies,
    Sample,
    StepCosts,
    estimate,
)
from graphrag_index.pipeline.workflow import load_workflow
from graphrag_index.schema.settings.project_settings import load_settings
from tests.fixtures.commands import call, files
from tests.fixtures.model_project import KEY, run, write_project
from tests.model_server import Server

CHAT_PRICE = {"input": 1.0, "output": 4.0}
# Of the project that is estimated.
N_DOCUMENTS = 3
# Steps that ask once for each text unit.
BY_TEXT_UNIT = ("extract_graph", "extract_covariates")


def estimated(
    root: Path, n_documents: int = 1_000, *overrides: str, batch: bool = False
) -> Estimate:
    settings = load_settings(root, overrides)
    found = estimate(
        load_workflow(root, settings.workflow), settings, root, n_documents, None, batch
    )
    assert found is not None
    return found


def sent_tokens(server: Server) -> Counter[str]:
    """The tokens of messages and formats by format; a request with a raised limit counts once."""
    encoding = load_encoding("o200k_base")
    tokens: Counter[str] = Counter()
    chats = [asked.json for asked in server.requests if "chat" in asked.path]
    for body in {json.dumps(body["messages"]): body for body in chats}.values():
        format = body["response_format"]["json_schema"]
        for message in body["messages"]:
            tokens[format["name"]] += count_tokens(message["content"], encoding) + 4
        tokens[format["name"]] += count_tokens(json.dumps(format["schema"]), encoding)
    return tokens


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Path:
    """A project that never ran; tests must not change it."""
    root = tmp_path_factory.mktemp("estimate") / "fresh"
    return write_project(root, server.url, N_DOCUMENTS, price=CHAT_PRICE)


@pytest.fixture(scope="module")
def whole(project: Path) -> Estimate:
    """What is said of all documents of that project."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODEL_KEY", KEY)
        return estimated(project)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory, server: Server, project: Path) -> Path:
    """The same after a run; tests must not change it."""
    server.requests.clear()
    folder = tmp_path_factory.mktemp("run") / "run"
    root = write_project(folder, server.url, N_DOCUMENTS, price=CHAT_PRICE)
    result = run(root)
    assert result.returncode == 0, result.stderr
    return root


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)


def test_nothing_is_sent_and_nothing_is_written(project: Path, server: Server) -> None:
    before = files(project)
    asked = len(server.requests)
    result = call(project, "estimate", MODEL_KEY=KEY)
    assert result.returncode == 0, result.stderr
    assert "extract_graph" in result.stdout
    assert len(server.requests) == asked
    assert files(project) == before
    assert not (project / "output").exists()


def test_the_table_adds_up(project: Path) -> None:
    arguments = ("--set", "models.embedding.price={input: 100.0}")
    lines = call(project, "estimate", *arguments, MODEL_KEY=KEY).stdout.splitlines()
    assert max(map(len, lines[:9])) <= 80
    assert (lines[1], lines[6]) == ("chat:", "embedding:")
    rows = [line.replace(",", "").split() for line in (*lines[2:6], *lines[7:9])]
    assert [row[0] for row in rows][-2:] == ["generate_text_embeddings", "all"]
    *steps, total = rows
    for column in (1, 2, 3, 4):
        assert sum(int(row[column]) for row in steps) == int(total[column])
    assert sum(float(row[5]) for row in steps) == pytest.approx(float(total[5]), abs=3e-4)
    for row in steps:
        prices = (100.0, 0.0) if row[0] == "generate_text_embeddings" else (1.0, 4.0)
        cost = (int(row[3]) * prices[0] + int(row[4]) * prices[1]) / 1e6
        assert float(row[5]) == pytest.approx(cost, abs=1e-4)
        # A guessed reply may be half or twice as long. A number of requests that depends on the
        # names that the model will find may be a third or three times as large.
        is_exact = row[0] in BY_TEXT_UNIT
        for column, times, factor in ((6, 0.5, 1 / 3), (7, 2.0, 3)):
            cost = (int(row[3]) * prices[0] + int(row[4]) * prices[1] * times) / 1e6
            if is_exact:
                assert float(row[column]) == pytest.approx(cost, abs=1e-4)
            elif row[0] != "generate_text_embeddings":
                assert float(row[column]) == pytest.approx(cost * factor, rel=0.02)


@pytest.mark.parametrize("scale", [1, 30, 1_000, 10_000, 30_000])
@pytest.mark.parametrize("is_priced", [True, False])
def test_the_table_of_a_corpus_of_any_size_fits_into_80_columns(
    whole: Estimate, scale: int, is_priced: bool
) -> None:
    lines = tuple(
        StepCosts(
            line.step, line.model, scale // 2, scale * 4, scale * 3_000, scale * 1_000,
            *((scale * 0.02, scale * 0.01, scale * 0.05) if is_priced else (None,) * 3), False,
        )
        for line in whole.lines
    )  # fmt: skip
    lines = (replace(lines[0], cost=scale * 0.02, low=scale * 0.01, high=scale * 0.05), *lines[1:])
    out = StringIO()
    write_estimate(replace(whole, lines=lines), out)
    printed = out.getvalue().splitlines()
    table = printed[: 1 + next(n for n, line in enumerate(printed) if line.startswith("all"))]
    assert max(map(len, table)) <= 80
    prompt = next(line for line in table if line.startswith("extract_graph")).split()[3]
    in_thousands = scale * 4_000 * len(lines) >= 10_000_000
    assert ("k prompt" in table[0]) == in_thousands
    assert prompt == f"{scale * (3 if in_thousands else 3_000):,}"


def test_an_unknown_price_is_told_and_never_0(whole: Estimate) -> None:
    out = StringIO()
    write_estimate(whole, out)
    lines = out.getvalue().splitlines()
    assert next(line for line in lines if "embeddings" in line).split()[-3:] == ["?"] * 3
    assert next(line for line in lines if line.startswith("all")).endswith("+?")
    assert "set `price` of this model" in lines[-3]


def test_batches_cost_half(tmp_path: Path) -> None:
    root = small(tmp_path, "Ada Quill met Bo Reed.")
    whole, half = (estimated(root, batch=batch).lines[0].cost for batch in (False, True))
    assert whole
    assert half == pytest.approx(whole / 2)


def test_a_workflow_without_models_costs_nothing(project: Path) -> None:
    settings = "generate_text_embeddings.model=static"
    result = call(
        project, "estimate", "--set", "workflow=embedded", "--set", settings, MODEL_KEY=KEY
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "The workflow embedded asks no model: a run costs nothing.\n"


def test_a_run_asks_what_was_estimated(whole: Estimate, indexed: Path, server: Server) -> None:
    lines = {line.step: line for line in whole.lines}
    ledger = Ledger(indexed / "output")
    asked = {row.step: row.done for row in ledger.step_statuses()}
    ledger.close()
    assert lines.keys() == asked.keys()
    for step, line in lines.items():
        assert line.n_answered == 0
        low, high = line.bound_requests()
        assert low <= asked[step] <= high, step
        if step in BY_TEXT_UNIT:
            assert low == line.n_to_ask == high
    sent = sent_tokens(server)
    for step, format in (("extract_graph", "extraction"), ("extract_covariates", "claims")):
        assert lines[step].prompt_tokens == sent[format], step


def test_requests_that_depend_on_names_are_said_to_be_a_guess(whole: Estimate) -> None:
    out = StringIO()
    write_estimate(whole, out)
    (line,) = (line for line in out.getvalue().splitlines() if "depend on the names" in line)
    assert line.startswith("Requests about text units are counted exactly.")
    for step in ("summarize_descriptions", "create_community_reports", "generate_text_embeddings"):
        assert re.search(rf"{step} [\d,]+ to [\d,]+", line), step
    assert "extract_graph" not in line


def test_a_part_of_the_documents_stands_for_all(project: Path, whole: Estimate) -> None:
    part = estimated(project, 3)
    assert (part.n_sampled, part.n_documents) == (3, whole.n_sampled)
    costs = [sum(line.cost or 0 for line in found.lines) for found in (whole, part)]
    assert costs[1] == pytest.approx(costs[0], rel=0.3)


def test_what_was_answered_costs_nothing(indexed: Path) -> None:
    lines = estimated(indexed).lines
    assert [(line.n_to_ask, line.prompt_tokens, line.cost) for line in lines] == [(0, 0, 0.0)] * 5
    ledger = Ledger(indexed / "output")
    done = {row.step: row.done for row in ledger.step_statuses()}
    ledger.close()
    assert {line.step: line.n_answered for line in lines} == done


def test_a_document_more_costs_what_is_new(indexed: Path, whole: Estimate, tmp_path: Path) -> None:
    root = tmp_path / "more"
    shutil.copytree(indexed, root)
    (root / "input" / "new.md").write_text("Ada Quill met Bo Reed in Oslo.", encoding="utf-8")
    extraction = estimated(root).lines[0]
    assert extraction.step == "extract_graph"
    assert extraction.n_to_ask == 1
    assert extraction.n_answered == whole.lines[0].n_to_ask
    # As long as the others were.
    assert extraction.replies_are_known
    assert extraction.low == extraction.cost == extraction.high
    assert extraction.reply_tokens > 100


def small(root: Path, text: str, name: str = "a.txt", **settings: object) -> Path:
    """A project of one text, whose extraction is all that is asked of models."""
    (root / "input").mkdir(parents=True)
    (root / "workflows").mkdir()
    (root / "input" / name).write_text(text, encoding="utf-8")
    steps = ["load_documents", "create_text_units", "extract_graph"]
    (root / "workflows" / "small.yaml").write_text(yaml.safe_dump(steps), encoding="utf-8")
    chat = {"model": "m", "base_url": "http://127.0.0.1:9/v1", "price": CHAT_PRICE, **settings}
    written = {"workflow": "small", "models": {"chat": chat}}
    (root / "settings.yaml").write_text(yaml.safe_dump(written), encoding="utf-8")
    return root


def test_a_tiny_corpus_costs_what_can_be_counted_by_hand(tmp_path: Path) -> None:
    root = small(tmp_path, "Ada Quill met Bo Reed.", "acme-q3-2022.txt", structured="json_object")
    (root / "prompts").mkdir()
    (root / "prompts" / "extract_graph.txt").write_text("Find all.", encoding="utf-8")
    line = estimated(root).lines[0]
    encoding = load_encoding("o200k_base")
    texts = (
        "Find all.",
        f"Document: acme q3 2022\nAbout: Acme\n\nPassage:\n{quote_text('Ada Quill met Bo Reed.')}",
        EXTRACTION_INSTRUCTIONS,
    )
    n_prompt = sum(count_tokens(text, encoding) for text in texts) + 2 * 4
    # A guess: two tokens for each of the passage, or one, or four.
    n_passage = count_tokens("Ada Quill met Bo Reed.", encoding)
    costs = [(n_prompt * 1.0 + times * n_passage * 4.0) / 1e6 for times in (2, 1, 4)]
    assert astuple(line) == (
        *("extract_graph", "chat", 0, 1, n_prompt, 2 * n_passage),
        *map(pytest.approx, costs),
        *(False, 0),
    )


def test_a_gleaning_is_one_request_more(tmp_path: Path) -> None:
    root = small(tmp_path, "Ada Quill met Bo Reed.")
    once, twice = estimated(root), estimated(root, 1_000, "extract_graph.max_gleanings=1")
    assert (once.lines[0].n_to_ask, twice.lines[0].n_to_ask) == (1, 2)


def test_what_does_not_fit_the_window_is_not_asked(tmp_path: Path) -> None:
    root = small(tmp_path, "Ada Quill met Bo Reed. " * 30, context_window=512, max_output_tokens=64)
    assert estimated(root).lines[0].n_to_ask == 0


def test_steps_of_ones_own_are_counted_too(tmp_path: Path) -> None:
    root = small(tmp_path, "Ada Quill met Bo Reed.")
    (root / "own.py").write_text(
        "import polars as pl\n"
        "from graphrag_index.llm.request import ParsedReply, ReplyFormat, Request\n"
        "from graphrag_index.schema.tables import Table\n"
        "from graphrag_index.step import step\n"
        "MOODS = Table('moods', 'one mood', '', {'mood': pl.String})\n"
        "SCHEMA = {'type': 'object', 'properties': {'mood': {'type': 'string'}}}\n"
        "FORMAT = ReplyFormat('mood', SCHEMA, lambda data: ParsedReply(data['mood']), 'As JSON.')\n"
        "@step(writes=[MOODS])\n"
        "def find_moods(documents: pl.DataFrame, *, chat_model) -> pl.DataFrame:\n"
        "    ask = [Request('a', [{'role': 'user', 'content': text}], FORMAT)\n"
        "           for text in documents['text']]\n"
        "    return pl.DataFrame({'mood': [o.values[0] for o in chat_model.replies(ask)]})\n",
        encoding="utf-8",
    )
    steps = ["load_documents", "create_text_units", "own:find_moods"]
    (root / "workflows" / "small.yaml").write_text(yaml.safe_dump(steps), encoding="utf-8")
    out = call(root, "estimate")
    assert out.returncode == 0, out.stderr
    model, line = out.stdout.splitlines()[1:3]
    assert model == "chat:"
    assert line.split()[:3] == ["find_moods", "0", "1"]


def test_earlier_replies_tell_how_long_later_ones_are(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for number in range(19):
        ledger.record_sent(str(number), "step", "unit", "chat")
        ledger.record_call(str(number), "step", "chat", Usage(10, 0, 100), None, "{}")
    assert PastReplies(tmp_path).average_past_replies("step", "chat") == (None, 0)
    ledger.record_call("19", "step", "chat", Usage(10, 0, 300), None)
    # Read while another process writes.
    past = PastReplies(tmp_path)
    assert past.average_past_replies("step", "chat") == (110, 0)
    assert past.average_past_replies("other", "chat") == (None, 0)
    ledger.record_call("20", "step", "chat", Usage(100, 75, 10), None)
    assert past.average_past_replies("step", "chat")[1] == 75 / 300
    assert past.find_entry("3") == ledger.find_entry("3")
    past.close()
    ledger.close()


def test_without_a_ledger_nothing_is_known(tmp_path: Path) -> None:
    past = PastReplies(tmp_path)
    assert past.is_empty
    assert (past.find_entry("a"), past.get_meta("a"), past.average_past_replies("a", "b")[0]) == (
        None,
        None,
        None,
    )
    assert list(tmp_path.iterdir()) == []


def chosen_from(sample: Sample, texts: list[str]) -> list[str]:
    batches = sample.sample_documents(pl.DataFrame({"text": texts}).lazy())
    return [text for batch in batches for text in batch["text"]]


def test_a_graph_grows_as_names_do() -> None:
    names = [f"{first}{last}" for first in ("Ab", "Ec", "Id", "Of", "Ul") for last in "abcdef"]
    story = " met ".join(names) + ". "
    sample = Sample(max_documents=1)
    assert chosen_from(sample, [story] * 4) == [story]
    # The same names again: more text, and no more names.
    assert sample.growth == GrowthRatios(text_units=4, names=1)
    other = story + " met ".join(f"{name}x" for name in names) + ". "
    chosen_from(sample, [story, other])
    assert sample.growth.names == 2


def test_documents_are_chosen_evenly() -> None:
    documents = [str(number) for number in range(1_000)]
    assert chosen_from(Sample(4), documents) == ["0", "250", "500", "750"]
    assert chosen_from(Sample(5_000), documents) == documents
