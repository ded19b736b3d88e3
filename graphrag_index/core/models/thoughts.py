"""What a reasoning model thinks aloud before it answers."""

import json
import re

_TAGS = "think|thinking|thought|thoughts|reasoning|seed:think"
_THOUGHTS = re.compile(
    rf"^[^\S\n]*[<\[◁]({_TAGS})[>\]▷].*?(?:[<\[◁]/\1[>\]▷]|(?P<open>\Z))",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
# Some servers cut the opening tag off.
_THOUGHTS_END = re.compile(rf"[<\[◁]/(?:{_TAGS})[>\]▷]\s*(?=[\[{{(`\n]|\Z)|^</think>", re.I | re.M)
_FINAL = "<|channel|>final<|message|>"


def strip_thoughts(text: str) -> str:
    """Leave out what a reasoning model thinks aloud."""
    if _FINAL in text:
        text = text.rpartition(_FINAL)[2].removesuffix("<|return|>")
    for thoughts in _THOUGHTS.finditer(text):
        if thoughts["open"] is not None:
            # Never closed: what a model was at when it ended, or the answer follows unmarked.
            before = _THOUGHTS.sub("", text[: thoughts.start()])
            return (before + _answer_at_end(thoughts[0])).strip()
    stripped = _THOUGHTS.sub("", text)
    if stripped == text:
        for end in _THOUGHTS_END.finditer(text):
            stripped = text[end.end() :]
    return stripped.strip()


def _answer_at_end(thoughts: str) -> str:
    """Return the JSON object that thoughts end with, if one stands on lines of its own."""
    answer = thoughts[thoughts.rfind("\n{") + 1 :].rstrip("` \n\t")
    try:
        json.loads(answer)
    except (ValueError, RecursionError):
        return ""
    return answer if answer.startswith("{") else ""
