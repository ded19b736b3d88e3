"""Replies in any wrapping, cut anywhere, of any text."""

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphrag_index.llm.reply_parser import read_reply
from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat
from tests.fixtures.reply_formats import CLAIMS, GRAPH, REPORT, format_of, value_of

ANYTHING = format_of({})
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
WRAPPINGS = [
    "{}",
    "Here it is: {}",
    "{}\nI hope that this helps!",
    "```json\n{}\n```",
    "Sure:\n```\n{}\n```\nAnything [else]?",
    "<think>Well, [1] or {{2}}?</think>\n{}",
    "They want JSON.\n</think>\n{}",
    "<thinking>\n\n</thinking>```JSON\n{}```",
]


@given(
    value=st.dictionaries(st.text(), JSON, min_size=1, max_size=4).filter(
        lambda value: not isinstance(value.get("properties"), dict)
    ),
    wrapping=st.sampled_from(WRAPPINGS),
    indent=st.sampled_from([None, 2]),
    ascii=st.booleans(),
)
# A key that looks like JSON whose quotes are escaped.
@example(value={'{"': None}, wrapping="Here it is: {}", indent=2, ascii=False)
def test_any_object_is_found_in_any_wrapping(
    value: dict[str, Any], wrapping: str, indent: int | None, ascii: bool
) -> None:
    text = wrapping.format(json.dumps(value, indent=indent, ensure_ascii=ascii))
    assert value_of(text, ANYTHING) == value


NAMES = st.text(min_size=1, max_size=12) | st.sampled_from(
    ['"quoted", he', "a: {b}", "x]}", "it's", "back\\slash", "// no", "```", "</think>", "|"]
)
REPLIES = st.fixed_dictionaries(
    {
        "entities": st.lists(
            st.fixed_dictionaries(
                {"name": NAMES, "type": NAMES, "more": st.lists(NAMES, max_size=2)}
            ),
            max_size=3,
        ),
        "relationships": st.lists(
            st.fixed_dictionaries(
                {
                    "source": NAMES,
                    "target": NAMES,
                    "strength": st.integers(),
                    "of": st.just({"a": 1}),
                }
            ),
            max_size=3,
        ),
    }
)


@settings(deadline=None)
@given(value=REPLIES, data=st.data(), indent=st.sampled_from([None, 2]), ascii=st.booleans())
def test_the_beginning_of_a_reply_has_the_first_records(
    value: dict[str, Any], data: st.DataObject, indent: int | None, ascii: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii)
    end = data.draw(st.integers(0, len(text)))
    try:
        found = value_of(text[:end])
    except ReplyError:
        return
    assert found.keys() <= value.keys()
    for name, records in found.items():
        assert records == value[name][: len(records)]
    n_found = sum(map(len, found.values()))
    # No more than the record that was cut is lost.
    n_closed = max((n for n in range(7) if _closes(text[:end], n)), default=0)
    assert n_found >= n_closed


def _closes(text: str, n: int) -> bool:
    """Tell whether a text has the ends of `n` records, by the strict parser."""
    decoder = json.JSONDecoder()
    count = at = 0
    while count < n:
        at = min(
            (p for p in (text.find('{"name"', at), text.find('{"source"', at)) if p >= 0),
            default=-1,
        )
        if at < 0:
            return False
        try:
            _, at = decoder.raw_decode(text, at)
        except ValueError:
            return False
        count += 1
    return True


def read_or_refused(text: str, format: ReplyFormat) -> ParsedReply | str:
    try:
        return read_reply(text, format)
    except ReplyError as error:
        return str(error)


@settings(deadline=None)
@given(
    st.text() | st.text(alphabet="{}[]\",:'\\|#`<>/ \nabentitiesrelationships-(1.)", max_size=80)
)
def test_any_text_is_read_or_refused(text: str) -> None:
    for format in (GRAPH, CLAIMS, REPORT, ANYTHING):
        found = read_or_refused(text, format)
        # A refusal tells the model why; and a reply is read from the ledger as it was at first.
        assert found != ""
        assert found == read_or_refused(text, format)
