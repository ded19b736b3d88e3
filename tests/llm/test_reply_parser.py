"""Replies of many forms: what the parser finds in them, cut anywhere, in any wrapping."""

import json
import random
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphrag_index.extraction.graph_reply import ExtractionFormat, FoundRecords, Schema
from graphrag_index.llm.reply_parser import parse_score, read_reply
from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat
from graphrag_index.steps.extract_covariates import CLAIMS_FORMAT
from tests.model_server.small_model_replies import SMALL_MODEL_REPLIES, SmallModelReply

TEXT = {"type": "string"}


def records_of(*fields: str) -> dict[str, Any]:
    record = {"type": "object", "properties": dict.fromkeys(fields, TEXT)}
    return {"type": "array", "items": record}


def format_of(properties: dict[str, Any]) -> ReplyFormat:
    """A format that accepts anything, and returns it."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ReplyFormat("anything", schema, ParsedReply, "")


GRAPH = format_of(
    {"entities": records_of("name", "type"), "relationships": records_of("source", "target")}
)
CLAIMS = format_of({"claims": records_of("subject", "status", "description")})
REPORT = format_of(
    {"title": TEXT, "rating": {"type": "number"}, "findings": records_of("summary", "explanation")}
)


def value_of(text: str, format: ReplyFormat = GRAPH) -> Any:
    return read_reply(text, format).value


ADA = {"name": "Ada", "type": "person"}
BOB = {"name": "Bob", "type": "person"}
LINK = {"source": "Ada", "target": "Bob"}
PLAIN = {"entities": [ADA, BOB], "relationships": [LINK]}
DUMPED = json.dumps(PLAIN)


def extracted(text: str) -> tuple[set[str], set[tuple[str, str]]]:
    """The names and links that extraction reads from a passage."""
    passage, nothing = squeezed(text), FoundRecords()
    found = ExtractionFormat((Schema(),)).reply_format(passage.__contains__, nothing, nothing)
    try:
        value = read_reply(text, found).value
    except ReplyError:
        return set(), set()
    return (
        {squeezed(entity.name) for entity in value.entities},
        {(squeezed(link.source), squeezed(link.target)) for link in value.relationships},
    )


def squeezed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("reply", SMALL_MODEL_REPLIES, ids=lambda reply: reply.title)
def test_small_models_lose_only_broken_records(reply: SmallModelReply) -> None:
    names, links = extracted(reply.text)
    ends = {name for pair in reply.relationships for name in pair}
    assert links == reply.relationships
    assert names >= reply.entities
    assert names <= reply.entities | reply.maybe | ends


@pytest.mark.parametrize("reply", SMALL_MODEL_REPLIES, ids=lambda reply: reply.title)
def test_a_truncated_reply_adds_no_records(reply: SmallModelReply) -> None:
    whole_names, whole_links = extracted(reply.text)
    # What a draft that is corrected later says counts too.
    whole_names |= reply.entities | reply.maybe
    for end in range(len(reply.text)):
        text = reply.text[:end]
        names, links = extracted(text)
        assert links <= whole_links, text
        assert names <= whole_names | {name for pair in whole_links for name in pair}, text


def test_plain_json_is_read_as_it_is() -> None:
    text = '{"entities": [{"NAME": "Ada"}], "relationships": [], "more": [NaN, 1.50, "\\u00e9"]}'
    assert repr(value_of(text)) == repr(json.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        f"Sure!\n\n{DUMPED}\n\nAnything else?",
        f"```json\n{DUMPED}\n```\nNote: [1] is {{mine}}.",
        f"```\n{DUMPED}",
        f'<think>Is it {{"entities": []}}?</think>{DUMPED}',
        f"It may be {{}}.\n</think>\n\n{DUMPED}",
        f"<think>One.</think>\n<think>Two.\n{DUMPED}",
        f"[THINK]So [1].[/THINK]{DUMPED}",
        f"<think>\nI begin.\n{DUMPED}\n",
        f"<|channel|>analysis<|message|>{{}}<|end|><|channel|>final<|message|>{DUMPED}",
        f"\ufeff{DUMPED}",
        json.dumps(DUMPED),
        json.dumps({"output": DUMPED}),
        json.dumps({"status": 1, "result": {"json": PLAIN}}),
        json.dumps([PLAIN]),
        json.dumps({"ENTITIES": [ADA, BOB], "Relationships": [LINK]}),
        json.dumps({"entities": json.dumps([ADA, BOB]), "relationships": [json.dumps(LINK)]}),
        json.dumps({"entities": [{**ADA}, {**BOB}], "Relation Ships": [LINK]}),
        json.dumps([ADA, BOB, LINK]),
        "\n".join(map(json.dumps, [ADA, BOB, LINK])),
        f"First {json.dumps(ADA)} and then\n{json.dumps(BOB)}\nand {json.dumps(LINK)}.",
        f"```json\n{json.dumps([ADA, BOB])}\n```\n```json\n{json.dumps([LINK])}\n```",
        f'{{"entities": {json.dumps([ADA, BOB])}}}\n\n{{"relationships": [{json.dumps(LINK)}]}}',
        DUMPED.replace('"', "'"),
        DUMPED.replace("}", ",}").replace("]", ",]"),
        DUMPED[:-1],
        DUMPED[:-2],
        DUMPED.replace("{", "{{").replace("}", "}}"),
        DUMPED.replace("}, {", "}\n{"),
        DUMPED.replace('{"', "{"),
        DUMPED.replace('"', '\\"'),
        DUMPED.replace("}, {", "},\\n{"),
        f"const graph = {DUMPED};",
        f'<tool_call>\n{{"name": "graph", "arguments": {DUMPED}}}\n</tool_call>',
        DUMPED.replace("}], ", "}, "),
        DUMPED.replace('"}, {', '", {'),
        DUMPED.replace("}, {", "}, "),
        DUMPED.replace("[{", "[", 1),
        DUMPED.replace("[{", "["),
        DUMPED.replace("[{", "{", 1),
        DUMPED[1:],
        DUMPED.replace('person"}, {', "person}, {"),
        "| Name | Type |\n|---|---|\n| Ada | person |\n| **Bob** | person |\n\n"
        "| Source | Target |\n|:--|--:|\n| Ada | Bob |",
        "entity\tAda\tperson\nentity\tBob\tperson\nrelationship\tAda\tBob\n",
        "(entity;Ada;person)\n(entity;Bob;person)\n(relationship;Ada;Bob)",
        '("entity", "Ada", "person")\n("entity", "Bob", "person")\n("relationship", "Ada", "Bob")',
    ],
)
def test_many_forms_have_the_same_value(text: str) -> None:
    assert value_of(text) == PLAIN


@pytest.mark.parametrize(
    ("broken", "meant"),
    [
        ('"known as "Bob", a pirate"', 'known as "Bob", a pirate'),
        ('"two\nlines"', "two\nlines"),
        ("“He said so”", "He said so"),
        ("'it\\'s his'", "it's his"),
        ("'it's his'", "it's his"),
        ('"so it was, [1], ', "so it was, [1"),
        ('"C:\\Program Files"', "C:\\Program Files"),
        ('"\\ud83d\\ude00 \\u00e9 \\q"', "😀 é \\q"),
        ("no quotes at all", "no quotes at all"),
        ("+08", 8),
        ("-1.5e2", -150.0),
        ("NaN", None),
        ("None", None),
        ("True", True),
        ("8/10", "8/10"),
        ("1" * 5000, "1" * 5000),
        ('"a" // a comment\n', "a"),
        ('"a" /* a comment */', "a"),
        ('"see https://example.org//x"', "see https://example.org//x"),
    ],
)
def test_broken_values_are_read_as_meant(broken: str, meant: Any) -> None:
    text = f'{{"title": "T", "rating": {broken}, "findings": [],}}'
    assert value_of(text, REPORT) == {"title": "T", "rating": meant, "findings": []}


def test_the_later_or_fuller_of_two_objects_is_used() -> None:
    answers = [
        {"title": "Draft", "rating": 1},
        {"title": "First", "rating": 1, "findings": []},
        {"title": "Last", "rating": 1, "findings": []},
        {"title": "More"},
    ]
    assert value_of("\n\nBetter:\n".join(map(json.dumps, answers)), REPORT) == answers[2]
    halves = '```json\n{"title": "T", "rating": 2}\n```\n```json\n{"findings": []}\n```'
    assert value_of(halves, REPORT) == {"title": "T", "rating": 2, "findings": []}


def test_keys_in_another_language_are_matched_by_order() -> None:
    text = json.dumps({"Behauptungen": [{"Wer": "Ada", "Stand": "true", "Was": "She wrote."}]})

    def read(data: Any) -> ParsedReply:
        good = [claim for claim in data.get("claims", []) if claim.get("subject")]
        if not good:
            raise ReplyError("no claims")
        return ParsedReply(good)

    claims = ReplyFormat("claims", CLAIMS.schema, read, "")
    assert read_reply(text, claims).value == [
        {"subject": "Ada", "status": "true", "description": "She wrote."}
    ]


def test_one_record_needs_no_list_around_it() -> None:
    claim = {"subject": "Ada", "description": "She wrote."}
    (read,) = read_reply(json.dumps({"claims": claim}), CLAIMS_FORMAT).value
    assert (read.subject, read.description) == ("Ada", "She wrote.")


def test_records_may_be_lists_or_tuples_of_fields() -> None:
    text = (
        "{'entities': [('Ada', 'person'), ('Bob', 'person'), ['Eve', 'x',]], 'relationships': []}"
    )
    assert value_of(text)["entities"] == [["Ada", "person"], ["Bob", "person"], ["Eve", "x"]]


def test_lines_are_records_of_any_schema() -> None:
    text = "claim | Ada | true | She wrote. |\n- **claim** | Bob | false"
    assert value_of(text, CLAIMS) == {
        "claims": [{"subject": "Ada", "status": "true", "description": "She wrote."}]
    }


def test_truncated_records_are_dropped_and_counted() -> None:
    reading = read_reply(DUMPED[: DUMPED.index("Bob") + 1], GRAPH)
    assert reading == ParsedReply({"entities": [ADA]}, dropped=1)
    lines = "\n".join(map(json.dumps, [ADA, BOB]))
    assert read_reply(lines[:-1], GRAPH) == ParsedReply(
        {"entities": [ADA], "relationships": []}, dropped=1
    )


def test_a_truncated_report_needs_all_of_its_keys() -> None:
    finding = {"summary": "S", "explanation": "E"}
    text = json.dumps({"title": "T", "rating": 7, "findings": [finding, finding]})
    assert value_of(text[:-5], REPORT) == {"title": "T", "rating": 7, "findings": [finding]}
    with pytest.raises(ReplyError, match="cut off before findings"):
        value_of(text[: text.index("7") + 4], REPORT)
    with pytest.raises(ReplyError, match="cut off before rating and findings"):
        value_of(text[: text.index("7") + 1], REPORT)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no answer"),
        ("<think>There is Ada, and", "reasoning and no answer"),
        ('<think>Maybe {"entities": [{"name": "Example"}]} or', "reasoning and no answer"),
        (
            "I am sorry, I cannot [really] do {that}.",
            "no JSON object with entities and relationships",
        ),
        ("null", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('{"na', "cut off"),
        ('{"entities": [{"name": "A', "contains no complete record"),
        ('{"entities": [', "contains no complete record"),
        ('{"entities": [], "relationships": [\n\n', "contains no complete record"),
        ('{"entities": []', "contains no complete record"),
        ('{"entities": [Ada Lovelace, Bob], "relationships": []}', "contains no complete record"),
        (json.dumps(GRAPH.schema), "repeats the schema"),
        ("Entity, they say, | is a word; entities, too.", "no JSON object"),
    ],
)
def test_an_unusable_reply_is_refused_with_a_reason(text: str, message: str) -> None:
    with pytest.raises(ReplyError, match=message):
        value_of(text)


# How an endless reply begins, and what it then repeats.
ENDLESS = {
    "lists": ("", "["),
    "objects": ("", '{"a":'),
    "both": ("", '[{"a":'),
    "quotes": ('{"a":', '"'),
    "openings": ("", '{"'),
    "members": ('{"a":"x "', 'b":"y" "'),
    "backslashes": ('{"a":"', "\\"),
    "comments": ("", "[/*"),
    "spaces": ('{"a":', '"' + " " * 5_000),
    "thoughts": ("", "<think>\n"),
    "fences": ("", "```json\n"),
    "rules": ("", "|a|b|\n|-|-|\n"),
    "delimiters": ("", "entity|"),
    "tuples": ("", "(entity|a\n"),
    "digits": ('{"a": ', "1"),
    "prose": ("", 'the cat, "sat" on: {x} [y]. '),
    "records": ('{"entities":[', '{"name":"x","type":"y"},'),
    "noise": ("", "".join(random.Random(7).choices("{}[]\",:ab \n\\|#'`<", k=100_000))),
}


@pytest.mark.parametrize(("start", "part"), ENDLESS.values(), ids=ENDLESS)
def test_endless_replies_are_parsed_in_linear_time(start: str, part: str) -> None:
    text = start + part * (1_000_000 // len(part))
    begun = time.process_time()
    with suppress(ReplyError):
        value_of(text)
    # Less than a second; minutes if each part looked at all before it.
    assert time.process_time() - begun < 20


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


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (4, 4.0),
        ("4/5", 4.0),
        ("8 out of 10", 4.0),
        ("80 %", 4.0),
        ("3,5", 3.5),
        ([2, 5], 2.0),
        (95, 5.0),
        (-3, 0.0),
        (1e-7, 1e-7),
        ("9" * 5_000, 5.0),
        (1e300, None),
        (float("inf"), None),
        ([], None),
        (True, None),
        (None, None),
        ("high", None),
    ],
)
def test_scores_of_any_form_are_converted_to_one_scale(value: object, score: float | None) -> None:
    assert parse_score(value, 5) == score
