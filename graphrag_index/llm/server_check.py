"""Checks of the server of a model before the first request is paid for."""

import json
from dataclasses import replace

from graphrag_index.errors import ModelError
from graphrag_index.llm.client import LLMClient
from graphrag_index.llm.probe import Trial, UnansweredError
from graphrag_index.llm.protocol import (
    Capabilities,
    parse_error,
    parse_json,
    read_chat,
    read_embeddings,
)
from graphrag_index.llm.retries import RejectedError, ReplyTimeoutError, RetryError
from graphrag_index.schema.settings.models import ModelSettings


async def check_server(client: LLMClient) -> None:
    """Check, without cost, that the server answers, accepts the key and has the model.

    Raises `ModelError` if the server does not.
    """
    name, address, settings = client.name, client.address, client.settings
    try:
        status, content = await client.request_models()
    except (ReplyTimeoutError, TimeoutError):
        return  # The server is slow, but it may still answer requests.
    except RetryError as error:
        raise ModelError(
            f"Model {name}: no server answers at {address} ({error}): start it, or "
            "set base_url of this model."
        ) from None
    if status in (401, 403):
        raise client.settings_error(status, parse_error(content))
    # An unlisted model may exist: some servers list none, and on Azure it is a deployment's name.
    if status >= 400 or settings.provider == "azure":
        return
    try:
        known = [str(model["id"]) for model in json.loads(content)["data"]]
    except (ValueError, KeyError, TypeError):
        return
    # Ollama adds a tag to the names of its models, such as "llama3:latest".
    wanted = settings.model
    if known and not any(id == wanted or id.split(":")[0] == wanted for id in known):
        shown = ", ".join(sorted(known)[:8]) + (", ..." if len(known) > 8 else "")
        raise ModelError(f"Model {name}: {address} has no model {wanted!r}; it has {shown}.")


async def probe_server(client: LLMClient, embeds: bool) -> list[Trial]:
    """Send a tiny request of each kind; remember the parts of requests that are refused.

    Raises `ModelError` if the server does not answer, or refuses what every request needs.
    """
    await check_server(client)
    # Forget which parts of requests the server has refused.
    client.writer.capabilities = Capabilities.from_json(client.settings, None)
    probe = client.probe
    try:
        trials = await (probe.probe_vectors() if embeds else probe.probe_chat(is_checked=True))
        answers = [trial.answer for trial in trials if not trial.reason]
        if embeds:
            (vector,), _ = read_embeddings(parse_json(answers[-1]), 1)
            check_dimension(client.name, client.settings, len(vector))
        else:
            read_chat(parse_json(answers[0]))
    except RejectedError as error:
        raise ModelError(
            f"Model {client.name}: {client.address} answers, but not in the format of the settings "
            f"({client.redact(str(error))})."
        ) from None
    except (UnansweredError, RetryError) as error:
        raise ModelError(
            f"Model {client.name}: {client.address} does not answer a tiny request "
            f"({client.redact(str(error))}): see the messages of the server."
        ) from None
    return [replace(trial, reason=client.redact(trial.reason)) for trial in trials]


def check_dimension(name: str, settings: ModelSettings, dimension: int) -> None:
    """Raise `ModelError` if a model returns vectors of another dimension than its settings say."""
    if settings.dimensions not in (None, dimension):
        raise ModelError(
            f"Model {name} returns vectors of {dimension} numbers and ignores `dimensions`: set "
            f"this to {dimension} or null."
        )
