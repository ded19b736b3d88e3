"""Questions are compared with the vectors of an index only by the model that made them."""

from typing import TYPE_CHECKING

from graphrag_index.errors import ModelError, SettingsError

if TYPE_CHECKING:
    from graphrag_index.schema.settings.settings import Settings
    from graphrag_query.retrieval.index_store import KnowledgeModel

    # The name of a model as its server knows it, and the number of dimensions asked for.
    Identity = tuple[str, int | None]


def check_embedding_model(model: "KnowledgeModel", settings: "Settings") -> None:
    """See that today's settings name the embedding model that made the vectors of an index.

    Raises
    ------
    SettingsError
        They name another.
    """
    from graphrag_index.schema.settings.models import vector_identity

    if not model.has("text_unit_text"):
        return
    now = vector_identity(settings.models, settings.generate_text_embeddings.model)
    if now != model.vector_identity:
        raise other_model(model, now)


def other_model(model: "KnowledgeModel", now: "Identity") -> SettingsError:
    """Say that the settings name another model than the one that made the vectors."""
    current = model.store.read_pointer()
    is_current = current is not None and current.number == model.version.number
    fix = "run `graphrag-index run`, or set it back" if is_current else "set it back to ask it"
    version = "" if is_current else f", version {model.version.number},"
    return SettingsError(
        f"The vectors of {model.store.output}{version} were made by "
        f"{_described(model.vector_identity)}, and the settings now say {_described(now)}: {fix}."
    )


def other_dimension(model: "KnowledgeModel", n_numbers: int) -> ModelError:
    """Say that a model gives vectors of another length than it gave when the index was made."""
    settings = model.settings.generate_text_embeddings.model
    if not model.store.is_ours:
        return ModelError(
            f"The vectors of {model.store.output} have {model.dimension:,} numbers, and model "
            f"{settings} gives {n_numbers:,} for a question: set generate_text_embeddings.model to "
            f"the one that made them, or models.{settings}.dimensions to {model.dimension}."
        )
    return ModelError(
        f"The vectors of {model.store.output} have {model.dimension} numbers, and model {settings} "
        f"gives {n_numbers} for a question: it is another one by the same name. Put the one back "
        f"that made them, or set models.{settings}.dimensions to {n_numbers} and run "
        "`graphrag-index run`."
    )


def _described(identity: "Identity") -> str:
    name, dimensions = identity
    return f"{name} ({dimensions} dimensions)" if dimensions else name
