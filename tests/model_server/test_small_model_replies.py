"""Consistency of the file of replies."""

import json
import re

import pytest

from tests.model_server.small_model_replies import SMALL_MODEL_REPLIES, SmallModelReply


def test_there_are_many_replies_in_each_form() -> None:
    assert len(SMALL_MODEL_REPLIES) >= 40
    assert len({reply.title for reply in SMALL_MODEL_REPLIES}) == len(SMALL_MODEL_REPLIES)
    assert {reply.form for reply in SMALL_MODEL_REPLIES} == {"json", "lines", "tuples"}


@pytest.mark.parametrize("reply", SMALL_MODEL_REPLIES, ids=lambda reply: reply.title)
def test_what_is_to_be_kept_stands_in_the_reply(reply: SmallModelReply) -> None:
    text = re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), reply.text)
    text = " ".join(text.split())
    pairs = {name for pair in reply.relationships for name in pair}
    assert all(name in text for name in reply.entities | reply.maybe | pairs)


def test_most_replies_are_not_plain_json() -> None:
    plain = 0
    for reply in SMALL_MODEL_REPLIES:
        try:
            value = json.loads(reply.text)
            plain += bool(value["entities"][0]["name"] and value["relationships"][0]["source"])
        except (ValueError, KeyError, IndexError, TypeError):
            continue
    assert plain < 10
