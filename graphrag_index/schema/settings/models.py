"""What a user says of a model: its address, its parameters, its limits and its price."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.section import Section


class Price(Section):
    """Dollars for a million tokens."""

    input: float = Field(0.0, ge=0, description="Prompt tokens.")
    cached_input: float | None = Field(
        None, ge=0, description="Prompt tokens that the provider had cached; null: as input."
    )
    output: float = Field(0.0, ge=0, description="Tokens of the reply, thoughts included.")
    batch_discount: float = Field(
        0.5, ge=0, le=1, description="Share of the price that a batch (run --batch) saves."
    )

    def in_batch(self) -> "Price":
        """Return what the same costs in a batch."""
        share = 1 - self.batch_discount
        cached = None if self.cached_input is None else self.cached_input * share
        return Price(input=self.input * share, cached_input=cached, output=self.output * share)


class BatchLimits(Section):
    """What the provider takes as one batch, with `run --batch`."""

    max_requests: int = Field(
        50_000, ge=1, le=10_000_000, description="Requests of one batch at most."
    )
    max_bytes: int = Field(
        200_000_000,
        ge=1,
        le=1 << 40,
        description="Bytes of one batch at most; larger ones are split.",
    )
    max_tokens: int | None = Field(
        None,
        ge=1,
        le=1 << 40,
        description="Tokens that may wait in all batches at once, as the account allows; the rest "
        "follows when they are done. null: no limit of ours.",
    )
    poll_seconds: float = Field(
        30.0,
        gt=0,
        le=3_600,
        description="How often run --batch --wait looks first; it slows down to a tenth of that.",
    )


class ModelSettings(Section):
    """A model behind an OpenAI-compatible address."""

    model: str = Field(description="Name of the model, as its server knows it.")
    provider: Literal["openai", "azure"] = Field(
        "openai", description="azure: an Azure OpenAI deployment; openai: every other server."
    )
    base_url: str | None = Field(
        None, description="Address of the server, such as http://localhost:11434/v1; null: OpenAI."
    )
    api_key: SecretStr = Field(
        SecretStr(""), description="Key; ${OPENAI_API_KEY} takes it from the environment."
    )
    api_version: str = Field("2024-10-21", description="Azure: version of the API.")
    deployment: str | None = Field(None, description="Azure: name of the deployment; null: model.")
    context_window: int = Field(
        128_000, ge=512, description="Tokens that prompt and reply may have together."
    )
    max_output_tokens: int = Field(
        8_192, ge=16, description="Longest reply, in tokens; thoughts count."
    )
    temperature: float | None = Field(
        0.0, ge=0, le=2, description="null: the server's own; dropped where it is not supported."
    )
    parameters: dict[str, Any] = Field(
        {}, description="Sent with each request as they are, such as reasoning_effort: low."
    )
    structured: Literal["auto", "json_schema", "tool", "json_object", "text"] = Field(
        "auto", description="How a reply is made to fit; auto tries them in this order, once."
    )
    stream: bool = Field(
        False,
        description="Receive replies as they are written: timeout then counts from the "
        "last piece, not from the start. For slow servers.",
    )
    timeout: float = Field(300.0, gt=0, le=86_400, description="Seconds without an answer.")
    retry_seconds: float = Field(
        600.0, ge=0, le=86_400, description="How long one request is tried again after failures."
    )
    concurrency: int = Field(
        32, ge=1, le=4_096, description="Requests at once at most; fewer where the server objects."
    )
    requests_per_minute: int | None = Field(None, ge=1, description="null: no limit of ours.")
    tokens_per_minute: int | None = Field(None, ge=1, description="null: no limit of ours.")
    batch: BatchLimits = Field(BatchLimits(), description="Limits of run --batch.")
    dimensions: int | None = Field(
        None, ge=1, description="Embeddings: shorter vectors, where the model can; null: all."
    )
    price: Price | None = Field(
        None, description="null: from the price list of this program, where the model is in it."
    )

    @property
    def key(self) -> str:
        """The key itself, which no log, table or message may show."""
        return self.api_key.get_secret_value()

    def identity(self) -> dict[str, Any]:
        """What replies depend on; limits, address and key are no part of it."""
        return {
            "model": self.deployment or self.model,
            "temperature": self.temperature,
            "parameters": self.parameters,
            "max_output_tokens": self.max_output_tokens,
            "dimensions": self.dimensions,
        }

    def vector_identity(self) -> tuple[str, int | None]:
        """What a vector depends on beside its text; an embedding model is sent nothing else."""
        return self.deployment or self.model, self.dimensions

    @field_validator("api_key")
    @classmethod
    def _key_fits_a_header(cls, api_key: SecretStr) -> SecretStr:
        """A key that was copied with a dash or a space of the page around it is told at once."""
        key = api_key.get_secret_value().strip()
        wrong = next((at for at, sign in enumerate(key, 1) if not "!" <= sign <= "~"), None)
        if wrong is not None:
            raise ValueError(
                f"character {wrong} of {len(key)} is none that a key can have: copy it again"
            )
        return SecretStr(key)

    @field_validator("base_url", mode="before")
    @classmethod
    def _address_is_no_secret(cls, address: object) -> object:
        """An address is shown in messages and kept in the index."""
        if isinstance(address, str) and address:
            # Only behind these can a key stand; what may be one is not repeated.
            if "@" in address:
                raise ValueError("it may hold no user or password: put the key into api_key")
            if "?" in address or "#" in address:
                raise ValueError(
                    "it must end before the question mark: a key goes into api_key, the version "
                    "of the API into api_version"
                )
            if not address.startswith(("http://", "https://")):
                raise ValueError("it must begin with http:// or https://")
        return address or None

    @model_validator(mode="after")
    def _azure_has_an_address(self) -> "ModelSettings":
        if self.provider == "azure" and not self.base_url:
            raise ValueError("azure needs base_url: https://NAME.openai.azure.com")
        if self.max_output_tokens >= self.context_window:
            raise ValueError("max_output_tokens must be less than context_window")
        return self


def identity(models: Mapping[str, ModelSettings], section: Any) -> Any:
    """Return what the replies to a step depend on beyond its own settings.

    None if its section names no model of these.
    """
    name: Any = getattr(section, "model", None)
    return models[name].identity() if name in models else None


def vector_identity(models: Mapping[str, ModelSettings], name: str) -> tuple[str, int | None]:
    """Return what vectors depend on: an embedding model, by its name in the settings.

    One that is not in the section `models` is of this machine, and is what it is called.
    """
    return models[name].vector_identity() if name in models else (name, None)


def find_model(models: Mapping[str, ModelSettings], name: str, step: str) -> ModelSettings:
    """Return a model by its name in the settings.

    Raises
    ------
    SettingsError
        There is none of this name.
    """
    if name not in models:
        known = ", ".join(models) or "none"
        raise SettingsError(
            f"{step}.model is {name!r}, which the section models does not have; it has: {known}."
        )
    return models[name]
