"""Models that take replies from the ledger, and the requests that follow a reply."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from graphrag_index.llm.ledger import DONE, QUARANTINED, TRUNCATED, Ledger, LedgerEntry
from graphrag_index.llm.reply_parser import is_repetitive, read_reply
from graphrag_index.llm.request import (
    Attempt,
    Outcome,
    ParsedReply,
    QuarantinedError,
    Reply,
    ReplyError,
    Request,
    attempt_after_invalid_reply,
    request_key,
)
from graphrag_index.llm.retries import redact
from graphrag_index.schema.settings.models import ModelSettings


class RequestChain:
    """A request and its follow-ups, with the replies received so far."""

    def __init__(self, request: Request, settings: ModelSettings) -> None:
        # The outcome so far.
        self.outcome = Outcome(request.unit)
        self._settings = settings
        # The next request to send, and its cache key.
        self.request, self.key = request, request_key(request, settings)
        self.is_answered = False

    def add_reply(self, parsed: ParsedReply) -> None:
        """Add the reply to the current request, and make its follow-up the current request."""
        known = self.outcome
        self.outcome = replace(
            known,
            values=(*known.values, parsed.value),
            dropped=known.dropped + parsed.dropped,
            keys=(*known.keys, self.key),
        )
        follow_up = self.request.then(parsed.value) if self.request.then else None
        self.is_answered = follow_up is None
        if follow_up is not None:
            self.request, self.key = follow_up, request_key(follow_up, self._settings)

    def add_cached_reply(self, find: Callable[[str], LedgerEntry | None]) -> bool:
        """Add the cached reply to the current request; False if there is none.

        Raises `QuarantinedError` if the request is quarantined.
        """
        entry = find(self.key)
        if entry is not None and entry.state == QUARANTINED:
            raise QuarantinedError(entry.reason)
        if entry is None or entry.state != DONE:
            return False
        parsed = read_reply(entry.reply, self.request.format)
        n_dropped = parsed.dropped + (entry.reason == TRUNCATED)
        self.add_reply(ParsedReply(parsed.value, n_dropped))
        return True

    def failed_outcome(self, reason: object) -> Outcome:
        """Return the outcome so far, with the reason of the failure."""
        return replace(self.outcome, failure=str(reason))


class CachedModel:
    """A model of one step that takes replies from the ledger; base of the chat models."""

    def __init__(self, name: str, settings: ModelSettings, step: str, ledger: Ledger) -> None:
        self.name, self.settings, self.step, self.ledger = name, settings, step, ledger
        self.get_meta, self.reply_hashes = ledger.get_meta, ledger.reply_hashes
        # Cache keys of the requests that this version of the index uses.
        self._used: list[str] = []
        # Whether an outcome counts cached replies at what they cost when they were paid for.
        self.counts_cached_replies = False

    @property
    def max_prompt_tokens(self) -> int:
        """Maximum number of tokens of a prompt."""
        return self.settings.context_window - self.settings.max_output_tokens

    def cached_values(self, request: Request) -> tuple[Any, ...]:
        """Return the cached values of a request and its follow-ups, without sending requests."""
        chain = RequestChain(request, self.settings)
        with suppress(QuarantinedError):
            while not chain.is_answered and chain.add_cached_reply(self.ledger.find_entry):
                pass
        return chain.outcome.values

    def set_meta(self, name: str, value: str) -> None:
        """Store a value in the ledger's metadata, for the next run."""
        self.ledger.set_meta(name, value)

    def mark_used(self, keys: Iterable[str]) -> None:
        """Mark cached requests as used by this version of the index."""
        self._used += keys

    def _save_used_keys(self) -> None:
        self.ledger.mark_used(self._used)
        self._used.clear()

    def _advance_over_cache(self, chain: RequestChain) -> Outcome | None:
        """Add cached replies to a chain; returns its outcome, or None if a reply is missing."""
        while not chain.is_answered:
            key = chain.key
            self._used.append(key)
            try:
                if not chain.add_cached_reply(self.ledger.find_entry):
                    return None
                if self.counts_cached_replies:
                    chain.outcome.spent.add(self.ledger.spent_on(key))
            except QuarantinedError as error:
                self.ledger.update_label(chain.key, chain.request.unit)
                return chain.failed_outcome(error)
        return chain.outcome

    def _validate_reply(
        self, reply: Reply, request: Request, attempt: Attempt, n_tokens: int
    ) -> ParsedReply | Attempt:
        """Parse a reply to a prompt of about `n_tokens`; if invalid, return the next attempt.

        Raises `QuarantinedError` if there is no further attempt.
        """
        if reply.finish in ("content_filter", "refusal"):
            raw = redact(reply.text, self.settings.key)
            shown = f": {raw[:200]}" if raw else ""
            raise QuarantinedError(f"the model refused ({reply.finish}){shown}", raw)
        is_truncated = reply.finish == "length"
        # More tokens would not help a model that repeats itself.
        if is_truncated and not attempt.is_last and not is_repetitive(reply.text):
            return replace(attempt, max_tokens=attempt.raised_tokens, is_last=True)
        try:
            parsed = read_reply(reply.text, request.format)
        except ReplyError as error:
            if attempt.corrected:
                raw = redact(reply.text, self.settings.key)
                raise QuarantinedError(f"the reply is invalid: {error}", raw) from None
            room = self.settings.context_window - n_tokens
            return attempt_after_invalid_reply(attempt, reply.text, error, request, room)
        return replace(parsed, dropped=parsed.dropped + is_truncated)
