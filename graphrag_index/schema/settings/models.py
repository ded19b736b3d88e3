"""Settings of a model: its address, parameters, limits and price."""

import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.section import Section, Share, setting

# An API key that is still the name of a variable, which is not set.
UNSET_KEY = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Price(Section):
    """Price in dollars per million tokens."""

    input: float = setting(0.0, "Prompt tokens.", ge=0)
    cached_input: float | None = setting(
        None, "Prompt tokens from the cache of the provider; null: the price of input.", ge=0
    )
    output: float = setting(0.0, "Tokens of the reply, reasoning included.", ge=0)
    batch_discount: Share = setting(0.5, "Discount of a batch (run --batch), as a share.")

    def in_batch(self) -> "Price":
        """Return the price of requests that are sent in a batch."""
        share = 1 - self.batch_discount
        cached = None if self.cached_input is None else self.cached_input * share
        return Price(input=self.input * share, cached_input=cached, output=self.output * share)


class BatchLimits(Section):
    """Limits of the provider for batches, with `run --batch`."""

    max_requests: int = setting(50_000, "Maximum requests in a batch.", ge=1, le=10_000_000)
    max_bytes: int = setting(
        200_000_000, "Maximum bytes of a batch; the rest goes into another.", ge=1, le=1 << 40
    )
    max_tokens: int | None = setting(
        None,
        "Tokens in all open batches at once, as the account allows; the rest follows when they "
        "are done. null: no limit.",
        ge=1,
        le=1 << 40,
    )
    poll_seconds: float = setting(
        30.0, "Interval of run --batch --wait in seconds; it grows up to tenfold.", gt=0, le=3_600
    )


class ModelSettings(Section):
    """A model behind an OpenAI-compatible API."""

    model: str = Field(description="Name of the model on its server.")
    provider: Literal["openai", "azure"] = setting(
        "openai", "azure: an Azure OpenAI deployment; openai: every other server."
    )
    base_url: str | None = setting(
        None, "URL of the server, such as http://localhost:11434/v1; null: OpenAI."
    )
    api_key: SecretStr = setting(
        SecretStr(""), "API key; ${OPENAI_API_KEY} takes it from the environment."
    )
    api_version: str = setting("2024-10-21", "Azure: version of the API.")
    deployment: str | None = setting(None, "Azure: name of the deployment; null: model.")
    context_window: int = setting(128_000, "Maximum tokens of prompt and reply together.", ge=512)
    max_output_tokens: int = setting(8_192, "Longest reply, in tokens, reasoning included.", ge=16)
    temperature: float | None = setting(
        0.0, "Sampling temperature; null: default of the server.", ge=0, le=2
    )
    parameters: dict[str, Any] = setting(
        {}, "Further parameters of each request, such as reasoning_effort: low."
    )
    structured: Literal["auto", "json_schema", "tool", "json_object", "text"] = setting(
        "auto", "Method to get JSON replies; auto: the first of these that works."
    )
    stream: bool = setting(
        False,
        "Stream replies: timeout then counts from the last chunk, not from the start. For slow "
        "servers.",
    )
    timeout: float = setting(300.0, "Seconds to wait for a response.", gt=0, le=86_400)
    retry_seconds: float = setting(600.0, "How long a failed request is retried.", ge=0, le=86_400)
    concurrency: int = setting(
        32, "Concurrent requests at most; fewer if the server returns rate limits.", ge=1, le=4_096
    )
    requests_per_minute: int | None = setting(None, "Limit of requests; null: none.", ge=1)
    tokens_per_minute: int | None = setting(None, "Limit of tokens; null: none.", ge=1)
    batch: BatchLimits = setting(BatchLimits(), "Limits of run --batch.")
    dimensions: int | None = setting(
        None, "Embeddings: dimension of vectors, if the model can shorten them; null: all.", ge=1
    )
    price: Price | None = setting(
        None, "Price of the model; null: from the price list of this program, if it has the model."
    )

    @property
    def key(self) -> str:
        """The API key in plain text, empty if it is not set. No log or message may show it."""
        key = self.api_key.get_secret_value()
        return "" if UNSET_KEY.fullmatch(key) else key

    def require_key(self) -> str:
        """Return the API key; raise SettingsError if its variable has no value."""
        unset = UNSET_KEY.fullmatch(self.api_key.get_secret_value())
        if unset is not None:
            raise SettingsError(
                f"The key of the model {self.deployment or self.model} is {unset.group()}, "
                f"which is not set or empty: export {unset[1]} or write it into .env."
            )
        return self.key

    def identity(self) -> dict[str, Any]:
        """Return the settings that change replies; not limits, address and key."""
        return {
            "model": self.deployment or self.model,
            "temperature": self.temperature,
            "parameters": self.parameters,
            "max_output_tokens": self.max_output_tokens,
            "dimensions": self.dimensions,
        }

    def vector_identity(self) -> tuple[str, int | None]:
        """Return the settings that change a vector: (name of the model, dimension)."""
        return self.deployment or self.model, self.dimensions

    @field_validator("api_key")
    @classmethod
    def _check_api_key(cls, api_key: SecretStr) -> SecretStr:
        """Reject a key with characters that an HTTP header cannot contain."""
        key = api_key.get_secret_value().strip()
        for at, sign in enumerate(key, 1):
            if not "!" <= sign <= "~":
                raise ValueError(f"character {at} of {len(key)} cannot be in a key: copy it again")
        return SecretStr(key)

    @field_validator("base_url", mode="before")
    @classmethod
    def _check_base_url(cls, address: object) -> object:
        """Reject an address that contains a key, since messages and the index show the address."""
        if isinstance(address, str) and address:
            # A key can only be in the user name or the query. The messages do not repeat the key.
            if "@" in address:
                raise ValueError("it may hold no user or password: put the key into api_key")
            if "?" in address or "#" in address:
                raise ValueError(
                    "it must end before the question mark: a key goes into api_key, the version "
                    "of the API into api_version"
                )
            if not address.startswith(("http://", "https://")):
                raise ValueError("it must begin with http:// or https://")
            if not urlsplit(address).hostname or urlsplit(address).port == 0:
                raise ValueError("it must name a server, such as http://localhost:11434/v1")
        return address or None

    @model_validator(mode="after")
    def _check_azure_and_tokens(self) -> "ModelSettings":
        if self.provider == "azure" and not self.base_url:
            raise ValueError("azure needs base_url: https://NAME.openai.azure.com")
        if self.max_output_tokens >= self.context_window:
            raise ValueError("max_output_tokens must be less than context_window")
        return self


def identity(models: Mapping[str, ModelSettings], section: Any) -> Any:
    """Return the identity of the model that a section names; None if it names no known model."""
    name: Any = getattr(section, "model", None)
    return models[name].identity() if name in models else None


def describe_vector_identity(identity: tuple[str, int | None]) -> str:
    """Describe an embedding model, as `ModelSettings.vector_identity` returns it, for messages."""
    name, dimensions = identity
    return f"{name} ({dimensions:,} dimensions)" if dimensions else name


def find_model(models: Mapping[str, ModelSettings], name: str, step: str) -> ModelSettings:
    """Return a model by its name in the settings; raise SettingsError if it is not there."""
    if name not in models:
        known = ", ".join(models) or "none"
        raise SettingsError(
            f"{step}.model is {name!r}, but the section models has no such model. It has: {known}."
        )
    return models[name]
