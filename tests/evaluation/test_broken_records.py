"""Files of users with records of any form: they are read, or refused in one sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphrag_evaluation.judging.position_bias import read_verdicts
from graphrag_evaluation.questions import read_questions
from graphrag_evaluation.reference_file import read_marked_passages
from graphrag_index.errors import GraphRAGError
from tests.fixtures.examples import n_examples

FIELDS = {
    read_questions: {
        *("id", "question", "user_input", "answer", "aliases", "documents", "ref_urls", "spans"),
        *("statements", "reference_contexts", "supporting_facts", "paragraphs", "is_answerable"),
        *("document", "start_char", "end_char", "text", "title", "is_supporting", "statement"),
    },
    read_marked_passages: {
        *("document", "text", "entities", "relationships", "title", "type", "aliases"),
        *("start_char", "end_char", "source", "target", "optional"),
    },
    read_verdicts: {"question", "first", "second", "winner", "Winner", "Diversity"},
}
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 3), st.floats(), st.sampled_from(["", "a", "a\u2028"])
)


def records(names: set[str]) -> st.SearchStrategy[Any]:
    """Return JSON values whose objects have these names."""
    known = st.sampled_from(sorted(names))

    def nest(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.lists(inner, max_size=3) | st.dictionaries(known, inner, max_size=5)

    return st.dictionaries(known, st.recursive(VALUES, nest, max_leaves=6), max_size=6)


@pytest.mark.parametrize("read", FIELDS)
@settings(max_examples=n_examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_record_is_read_or_refused(
    read: Callable[[Path], Any], tmp_path: Path, data: st.DataObject
) -> None:
    path = tmp_path / "records.jsonl"
    lines = data.draw(st.lists(records(FIELDS[read]), min_size=1, max_size=2))
    path.write_text(
        "\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8"
    )
    try:
        found, told = read(path), ""
    except GraphRAGError as error:
        found, told = None, str(error)
    assert found or str(path) in told
