"""The record of each question: the limits of its key, its metrics and its log line."""

import logging
import math

from graphrag_index.errors import GraphRAGError
from graphrag_server.asking import AskedQuestion, QuestionEnd
from graphrag_server.keys import DailyCostError, KeyFile, RateError
from graphrag_server.metrics import Metrics
from graphrag_server.problems import RequestError
from graphrag_server.request_record import current_request_id

logger = logging.getLogger(__name__)


class QuestionRecorder:
    """Admits questions by the limits of their keys, and counts how they end."""

    def __init__(self, keys: KeyFile, metrics: Metrics, log_questions: bool) -> None:
        self.keys, self.metrics, self.log_questions = keys, metrics, log_questions

    def admit(self, asked: AskedQuestion) -> None:
        """Count a question. Raises RequestError if a limit of its key does not allow it."""
        if asked.caller.key is None:
            return
        try:
            self.keys.count_question(asked.caller.key)
        except RateError as error:
            wait = {"Retry-After": str(math.ceil(error.wait))}
            raise RequestError(429, "rate_limit", str(error), wait) from None
        except DailyCostError as error:
            # Clients repeat a 429 by themselves, which would not help before midnight.
            raise RequestError(402, "daily_cost_limit", str(error)) from None
        except GraphRAGError as error:
            logger.error("%s", error)
            raise RequestError(
                503, "keys_unavailable", "The server cannot count this question: try again."
            ) from None

    def record(self, asked: AskedQuestion, end: QuestionEnd) -> None:
        """Count a question that has ended, and its cost, also if nobody got an answer."""
        usage, index = end.usage, asked.hosted.name
        self._add_cost(asked, usage.cost)
        metrics = self.metrics
        metrics.add("questions_total", index=index, method=end.method, outcome=end.outcome)
        metrics.observe("question_seconds", usage.seconds, method=end.method)
        if usage.calls:
            metrics.add("model_calls_total", usage.calls, index=index)
            metrics.add("tokens_total", usage.prompt_tokens, index=index, kind="prompt")
            metrics.add("tokens_total", usage.completion_tokens, index=index, kind="completion")
            metrics.add("cost_dollars_total", usage.cost or 0.0, index=index)
        logger.info(
            "question",
            extra={
                "request_id": current_request_id(),
                "caller": asked.caller.name,
                "index": index,
                "search": end.method,
                "outcome": end.outcome,
                "calls": usage.calls,
                "tokens": usage.prompt_tokens + usage.completion_tokens,
                "cost": usage.cost,
                "seconds": round(usage.seconds, 4),
                "question": asked.question if self.log_questions else None,
            },
        )

    def _add_cost(self, asked: AskedQuestion, cost: float | None) -> None:
        key = asked.caller.key
        if key is None:
            return
        if cost is None and key.daily_cost is not None:
            logger.warning(
                "The cost of a question of the key %s is unknown, so its daily limit does not "
                "count it: set the prices of the models of %s.",
                key.name,
                asked.hosted.name,
            )
        try:
            self.keys.add_cost(key, cost or 0.0)
        except GraphRAGError as error:
            # The answer is paid: its reader gets it.
            logger.error("%s", error)
