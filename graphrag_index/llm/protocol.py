"""OpenAI's protocol: request bodies that a server accepts, parsing of its responses."""

import base64
import json
import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_index.llm.ledger import CAPABILITIES, Ledger
from graphrag_index.llm.request import Message, Reply, ReplyFormat, Usage
from graphrag_index.llm.retries import RetryError, ServerError, UnsupportedError
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_nlp.text.normalize import replace_escaped_surrogates, replace_surrogates

logger = logging.getLogger(__name__)

# The default server, if the settings and the environment set no address.
OPENAI_ADDRESS = "https://api.openai.com/v1"
# Ways to request a reply in a given format, best first, and their descriptions.
FORMAT_LABELS = {
    "json_schema": "replies by JSON schema",
    "tool": "replies by tool call",
    "json_object": "replies as JSON",
    "text": "replies as text",
}
RESPONSE_FORMATS = tuple(FORMAT_LABELS)
# Parameters that limit the length of a reply. OpenAI's models that reason reject `max_tokens`;
# other servers may ignore `max_completion_tokens` without an error.
TOKEN_LIMIT_KEYS = ("max_completion_tokens", "max_tokens")
# Parameters that a server may not support.
OPTIONAL_PARAMETERS = (*TOKEN_LIMIT_KEYS, "temperature", "stream_options", "stream")
# After this many invalid replies and no valid reply, assume that the server ignores the format.
MAX_INVALID_REPLIES = 3
# Words in an error message about the format of the reply.
_FORMAT_WORDS = re.compile("schema|tool|function|format|json_object|unsupported|not support")
# Words in an error message about an unknown parameter.
UNKNOWN_WORDS = re.compile("unsupported|not support|unrecognized|unknown|unexpected|extra")
# Names in an error of the server itself (HTTP 500 and above) that is about the reply format.
_FORMAT_NAMES = re.compile("response_format|json_schema|json_object|tool_choice|['\"`]tools['\"`]")
# Names of the fields of an error: its message, and its codes.
_MESSAGE_NAME = re.compile(r"(?:message|msg|^detail)$", re.IGNORECASE)
_CODE_NAME = re.compile(r"(?:code|status|type)$", re.IGNORECASE)
# Words in an error of a rate limit, and in one that a retry may overcome.
_RATE_WORDS = re.compile(r"rate.?limit|quota|too.?many.?requests|throttl|\b[rt]pm\b")
_OUTAGE_WORDS = re.compile(
    r"overload|busy|capacity|later|again|time.?out|timed out|unavailable|internal|server.?error"
)
# Words in an error, and in the end of a reply, of content that the server refuses to process.
REFUSAL_WORDS = re.compile(
    r"content.?(?:filter|policy|management)|sensitive|safety|moderat|flagged|inspection"
    r"|prohibited|blocklist",
    re.IGNORECASE,
)
# Words of an error about a picture, and of one that says that the model sees none.
_PICTURE_WORDS = re.compile(
    r"image|picture|vision|multi-?modal|content.{0,40}string", re.IGNORECASE
)
_BLIND_WORDS = re.compile(
    r"(?:images?|image_url|vision|multi-?modal)\b.{0,20}(?:is|are) (?:not|only) supported"
    r"|n(?:o|ot|['’]t) support\w* .{0,20}(?:image|vision|multi-?modal)|support image input"
    r"|not a (?:multi-?modal|vision)|unknown variant .image_url|text-only|content.{0,40}string"
    r"|at most 0 image|missing data required for image",
    re.IGNORECASE,
)
# Parts of a request that every server must support.
REQUIRED_PARTS = frozenset(("model", "messages", "input"))


def server_address(settings: ModelSettings) -> str:
    """Return the base URL of a model's server, without a slash at the end."""
    base = settings.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_ADDRESS
    return base.rstrip("/")


