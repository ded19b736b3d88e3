"""What an estimate is made of: what was asked before, answers of the right size, and a sample."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.request import ParsedReply, ReplyFormat, Request, Usage
from graphrag_index.pipeline.counting_models import PastReplies
from graphrag_index.pipeline.estimate import Growth, Sample
from graphrag_index.pipeline.simulated_replies import sentences_with_names, simulate_reply


def test_earlier_replies_tell_how_long_later_ones_are(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for number in range(19):
        ledger.record_sent(str(number), "step", "unit", "chat")
        ledger.record_reply(str(number), "step", "chat", "{}", Usage(10, 0, 100), None)
    assert PastReplies(tmp_path).reply_tokens("step", "chat") is None
    ledger.record_cost("19", "step", "chat", Usage(10, 0, 300), None)
    # Read while another process writes.
    past = PastReplies(tmp_path)
    assert past.reply_tokens("step", "chat") == 110
    assert past.reply_tokens("other", "chat") is None
    ledger.record_cost("20", "step", "chat", Usage(100, 75, 10), None)
    assert past.cached_share("step", "chat") == 75 / 300
    assert past.cached_share("other", "chat") == 0
    assert past.find("3") == ledger.find("3")
    past.close()
    ledger.close()


def test_without_a_ledger_nothing_is_known(tmp_path: Path) -> None:
    past = PastReplies(tmp_path)
    assert past.is_empty
    assert (past.find("a"), past.get_meta("a"), past.reply_tokens("a", "b")) == (None, None, None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The harbour was quiet. Ada Quill left the harbour.", [[], ["Ada Quill"]]),
        ("Über Österreich schrieb Émile Zola.", [["Über Österreich", "Émile Zola"]]),
        ("長江大橋が完成した。長江大橋は長い。", [["長江", "江大", "大橋"]] * 2),
        ("", []),
    ],
)
def test_names_are_found(text: str, names: list[list[str]]) -> None:
    assert [found for _, found in sentences_with_names(text)] == names


@given(st.text(), st.sampled_from(["extraction", "claims", "description", "community_report"]))
def test_every_text_has_an_answer_that_json_can_hold(text: str, name: str) -> None:
    format = ReplyFormat(name, {}, ParsedReply, "")
    messages = [{"role": "system", "content": ""}, {"role": "user", "content": text}]
    made = simulate_reply(Request("a", messages, format))  # type: ignore[arg-type]
    assert json.loads(json.dumps(made)) == made


def chosen_from(sample: Sample, texts: list[str]) -> list[str]:
    batches: Any = sample.step()(pl.DataFrame({"text": texts}).lazy())
    return [text for batch in batches for text in batch["text"]]


def test_a_graph_grows_as_names_do() -> None:
    names = [f"{first}{last}" for first in ("Ab", "Ec", "Id", "Of", "Ul") for last in "abcdef"]
    story = " met ".join(names) + ". "
    sample = Sample(max_documents=1, text_unit_tokens=100)
    assert chosen_from(sample, [story] * 4) == [story]
    # The same names again: more text, and no more names. None recurs in the one document.
    assert sample.growth == Growth(text_units=4, names=1, pairs=1, repeated=4, repetitions=4)
    other = story + " met ".join(f"{name}x" for name in names) + ". "
    chosen_from(sample, [story, other])
    assert sample.growth.names == 2


def test_documents_are_chosen_evenly() -> None:
    documents = [str(number) for number in range(1_000)]
    assert chosen_from(Sample(4, 100), documents) == ["0", "250", "500", "750"]
    assert chosen_from(Sample(5_000, 100), documents) == documents
