"""From the text of a reply to what was asked for, tolerantly."""

import json
import re
from typing import Any

from graphrag_index.core.models.request import Reading, ReplyError, ReplyFormat

_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|$)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```[\w-]*\s*\n(.*?)(?:```|$)", re.DOTALL)


def read_reply(text: str, format: ReplyFormat) -> Reading:
    """Read a reply: thoughts, prose and code fences around it are passed over.

    Raises
    ------
    ReplyError
        Nothing of it can be used.
    """
    text = strip_thoughts(text)
    if not text:
        raise ReplyError("it is empty")
    try:
        return format.read(json.loads(text))
    except ValueError:
        pass
    return format.read(parse_broken(text))


def strip_thoughts(text: str) -> str:
    """Leave out what a reasoning model thinks aloud."""
    text = _THOUGHTS.sub("", text)
    # Some servers cut the opening tag off.
    return text.rpartition("</think>")[2].strip()


def parse_broken(text: str) -> Any:
    """Find and repair the JSON in a text.

    Raises
    ------
    ReplyError
        There is none.
    """
    import json_repair

    fenced = _FENCE.search(text)
    if fenced and "{" in fenced[1]:
        text = fenced[1]
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        raise ReplyError("it holds no JSON")
    data = json_repair.loads(text[start:])
    if not isinstance(data, dict | list):
        raise ReplyError("it holds no JSON")
    return data
