"""Rerankers on a server: models that score how well passages match a question.

Servers expect one of two forms of requests: that of Jina, Cohere and vLLM, and that of Text
Embeddings Inference (TEI).
"""

import asyncio
import json
import math
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any

from graphrag_index.errors import ModelError
from graphrag_index.llm.cancellation import Cancellation, current_cancellation
from graphrag_index.llm.chat_model import RemoteModel
from graphrag_index.llm.ledger import DONE
from graphrag_index.llm.limits import cost_of
from graphrag_index.llm.protocol import parse_json, read_usage
from graphrag_index.llm.request import Spending, Usage, estimate_tokens
from graphrag_index.llm.retries import RejectedError, UnsupportedError
from graphrag_index.schema.tables import content_id
from graphrag_index.spans import span


class RemoteReranker(RemoteModel):
    """A reranker on a server. Valid scores are stored in the ledger."""

    # Whether the server has rejected the form of Jina, Cohere and vLLM, and accepted that of TEI.
    _has_tei_form = False

    def score(self, question: str, passages: Sequence[str], spent: Spending) -> tuple[float, ...]:
        """Return a score for each passage; a higher score is a better match.

        The cost of the call is added to `spent`. Raises `ModelError` if the server does not
        answer, refuses the request, or returns unusable scores. A cancelled question raises
        `CancelledQuestionError`.
        """
        cancellation, call_spent = current_cancellation(), Spending()
        identity = json.dumps(self.settings.identity(), sort_keys=True)
        key = content_id("rerank", identity, question, *passages)
        entry = self.ledger.find_entry(key)
        if entry is not None and entry.state == DONE:
            return tuple(json.loads(entry.reply))
        try:
            request = self._request_scores(key, question, passages, call_spent, cancellation)
            scores: tuple[float, ...] = self._loop.run_coroutine(request)
        except CancelledError:
            cancellation.check()
            raise
        except RejectedError as error:
            reason = self._client.redact(str(error)).rstrip(".")
            raise ModelError(f"Model {self.name} returns no scores: {reason}.") from None
        finally:
            spent.add(call_spent)
        return scores

    async def _request_scores(
        self,
        key: str,
        question: str,
        passages: Sequence[str],
        spent: Spending,
        cancellation: Cancellation,
    ) -> tuple[float, ...]:
        n_tokens = sum(map(estimate_tokens, (question, *passages)))
        calls = self._client.calls

        def record(usage: Usage, reply: str | None = None) -> None:
            cost = cost_of(usage, calls.price)
            self.ledger.record_call(key, self.step, self.name, usage, cost, reply)
            spent.add(Spending(1, usage, cost))

        async def send() -> tuple[tuple[Any, Usage], Usage]:
            self.ledger.record_sent(key, self.step, question[:60], self.name)
            try:
                data = parse_json(await self._post_passages(question, passages))
            except asyncio.CancelledError:
                # The provider may charge for a reply that nobody has received.
                record(Usage(n_tokens))
                raise
            # Some servers count no tokens.
            usage = read_tokens(data) or Usage(n_tokens)
            return (data, usage), usage

        settings = self.settings
        with (
            cancellation.running_call(spent),
            span(
                "rerank", model=settings.model, provider=settings.provider, step=self.step
            ) as call,
        ):
            data, usage = await calls.call_with_retries(send, n_tokens, 0)
            scores = read_scores(data, len(passages))
            record(usage, None if scores is None else json.dumps(scores))
            call.set(prompt_tokens=usage.prompt, cost=spent.cost)
        if scores is None:
            raise RejectedError("the answer must have one finite score for each passage")
        return scores

    async def _post_passages(self, question: str, passages: Sequence[str]) -> bytes:
        """Send a request in the form that the server is known to accept, or else in both forms."""
        common = {"model": self._client.writer.model, "top_n": len(passages)}
        usual = {**common, "query": question, "documents": list(passages)}
        tei = {"query": question, "texts": list(passages), "truncate": True}
        parameters = self.settings.parameters
        if not self._has_tei_form:
            try:
                return await self._client.post("/rerank", {**usual, **parameters})
            except UnsupportedError as error:
                first_error = error
        try:
            content = await self._client.post("/rerank", {**tei, **parameters})
        except UnsupportedError:
            if self._has_tei_form:
                raise
            raise first_error from None
        self._has_tei_form = True
        return content


def read_tokens(data: Any) -> Usage | None:
    """Parse the number of tokens of a request; None if the server does not count them."""
    usage = data.get("usage") if isinstance(data, dict) else None
    if not isinstance(usage, dict):
        return None
    n_tokens = usage.get("prompt_tokens") or usage.get("total_tokens")
    counted = read_usage({"prompt_tokens": n_tokens})
    return counted if counted.prompt > 0 else None


def read_scores(data: Any, n_passages: int) -> tuple[float, ...] | None:
    """Parse the scores of passages; None unless each passage has one finite score."""
    rows: Any = data.get("results") if isinstance(data, dict) else data
    try:
        found = {
            row["index"]: float(row["relevance_score" if "relevance_score" in row else "score"])
            for row in rows
        }
        scores = tuple(found[index] for index in range(n_passages))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return scores if len(rows) == n_passages and all(map(math.isfinite, scores)) else None
