"""Better instructions by reflection on the scores of replies, with GEPA.

Agrawal et al., GEPA: Reflective Prompt Evolution Can Outperform Reinforcement Learning (2025),
arXiv 2507.19457. GEPA is seeded, and all replies are in the ledger: a run that was killed begins
again, finds the same requests answered, and goes on where it stopped.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_evaluation.tuning.corpus_sample import SampledPassage
from graphrag_evaluation.tuning.extraction_score import ExtractionScore
from graphrag_evaluation.tuning.prompt_trial import PROMPT, system_and_user
from graphrag_index.errors import SettingsError
from graphrag_index.llm.prompts import Prompts, quote_text
from graphrag_index.llm.request import (
    ParsedReply,
    ReplyError,
    ReplyFormat,
    Request,
    RequestSender,
    object_schema,
)

# Missed and ungrounded items that the feedback about one passage lists.
MAX_LISTED = 12
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")

Evaluate = Callable[[str, Sequence[SampledPassage]], list[ExtractionScore]]


def check_gepa() -> None:
    """Raise `SettingsError` if the package gepa is not installed."""
    from importlib.util import find_spec

    if find_spec("gepa") is None:
        raise SettingsError(
            '--optimize needs the package gepa: pip install "graphrag-index[tune]".'
        )


@dataclass
class OptimizedInstructions:
    """The best instructions, and the numbers of candidates and of replies that were scored."""

    text: str
    n_candidates: int
    n_scored: int
    n_unreadable: int  # proposals of the model that could not be read


def optimize_instructions(
    instructions: str,
    evaluate: Evaluate,
    reflector: RequestSender,
    prompts: Prompts,
    passages: tuple[Sequence[SampledPassage], Sequence[SampledPassage]],
    max_scored: int,
    seed: int,
) -> OptimizedInstructions:
    """Improve instructions on the first passages, and choose among them by the second.

    `evaluate` scores instructions on passages. Held-out passages must be in neither list.
    """
    check_gepa()
    import gepa

    train, validation = passages
    adapter = _Adapter(evaluate, reflector, prompts)
    result = gepa.optimize(
        seed_candidate={PROMPT: instructions},
        trainset=list(train),
        valset=list(validation),
        adapter=adapter,
        max_metric_calls=max_scored,
        seed=seed,
        skip_perfect_score=False,
        logger=_Silent(),
    )
    best = str(result.best_candidate[PROMPT])
    n = result.num_candidates, result.total_metric_calls or 0
    return OptimizedInstructions(best, *n, adapter.n_unreadable)


class _Silent:
    def log(self, message: str) -> None: ...


class _Adapter:
    """The system that GEPA improves: instructions, and the scores of the replies to them."""

    def __init__(self, evaluate: Evaluate, reflector: RequestSender, prompts: Prompts) -> None:
        self._evaluate, self._reflector, self._prompts = evaluate, reflector, prompts
        self.n_unreadable = 0

    def evaluate(
        self, batch: list[SampledPassage], candidate: dict[str, str], capture_traces: bool = False
    ) -> Any:
        from gepa.core.adapter import EvaluationBatch

        scores = self._evaluate(candidate[PROMPT], batch)
        totals = [score.total for score in scores]
        return EvaluationBatch(scores, totals, scores if capture_traces else None)

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Any, components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        records = [
            {"passage": score.passage.text, "feedback": describe_score(score)}
            for score in eval_batch.trajectories
        ]
        return dict.fromkeys(components_to_update, records)

    def propose_new_texts(
        self,
        candidate: dict[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: list[str],
    ) -> dict[str, str]:
        """Ask the model for better instructions; keep the present ones if it gives none."""
        present = candidate[PROMPT]
        system = self._prompts.fill(
            "improve_instructions", {"placeholders": " ".join(_list_placeholders(present))}
        )
        shown = "\n\n".join(
            f"Passage:\n{quote_text(record['passage'])}\n{record['feedback']}"
            for record in reflective_dataset[PROMPT]
        )
        messages = system_and_user(system.strip(), f"Instructions:\n{present}\n\n{shown}")
        request = Request("instructions", messages, _instructions_format(present))
        (outcome,) = self._reflector.replies([request])
        self.n_unreadable += bool(outcome.failure)
        return {PROMPT: outcome.values[0] if outcome.values else present}


def describe_score(score: ExtractionScore) -> str:
    """Describe the score of a reply, the records it missed, and names not in the passage."""
    if score.failure:
        return f"The reply could not be read: {score.failure}."
    lines = [f"Score {score.total:.2f}: {score.validity:.0%} of the records were valid."]
    for what, items in (("Missed", score.missed), ("Not in the passage", score.ungrounded)):
        more = f" and {len(items) - MAX_LISTED} more" if len(items) > MAX_LISTED else ""
        if items:
            lines.append(f"{what}: {'; '.join(items[:MAX_LISTED])}{more}.")
    return " ".join(lines)


def _list_placeholders(text: str) -> list[str]:
    return sorted({place[0] for place in _PLACEHOLDER.finditer(text)})


def _instructions_format(present: str) -> ReplyFormat:
    """Return the format of new instructions, which have the placeholders of the present ones."""
    wanted = _list_placeholders(present)

    def read(data: Any) -> ParsedReply:
        text = data.get("instructions") if isinstance(data, dict) else None
        if not isinstance(text, str) or not text.strip():
            raise ReplyError("it must be an object with the text instructions")
        if _list_placeholders(text) != wanted:
            raise ReplyError(f"the placeholders must be {' '.join(wanted) or 'none'}")
        return ParsedReply(text)

    schema = object_schema({"instructions": {"type": "string"}})
    example = 'Reply with JSON: {"instructions": "…"}'
    return ReplyFormat("instructions", schema, read, example)
