"""Scores of passages, by the words that they share with the question."""

import re
from collections.abc import Callable
from typing import Any

from tests.model_server.chat import count_tokens


def share_words(question: str, passage: str) -> float:
    """Return the share of the question's words that a passage has."""
    words = set(re.findall(r"\w+", question.lower()))
    return len(words & set(re.findall(r"\w+", passage.lower()))) / max(1, len(words))


def rerank(
    body: dict[str, Any], is_tei: bool, score: Callable[[str, str], float]
) -> tuple[int, Any]:
    """Answer `/rerank`, the best passage first; a request in the other form is an error."""
    name = "texts" if is_tei else "documents"
    if name not in body:
        wrong = {"type": "missing", "loc": ["body", name], "msg": "Field required"}
        return 422, {"detail": [wrong]}
    scores = [score(body["query"], passage) for passage in body[name]]
    best = sorted(range(len(scores)), key=lambda index: -scores[index])
    if is_tei:
        return 200, [{"index": index, "score": scores[index]} for index in best]
    results = [{"index": index, "relevance_score": scores[index]} for index in best]
    tokens = sum(map(count_tokens, (body["query"], *body[name])))
    usage = {"total_tokens": tokens}
    return 200, {"model": body["model"], "results": results[: body["top_n"]], "usage": usage}


def spoil_scores(kind: str, answer: Any) -> None:
    """Change an answer to `/rerank` as a fault of `SCORES` does."""
    rows = answer if isinstance(answer, list) else answer["results"]
    if kind == "fewer_scores":
        rows.pop()
    elif kind == "doubled_scores":
        rows[-1] = rows[0]
    elif kind == "nan_scores":
        rows[0].update(dict.fromkeys(rows[0].keys() - {"index"}, float("nan")))
    elif kind == "wrong_index":
        rows[0]["index"] = len(rows)
