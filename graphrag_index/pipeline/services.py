"""The services that steps ask for by name: models, prompts; and checks of them before a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_index.llm.prompts import Prompts
from graphrag_index.pipeline.workflow import Service, Workflow
from graphrag_index.schema.settings.models import find_model
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.step import Step
from graphrag_index.storage.table_store import TableStore

if TYPE_CHECKING:
    from graphrag_index.llm.registry import Models


def services_of(
    settings: Settings, models: "Models | None" = None, root: Path = Path()
) -> dict[str, Service]:
    """Return what steps may ask for by name, beyond their tables and settings."""

    def model_of(step: Step) -> str:
        section = getattr(settings, step.name, settings.steps.get(step.name, {}))
        name = section.get("model") if isinstance(section, dict) else section.model
        return str(name or "chat")

    def chat_model(step: Step) -> Any:
        return _models(settings, models).chat(model_of(step), step.name)

    def embedding_model(step: Step) -> Any:
        name = settings.generate_text_embeddings.model
        if name in settings.models:
            return _models(settings, models).embedding(name, step.name)
        from graphrag_index.llm.local_embeddings import load_embedding_model

        return load_embedding_model(name)

    def prompts(_: Step) -> Prompts:
        return Prompts(root)

    return {"chat_model": chat_model, "embedding_model": embedding_model, "prompts": prompts}


def _models(settings: Settings, models: "Models | None") -> "Models":
    from graphrag_index.llm.registry import Models

    return models or Models(settings.models, Path(settings.output))


def models_of(
    workflow: Workflow,
    settings: Settings,
    root: Path,
    budget: float | None = None,
    batch: bool = False,
) -> "Models":
    """Return the models that a workflow asks; nothing is opened before a step does."""
    from graphrag_index.llm.registry import Models

    store = TableStore(root / settings.output)
    return Models(
        settings.models,
        store.output,
        store.next_number,
        _named_models(workflow, settings),
        budget,
        batch,
    )


def check_models(workflow: Workflow, settings: Settings) -> None:
    """See that the models of a workflow are there, before anything runs.

    Raises
    ------
    SettingsError
        A step names a model that the settings do not have.
    ModelError
        The embedding model is not on this machine.
    """
    _named_models(workflow, settings)
    name = settings.generate_text_embeddings.model
    if name not in settings.models and any(
        "embedding_model" in step.needs(getattr(settings, step.name, None))
        for step in workflow.steps
    ):
        from graphrag_index.llm.local_embeddings import check_embedding_model

        check_embedding_model(name)


def check_decisions(workflow: Workflow, settings: Settings, root: Path) -> None:
    """See that what a person has decided can be read, before anything runs.

    Raises
    ------
    SettingsError
        The file is damaged.
    """
    if any(step.name == "resolve_entities" and step.is_shipped for step in workflow.steps):
        from graphrag_index.resolution.decisions_file import read_decisions

        read_decisions(root / settings.resolve_entities.file)


def _named_models(workflow: Workflow, settings: Settings) -> dict[str, str]:
    """Return the names of the models behind an address that the steps of a workflow ask.

    Each with the step that embeds with it; a chat model with nothing.
    """
    names: dict[str, str] = {}
    for step in workflow.steps:
        section = getattr(settings, step.name, None)
        name = getattr(section, "model", "chat")
        asked = step.needs(section)
        if "chat_model" in asked:
            find_model(settings.models, name, step.name)
            names.setdefault(name, "")
        if "embedding_model" in asked:
            vectors = settings.generate_text_embeddings.model if step.asks else name
            if vectors in settings.models:
                names[vectors] = step.name
    return names