@dataclass(frozen=True)
class Capabilities:
    """The best response format that a server supports, and the parameters that it rejects."""

    response_format: str
    dropped: tuple[str, ...] = ()  # rejected parameters, which requests omit

    def to_json(self) -> str:
        """Serialize the capabilities for the ledger."""
        return json.dumps({"response_format": self.response_format, "dropped": list(self.dropped)})

    @classmethod
    def from_json(cls, settings: ModelSettings, known: str | None) -> "Capabilities":
        """Deserialize capabilities; None means full support.

        The setting `structured`, unless it is "auto", overrides the response format.
        """
        found: Any = json.loads(known) if known else {"response_format": RESPONSE_FORMATS[0]}
        chosen = found["response_format"] if settings.structured == "auto" else settings.structured
        return cls(chosen, tuple(found.get("dropped", ())))

    @staticmethod
    def cache_key(settings: ModelSettings) -> str:
        """Return the name of the ledger's metadata entry for the capabilities."""
        return f"{CAPABILITIES}{settings.model} at {settings.base_url}"


class RequestWriter:
    """Writer of request bodies for one model. It omits parameters that the server rejects."""

    def __init__(self, name: str, settings: ModelSettings, ledger: Ledger) -> None:
        self.name, self.settings, self._ledger = name, settings, ledger
        self.address = server_address(settings)
        # The name of the model on the server.
        self.model = settings.deployment or settings.model
        self._cache_key = Capabilities.cache_key(settings)
        self.capabilities = Capabilities.from_json(settings, ledger.get_meta(self._cache_key))
        self._has_valid_reply, self._n_invalid = False, 0
        # Parts of the requests that the server has answered in this run.
        self.answered: set[str] = set()

    def chat_body(
        self,
        messages: Sequence[Message],
        format: ReplyFormat,
        max_tokens: int,
        stream: bool = False,
    ) -> dict[str, Any]:
        """Write the body of a chat request."""
        settings, dropped = self.settings, self.capabilities.dropped
        response_format = self.capabilities.response_format if format.schema else "plain"
        written: list[Any] = [_write_message(message) for message in messages]
        body: dict[str, Any] = {"model": self.model, "messages": written}
        if self.limits:
            body[self.limits[0]] = max_tokens
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        if stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        for name in dropped:
            body.pop(name, None)
        if "stream" not in body:
            body.pop("stream_options", None)
        body |= {name: v for name, v in settings.parameters.items() if name not in dropped}
        body |= format_parts(response_format, format)
        if response_format in ("json_object", "text"):
            # Describe the format in words at the end of the first message.
            first = messages[0]
            content = f"{first['content']}\n\n{format.instructions}"
            written[0] = _write_message({**first, "content": content})
        return body

    def embedding_body(self, texts: Sequence[str]) -> dict[str, Any]:
        """Write the body of an embedding request."""
        body: dict[str, Any] = {"model": self.model, "input": list(texts)}
        if self.settings.dimensions and "dimensions" not in self.capabilities.dropped:
            body["dimensions"] = self.settings.dimensions
        if "encoding_format" not in self.capabilities.dropped:
            body["encoding_format"] = "base64"
        return body

    def adapt_to_error(
        self, error: UnsupportedError | ServerError, body: Mapping[str, Any], sent: Capabilities
    ) -> bool:
        """Drop the parameter or the response format that the server rejects in an error.

        `sent` are the capabilities when the request was sent. If another call has changed the
        capabilities since then, nothing is dropped. Returns False if the error is not about a
        parameter or the format, so that a retry would fail too.
        """
        if self.capabilities != sent:
            return True
        text = str(error).lower()
        if _PICTURE_WORDS.search(text) and has_picture(body):
            return False
        # Errors of other kinds contain words such as "stream" too, but not in quotation marks.
        if isinstance(error, ServerError) and not (
            _FORMAT_NAMES.search(text)
            or any(
                re.search(rf"['\"`]{re.escape(name.lower())}['\"`]", text)
                for name in body.keys() - REQUIRED_PARTS
            )
        ):
            return False
        name = self._refused_parameter(text, body)
        if name is not None:
            self.update_capabilities([name])
            return True
        if self.settings.structured != "auto" or not body.keys() & {"response_format", "tools"}:
            return False
        return _FORMAT_WORDS.search(text) is not None and self._fall_back_to_next_format()

    def note_answer(self, body: Mapping[str, Any]) -> None:
        """Note that the server has answered a request, and so supports all of its parts."""
        if not self.answered and self._ledger.get_meta(self._cache_key) is None:
            self.update_capabilities()
        self.answered |= part_names(body)

    def update_capabilities(
        self, refused: Iterable[str] = (), response_format: str | None = None
    ) -> None:
        """Omit refused parameters from all further requests, and use this response format."""
        known = self.capabilities
        new = tuple(name for name in refused if name not in known.dropped)
        for name in new:
            if name in self.settings.parameters:
                logger.warning(
                    "Model %s: %s does not support the parameter %s; further requests omit it.",
                    self.name,
                    self.address,
                    name,
                )
        chosen = response_format or known.response_format
        self.capabilities = Capabilities(chosen, (*known.dropped, *new))
        self._ledger.set_meta(self._cache_key, self.capabilities.to_json())

    def describe(self, embeds: bool) -> str:
        """Describe the model, its server and what is known about its requests in one line."""
        settings, dropped = self.settings, " and ".join(self.capabilities.dropped)
        kind = "reply format not known before the first request"
        if embeds:
            kind = "vectors"
        elif settings.structured != "auto" or self._ledger.get_meta(self._cache_key) is not None:
            kind = FORMAT_LABELS[self.capabilities.response_format]
        kind += f", without {dropped}" if dropped else ""
        return f"Model {self.name}: {settings.model} at {self.address} ({kind})"

    @property
    def limits(self) -> list[str]:
        """The parameters that may limit the length of a reply, the one to use first."""
        is_openai = self.settings.provider == "azure" or "openai" in self.address
        names = TOKEN_LIMIT_KEYS if is_openai else reversed(TOKEN_LIMIT_KEYS)
        return [name for name in names if name not in self.capabilities.dropped]

    def note_length(self, n_tokens: int, max_tokens: int) -> None:
        """Limit replies by another parameter if the server ignores the first one."""
        if n_tokens > 2 * max_tokens + 100 and len(self.limits) == len(TOKEN_LIMIT_KEYS):
            self.update_capabilities([self.limits[0]])

    def note_compliance(self, is_valid: bool, response_format: str) -> None:
        """Note whether the first reply to a request was valid.

        Some servers accept a schema and ignore it, so that the model never sees the format. If
        only invalid replies arrive, further requests use the next response format.
        """
        self._has_valid_reply = self._has_valid_reply or is_valid
        is_current = response_format == self.capabilities.response_format
        if self._has_valid_reply or response_format not in RESPONSE_FORMATS[:2] or not is_current:
            return
        self._n_invalid += 1
        if self._n_invalid == MAX_INVALID_REPLIES and self.settings.structured == "auto":
            self._n_invalid = 0
            self._fall_back_to_next_format()

    def _refused_parameter(self, text: str, body: Mapping[str, Any]) -> str | None:
        """Return the parameter that an error message (in lower case) rejects, or None."""
        if "input" in body:
            # Without `dimensions`, the vectors of the model may have the wanted dimension anyway.
            is_size = _reports_unknown_parameter(text, "dimensions")
            name = "dimensions" if is_size else "encoding_format"
            return name if name in text and name in body else None
        for name in OPTIONAL_PARAMETERS:
            # Not within a word: "stream" is no part of "upstream".
            if name in body and re.search(rf"(?<!\w){name}", text):
                return name
        for name in self.settings.parameters:
            if name in body and _reports_unknown_parameter(text, name.lower()):
                return name
        return None

    def _fall_back_to_next_format(self) -> bool:
        """Use the next response format for all further requests; False if there is none."""
        position = RESPONSE_FORMATS.index(self.capabilities.response_format) + 1
        if position == len(RESPONSE_FORMATS):
            return False
        self.update_capabilities(response_format=RESPONSE_FORMATS[position])
        return True


