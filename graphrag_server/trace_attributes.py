"""Names of the attributes of spans, in two conventions.

OpenTelemetry's semantic conventions for generative AI are not stable yet, so their names are
written here alone. https://opentelemetry.io/docs/specs/semconv/gen-ai/
https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Values that hold texts of documents, questions or answers.
CONTENTS = frozenset(("question", "answer", "messages", "reply"))
# Names of providers in the settings of models.
_PROVIDERS = {"openai": "openai", "azure": "azure.ai.openai"}


@dataclass(frozen=True)
class Convention:
    """One convention: constant attributes by the kind of a span, and names of values.

    A name for one kind of span has the kind before a dot.
    """

    kinds: Mapping[str, Mapping[str, str]]
    names: Mapping[str, str]

    def name_of(self, kind: str, value: str) -> str:
        """Return the name of the attribute that holds a value."""
        usual = self.names.get(value, f"graphrag.{value}")
        return self.names.get(f"{kind}.{value}", usual)


CONVENTIONS = {
    "gen_ai": Convention(
        kinds={
            kind: {"gen_ai.operation.name": kind}
            for kind in ("invoke_workflow", "retrieval", "chat", "embeddings", "rerank")
        },
        names={
            "index": "gen_ai.workflow.name",
            "model": "gen_ai.request.model",
            "provider": "gen_ai.provider.name",
            "prompt_tokens": "gen_ai.usage.input_tokens",
            "completion_tokens": "gen_ai.usage.output_tokens",
            "messages": "gen_ai.input.messages",
            "reply": "gen_ai.output.messages",
            "retrieval.question": "gen_ai.retrieval.query.text",
            "invoke_workflow.question": "gen_ai.input.messages",
            "invoke_workflow.answer": "gen_ai.output.messages",
        },
    ),
    "openinference": Convention(
        kinds={
            kind: {"openinference.span.kind": name}
            for kind, name in {
                "invoke_workflow": "CHAIN",
                "retrieval": "RETRIEVER",
                "chat": "LLM",
                "embeddings": "EMBEDDING",
                "rerank": "RERANKER",
                "run": "CHAIN",
                "step": "CHAIN",
                "batch": "CHAIN",
            }.items()
        },
        names={
            "model": "llm.model_name",
            "embeddings.model": "embedding.model_name",
            "rerank.model": "reranker.model_name",
            "provider": "llm.provider",
            "prompt_tokens": "llm.token_count.prompt",
            "completion_tokens": "llm.token_count.completion",
            "cost": "llm.cost.total",
            "messages": "input.value",
            "question": "input.value",
            "reply": "output.value",
            "answer": "output.value",
        },
    ),
}


def attribute_of(name: str, value: Any) -> str | int | float | bool:
    """Return the value of an attribute, which is a text or a number."""
    if name == "gen_ai.provider.name":
        return _PROVIDERS.get(value, str(value))
    if name == "gen_ai.input.messages":
        given = [{"role": "user", "content": value}] if isinstance(value, str) else value
        return _as_json([_message(part["role"], part["content"]) for part in given])
    if name == "gen_ai.output.messages":
        texts = [value] if isinstance(value, str) else value
        return _as_json([_message("assistant", text) for text in texts])
    return value if isinstance(value, str | int | float | bool) else _as_json(value)


def _message(role: str, content: Any) -> dict[str, Any]:
    text = content if isinstance(content, str) else _as_json(content)
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
