"""What a reasoning model thinks aloud before it answers."""

import json
import re

from graphrag_index.llm.request import TextSink

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


_OPENING = re.compile(rf"\s*[<\[◁]({_TAGS})[>\]▷]", re.IGNORECASE)
# The longest opening tag, after which it is clear that there is none.
_LONGEST_OPENING = 16


class Spoken:
    """Passes a text on while it is being written, but for the thoughts that it begins with."""

    def __init__(self, sink: TextSink) -> None:
        self._sink = sink
        self._held, self._thinks = "", True

    def write(self, piece: str) -> None:
        """Take the next piece."""
        self._held += piece
        if self._thinks:
            opening = _OPENING.match(self._held)
            if opening is None:
                self._thinks = len(self._held.lstrip()) < _LONGEST_OPENING and (
                    not self._held.strip() or self._held.lstrip()[0] in "<[◁"
                )
            elif end := re.search(rf"[<\[◁]/{opening[1]}[>\]▷]\s*", self._held, re.IGNORECASE):
                self._held, self._thinks = self._held[end.end() :], False
        if not self._thinks and self._held:
            self._sink.write(self._held)
            self._held = ""

    def end(self, broken: bool = False) -> None:
        """Pass on what was held back, if it was no thought; or say that the text is void."""
        if broken:
            self._sink.restart()
        elif self._held and not _OPENING.match(self._held):
            self._sink.write(self._held)
