"""The services that steps ask for by name, beyond those of every run: models and prompts."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_index.llm.prompts import Prompts
from graphrag_index.pipeline.workflow import Service, Workflow, check_settings
from graphrag_index.schema.settings.models import find_model, identity, vector_identity
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.step import Step
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import StoredTable

if TYPE_CHECKING:
    from graphrag_index.llm.registry import Models


def services_of(
    settings: Settings, models: "Models | None" = None, root: Path = Path()
) -> dict[str, Service]:
    """Return the services of a project by name; without `models` its own are opened."""
    return {
        "chat_model": _chat_model(settings, models),
        "embedding_model": _embedding_model(settings, models),
        "prompts": Service(
            open=lambda step, section: Prompts(root),
            identity=lambda step, section: Prompts(root).own(),
        ),
    }


def models_of(
    workflow: Workflow,
    settings: Settings,
    root: Path,
    budget: float | None = None,
    batch: bool = False,
) -> "Models":
    """Return the models of a workflow; each is opened when a step asks for it."""
    from graphrag_index.llm.registry import Models

    store = TableStore(root / settings.output)
    return Models(
        settings.models,
        store.output,
        store.next_number,
        _remote_models(workflow, settings),
        budget,
        batch,
    )


def asking_steps(workflow: Workflow, settings: Settings) -> set[str]:
    """Return the names of the steps that send requests to a model."""
    sections = check_settings(workflow, settings)
    embeds = settings.generate_text_embeddings.model in settings.models
    return {
        step.name
        for step in workflow.steps
        if "chat_model" in (needs := step.needs(sections.get(step.name)))
        or (embeds and "embedding_model" in needs)
    }


def _chat_model(settings: Settings, models: "Models | None") -> Service:
    def check(step: Step, section: Any) -> None:
        find_model(settings.models, _chat_name(section), step.name)

    def open(step: Step, section: Any) -> Any:
        return _models(settings, models).chat(_chat_name(section), step.name)

    return Service(
        open=open, check=check, identity=lambda step, section: identity(settings.models, section)
    )


def _chat_name(section: Any) -> str:
    """Return the name of the chat model that a section chooses."""
    name = section.get("model") if isinstance(section, dict) else getattr(section, "model", None)
    return str(name or "chat")


def _embedding_model(settings: Settings, models: "Models | None") -> Service:
    name = settings.generate_text_embeddings.model

    def check(step: Step, section: Any) -> None:
        if name not in settings.models:
            from graphrag_index.llm.local_embeddings import check_embedding_model

            check_embedding_model(name)

    def open(step: Step, section: Any) -> Any:
        if name in settings.models:
            return _models(settings, models).embedding(name, step.name)
        from graphrag_index.llm.local_embeddings import load_embedding_model

        return load_embedding_model(name)

    return Service(
        open=open,
        check=check,
        identity=lambda step, section: vector_identity(settings.models, name),
        close=_record_model,
    )


def _record_model(model: Any, tables: Mapping[str, StoredTable]) -> Mapping[str, StoredTable]:
    """Record with each table of vectors the model that made them."""
    # A local model is identified by its name.
    name, dimensions = model.identity or (model.name, None)
    return {
        table_name: replace(
            table, vectors=replace(table.vectors, model=name, dimensions=dimensions)
        )
        if table.vectors
        else table
        for table_name, table in tables.items()
    }


def _models(settings: Settings, models: "Models | None") -> "Models":
    from graphrag_index.llm.registry import Models

    return models or Models(settings.models, Path(settings.output))


def _remote_models(workflow: Workflow, settings: Settings) -> dict[str, str]:
    """Return the models of `settings.models` that the steps of a workflow ask.

    By name: the step that embeds with it; empty for a chat model.
    """
    names: dict[str, str] = {}
    sections = check_settings(workflow, settings)
    for step in workflow.steps:
        section = sections.get(step.name)
        needs = step.needs(section)
        if "chat_model" in needs:
            name = _chat_name(section)
            find_model(settings.models, name, step.name)
            names.setdefault(name, "")
        vectors = settings.generate_text_embeddings.model
        if "embedding_model" in needs and vectors in settings.models:
            names[vectors] = step.name
    return names
