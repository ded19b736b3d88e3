"""Chat completions: the request, the completion, and its pieces for a stream."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from tests.model_server.seeing import urls_of

Json = dict[str, Any]
FINGERPRINT = "fp_44709d6fcb"
# Characters of a completion that one event of a stream carries.
CHUNK = 64
TOKENS_PER_PICTURE = 765
# A prompt's beginning is remembered in steps of 512 characters, about 128 tokens, and counts as
# cached from 4,096 on, as the large providers do it.
CACHE_STEP, CACHE_FROM = 512, 4096


@dataclass(frozen=True)
class ChatRequest:
    """A chat request, as answers see it."""

    body: Json

    @property
    def messages(self) -> list[Json]:
        messages: list[Json] = self.body["messages"]
        return messages

    @property
    def mode(self) -> Literal["json_schema", "tool", "json_object", "text"]:
        """The response format of the request."""
        kind = self.body.get("response_format", {}).get("type")
        if kind in ("json_schema", "json_object"):
            return kind  # type: ignore[no-any-return]
        return "tool" if self.tool else "text"

    @cached_property
    def tool(self) -> Json | None:
        """The function to call; `auto` calls the first."""
        choice = self.body.get("tool_choice", "auto")
        functions: list[Json] = [tool["function"] for tool in self.body.get("tools") or []]
        if not functions or choice == "none":
            return None
        if isinstance(choice, dict):
            name = choice["function"]["name"]
            return next(function for function in functions if function["name"] == name)
        return functions[0]

    @cached_property
    def schema(self) -> Json | None:
        """The JSON schema of the answer, if there is one."""
        if self.mode == "json_schema":
            schema: Json = self.body["response_format"]["json_schema"]["schema"]
            return schema
        return self.tool.get("parameters") if self.mode == "tool" and self.tool else None

    @cached_property
    def texts(self) -> list[str]:
        """The content of each message."""
        return [content_of(message) for message in self.messages]

    @cached_property
    def pictures(self) -> list[str]:
        """The addresses of the pictures."""
        return urls_of(self.messages)

    @cached_property
    def n_tokens(self) -> int:
        n_tokens = count_tokens("".join(self.texts)) + 4 * len(self.texts)
        return n_tokens + TOKENS_PER_PICTURE * len(self.pictures)

    @property
    def max_tokens(self) -> int | None:
        return self.body.get("max_completion_tokens") or self.body.get("max_tokens")


Answer = Callable[[ChatRequest], "str | Json"]


def content_of(message: Json) -> str:
    content = message.get("content") or ""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return str(content)


def count_tokens(text: str) -> int:
    """Estimate tokens: four characters each."""
    return (len(text) + 3) // 4


def cut(text: str, max_tokens: int | None) -> str:
    return text if max_tokens is None else text[: 4 * max_tokens]


def complete(request: ChatRequest, answer: Answer, key: str, cached: int, created: int) -> Json:
    """Return the completion; an answer over the limit of tokens is truncated."""
    said = answer(request)
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    content = cut(text, request.max_tokens)
    finish = "stop" if len(content) == len(text) else "length"
    message: Json = {"role": "assistant", "content": content, "refusal": None}
    if request.mode == "tool" and request.tool and isinstance(said, dict):
        function = {"name": request.tool["name"], "arguments": content}
        call = {"id": f"call_{key}", "type": "function", "function": function}
        message |= {"content": None, "tool_calls": [call]}
        # A model that was told which function to call says "stop".
        forced = isinstance(request.body.get("tool_choice"), dict)
        finish = "tool_calls" if finish == "stop" and not forced else finish
    n = request.body.get("n") or 1
    choices = [
        {"index": index, "message": dict(message), "logprobs": None, "finish_reason": finish}
        for index in range(n)
    ]
    completion: Json = {
        "id": f"chatcmpl-{key}",
        "object": "chat.completion",
        "created": created,
        "model": request.body.get("model", ""),
        "choices": choices,
        "system_fingerprint": FINGERPRINT,
    }
    completion["usage"] = usage(request.n_tokens, n * count_tokens(content), cached)
    return completion


def usage(prompt: int, completion: int, cached: int = 0, reasoning: int = 0) -> Json:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def text_of(message: Json) -> str | None:
    """Return the content of a completion, or the arguments of its call."""
    if calls := message.get("tool_calls"):
        return str(calls[0]["function"]["arguments"])
    content: str | None = message["content"]
    return content


def set_text(message: Json, text: str | None) -> None:
    """Replace the content of a completion, or the arguments of its call."""
    if message.get("tool_calls") and text is not None:
        message["tool_calls"][0]["function"]["arguments"] = text
    else:
        message.pop("tool_calls", None)
        message["content"] = text


def pieces(completion: Json, *, with_usage: bool) -> Iterator[Json]:
    """Split a completion into the events of a stream."""
    shared = {name: completion[name] for name in ("id", "created", "model", "system_fingerprint")}
    shared["object"] = "chat.completion.chunk"
    if with_usage:
        shared["usage"] = None

    def event(index: int, delta: Json, finish: str | None = None) -> Json:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**shared, "choices": [choice]}

    for choice in completion["choices"]:
        index, message = choice["index"], choice["message"]
        yield event(index, {"role": "assistant", "content": ""})
        for part in _parts(message.get("reasoning_content")):
            yield event(index, {"reasoning_content": part})
        for part in _parts(message.get("refusal")):
            yield event(index, {"refusal": part})
        if calls := message.get("tool_calls"):
            call, function = calls[0], calls[0]["function"]
            start = {"index": 0, "id": call["id"], "type": "function"}
            named = {"name": function["name"], "arguments": ""}
            yield event(index, {"tool_calls": [{**start, "function": named}]})
            for part in _parts(function["arguments"]):
                delta = {"index": 0, "function": {"arguments": part}}
                yield event(index, {"tool_calls": [delta]})
        for part in _parts(message["content"]):
            yield event(index, {"content": part})
        yield event(index, {}, choice["finish_reason"])
    if with_usage:
        yield {**shared, "choices": [], "usage": completion["usage"]}


def _parts(text: str | None) -> list[str]:
    text = text or ""
    return [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)]


class PromptCache:
    """The cache of beginnings of prompts."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def look_up(self, texts: list[str]) -> int:
        """Return the cached tokens of a prompt, and cache the rest."""
        prompt = "\0".join(texts)
        if len(prompt) < CACHE_FROM:
            return 0
        known, state = 0, 0
        for end in range(CACHE_STEP, len(prompt) + 1, CACHE_STEP):
            state = hash((state, prompt[end - CACHE_STEP : end]))
            if state in self.seen and known == end - CACHE_STEP:
                known = end
            self.seen.add(state)
        return known // 4 if known >= CACHE_FROM else 0