def _write_message(message: Message) -> dict[str, Any]:
    """Write a message; a picture becomes a part of its content."""
    picture = message.get("picture")
    if picture is None:
        return {"role": message["role"], "content": message["content"]}
    data = base64.b64encode(picture.data).decode("ascii")
    url = f"data:{picture.media_type};base64,{data}"
    parts = [
        {"type": "text", "text": message["content"]},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    return {"role": message["role"], "content": parts}


def has_picture(body: Mapping[str, Any]) -> bool:
    """Return whether the body of a request has a picture."""
    return any(isinstance(message["content"], list) for message in body.get("messages", ()))


def is_blind(error: Exception) -> bool:
    """Return whether an error says that the model takes no pictures."""
    return _BLIND_WORDS.search(str(error)) is not None


def _reports_unknown_parameter(text: str, name: str) -> bool:
    """Tell whether an error says that a parameter is unknown, not that its value is wrong."""
    is_named = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)
    return bool(is_named and "value" not in text and UNKNOWN_WORDS.search(text))


def format_parts(response_format: str, format: ReplyFormat) -> dict[str, Any]:
    """Return the parts of a request that ask for a reply format; empty for a plain text."""
    if response_format == "json_schema":
        schema = {"name": format.name, "strict": True, "schema": format.schema}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    if response_format == "tool":
        function = {"name": format.name, "parameters": format.schema}
        return {
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": format.name}},
        }
    return {"response_format": {"type": "json_object"}} if response_format == "json_object" else {}


def part_names(body: Mapping[str, Any]) -> set[str]:
    """Return the names of the parts of a request that a server may refuse."""
    # Servers may support one type of `response_format` and refuse another.
    types = {str(body["response_format"]["type"])} if "response_format" in body else set()
    return types.union(body.keys() - REQUIRED_PARTS)


def encode_json(body: Mapping[str, Any]) -> bytes:
    """Encode a body as JSON in UTF-8; a lone surrogate becomes U+FFFD."""
    text = json.dumps(body, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return replace_surrogates(text).encode()


def parse_json(content: bytes, is_part: bool = False) -> Any:
    """Parse the JSON of a response into valid Unicode; raises `RetryError` if it is invalid.

    A text of a part of a stream may begin or end with half of a character, which stays.
    """
    try:
        text = content.decode(json.detect_encoding(content), "replace")
        return json.loads(text if is_part else replace_escaped_surrogates(text))
    except (ValueError, RecursionError):
        raise RetryError("the answer is not valid JSON", lost=True) from None


def error_in_body(data: Any) -> tuple[int, str] | None:
    """Return the HTTP status and the message of an error in a body that has no reply.

    Some servers report errors with the status 200. A code of the server that is no HTTP status
    is read by its words. Returns None if the body reports no error.
    """
    data = data[0] if isinstance(data, list) and data else data
    if not isinstance(data, dict):
        return None
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    error = data.get("error") or (choice.get("error") if isinstance(choice, dict) else None)
    if not error and any(data.get(name) for name in ("choices", "data", "results")):
        return None
    parts = ({**data, "error": error}, *(part for part in data.values() if isinstance(part, dict)))
    fields = next((found for part in parts if (found := _error_fields(part))), None)
    if fields is None:
        return None
    codes = [str(value) for name, value in fields.items() if _CODE_NAME.search(str(name))]
    message = error_message(fields)
    said = " ".join((*codes, message)).lower()
    words = ((400, REFUSAL_WORDS), (429, _RATE_WORDS), (503, _OUTAGE_WORDS))
    status = next((status for status, pattern in words if pattern.search(said)), 400)
    return next((int(code) for code in codes if re.fullmatch(r"[45]\d\d", code)), status), message


def read_chat(data: Any) -> Reply:
    """Parse the response of `/chat/completions`, from OpenAI or a compatible server."""
    try:
        choice = data["choices"][0]
        message = choice.get("message") or {}
        # Some models split the reply over several tool calls.
        arguments = map(tool_arguments, message.get("tool_calls") or [])
        text = "\n".join(filter(None, arguments)) or join_parts(message.get("content"))
        text = text or mark_reasoning(read_reasoning(message))
    except (KeyError, IndexError, TypeError, AttributeError):
        shown = json.dumps(data, ensure_ascii=False)[:200]
        raise RetryError(f"the answer contains no reply: {shown}") from None
    finish = read_finish(choice.get("finish_reason"))
    if message.get("refusal"):
        text, finish = str(message["refusal"]), "refusal"
    return Reply(text, finish, read_usage(data.get("usage")))


def read_finish(reason: Any) -> str:
    """Return why a reply ends: stop, length or content_filter; servers have more words for it."""
    reason = str(reason or "stop")
    if REFUSAL_WORDS.search(reason):
        return "content_filter"
    return "length" if re.search("length|max_tokens", reason, re.IGNORECASE) else reason


def join_parts(content: Any) -> str:
    """Return the text of a message, which may be a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def read_reasoning(message: Mapping[str, Any]) -> str:
    """Return the reasoning in a field of its own, whose name differs by server."""
    return join_parts(message.get("reasoning_content") or message.get("reasoning"))


def mark_reasoning(text: str) -> str:
    """Return the text of a reply of which a server sends only the reasoning.

    Some servers take an answer without a tag of its end for reasoning. Only JSON is an answer
    without doubt: other text is marked, so that it is never shown as one.
    """
    return text if not text or text.lstrip()[:1] in "{`" else f"<think>\n{text}"


def tool_arguments(call: Any) -> str:
    """Return the arguments of a tool call as JSON text."""
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    return arguments or "" if isinstance(arguments, str | None) else json.dumps(arguments)


def read_usage(usage: Any) -> Usage:
    """Parse the token counts of a call; a missing or invalid count is 0."""

    def count(fields: Any, name: str) -> int:
        try:
            # The ledger cannot store larger numbers.
            return min(max(int(fields.get(name) or 0), 0), 1 << 40)
        except (AttributeError, OverflowError, TypeError, ValueError):
            return 0

    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    cached = count(details, "cached_tokens")
    return Usage(count(usage, "prompt_tokens"), cached, count(usage, "completion_tokens"))


def read_embeddings(data: Any, n_texts: int) -> tuple[list[list[float]], Usage]:
    """Parse the response of `/embeddings`: one vector for each text, in the order of the texts."""
    import numpy as np

    try:
        rows = sorted(data["data"], key=lambda row: row["index"])
        vectors = [
            np.frombuffer(base64.b64decode(row["embedding"]), "<f4").tolist()
            if isinstance(row["embedding"], str)
            else [float(value) for value in row["embedding"]]
            for row in rows
        ]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise RetryError("the answer contains no vectors") from None
    if len(vectors) != n_texts:
        raise RetryError(f"the answer contains {len(vectors)} vectors for {n_texts} texts")
    return vectors, read_usage(data.get("usage"))


def error_message(body: Any) -> str:
    """Return the message, codes and parameter of an error response, on one line; "" if absent."""
    if (fields := _error_fields(body)) is None:
        return ""
    if fields.get("detail"):
        return _validation_message(fields["detail"])
    message = next(str(v) for name, v in fields.items() if v and _MESSAGE_NAME.search(str(name)))
    codes = (v for name, v in fields.items() if re.search(r"(?i)(?:code|param)$", str(name)))
    return " ".join(" ".join(str(part) for part in (message[:500], *codes) if part).split())


def _error_fields(body: Any) -> Mapping[str, Any] | None:
    """Return the object with the message of an error response; None if there is no message."""
    if not isinstance(body, dict):
        return None
    error = body.get("error")
    fields = {**body, "message": error} if isinstance(error, str) and error else body
    fields = error if isinstance(error, dict) else fields
    return (
        fields if any(v and _MESSAGE_NAME.search(str(name)) for name, v in fields.items()) else None
    )


def _validation_message(detail: Any) -> str:
    """Return the message of an error that FastAPI writes, with the place of each invalid value."""
    entries = detail if isinstance(detail, list) else [detail]
    messages = [
        f"{'.'.join(map(str, entry.get('loc') or ()))}: {entry.get('msg')}"
        if isinstance(entry, dict)
        else str(entry)
        for entry in entries
    ]
    return " ".join("; ".join(messages)[:500].split())


def parse_error(content: bytes) -> str:
    """Return the error message in the body of a response, on one line, with the error code."""
    try:
        body = parse_json(content)
    except RetryError:
        body = content.decode("utf-8", "replace")[:200]
    return error_message(body) or " ".join(str(body).split())[:200]
