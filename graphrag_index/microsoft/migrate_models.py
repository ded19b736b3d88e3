"""Conversion of Microsoft GraphRAG models: address, API key, limits and parameters.

Version 3 has models in the sections `completion_models` and `embedding_models`, version 2 in
`models`. Version 1 has one language model (`llm`) and one embedding model (`embeddings.llm`).
"""

import re
from collections.abc import Mapping
from itertools import chain, count
from typing import Any

from graphrag_index.microsoft.migrate_project import (
    KEYS,
    UNKNOWN,
    ConvertedSettings,
    MicrosoftProject,
    NotCarriedError,
    UnsetVariableError,
    check_value,
    escape_dollars,
    find_prefix,
    find_variables,
    flatten,
    invert_section,
)
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.settings import DEFAULT_MODELS

# Names of the models that a step uses if its settings name no model.
_DEFAULT_NAMES = ("default_completion_model", "default_chat_model", "default_embedding_model")
_OUR_KEYS, _LEFT = invert_section("model"), invert_section("model_left")
# Request parameters with these names may be secrets: do not copy them into our settings.
_SECRET = re.compile(r"key|secret|password|credential|auth|header|token$", re.IGNORECASE)
# Settings that identify the model: keep them even if their variable is not set.
_IDENTITY = ("model", "base_url", "deployment")


def convert_models(carried: ConvertedSettings) -> dict[str, dict[str, Any]]:
    """Return our section `models`, and report on each key in `carried`."""
    models: dict[str, dict[str, Any]] = {}
    for path, values, is_embedding in _read_models(carried.project):
        their_name = path.rpartition(".")[2]
        # Our steps use `chat` and `embedding` by default.
        name = "embedding" if is_embedding else "chat"
        if name in models:
            name = their_name if their_name not in models else f"{their_name}_{len(models)}"
        model = _ModelConversion(carried, path, name, values)
        if "model" not in model.theirs:
            carried.note_left(path, "it names no model")
            continue
        models[name] = model.convert(is_embedding)
        carried.names[their_name] = name
    if models and "chat" not in models:
        models["chat"] = dict(DEFAULT_MODELS["chat"])
    return models


def _read_models(project: MicrosoftProject) -> list[tuple[str, Mapping[str, Any], bool]]:
    """Return (key, settings, whether the model embeds) of each model; default models come first."""
    found: list[tuple[str, Any, bool]] = []
    for section in ("completion_models", "embedding_models", "models"):
        named = project.get(section)
        for name, values in named.items() if isinstance(named, Mapping) else ():
            kind = values.get("type", "") if isinstance(values, Mapping) else ""
            is_embedding = "embedding" in (str(kind) if section == "models" else section)
            found.append((f"{section}.{name}", values, is_embedding))
    llm, embedding = project.get("llm"), project.get("embeddings.llm")
    if isinstance(embedding, Mapping) and isinstance(llm, Mapping):
        # In version 1 the embedding model shares the access settings of the language model.
        shared = ("api_key", "api_base", "api_version", "organization", "proxy")
        embedding = {**{key: llm[key] for key in shared if key in llm}, **embedding}
    found += [("llm", llm, False), ("embeddings.llm", embedding, True)]
    found.sort(key=lambda entry: entry[0].rpartition(".")[2] not in _DEFAULT_NAMES)
    return [entry for entry in found if isinstance(entry[1], Mapping)]


class _ModelConversion:
    """The conversion of one model: each setting moves to `ours`, or is reported with a reason."""

    def __init__(
        self, carried: ConvertedSettings, path: str, name: str, values: Mapping[str, Any]
    ) -> None:
        self.carried, self.path, self.name = carried, path, name
        self.theirs = {key: value for key, value in flatten(values) if value not in (None, {})}
        self.ours: dict[str, Any] = {}

    def convert(self, is_embedding: bool) -> dict[str, Any]:
        """Return the settings of the model in our section `models`."""
        self._convert_setting("model", "model", self.theirs.pop("model"))
        self._convert_provider()
        self._convert_key()
        for theirs, ours in _OUR_KEYS.items():
            if theirs not in self.theirs:
                continue
            value = self.theirs.pop(theirs)
            if ours in self.ours:
                self._note_left(theirs, f"{ours} is set already")
            elif value == "auto":
                self._note_left(theirs, "not needed: the limits that a server states are respected")
            elif is_embedding and ours in ("temperature", "max_output_tokens"):
                self._note_left(theirs, "not needed: it embeds")
            else:
                self._convert_setting(theirs, ours, value)
        self._convert_rate_limit()
        for key in ("concurrent_requests", "parallelization.num_threads"):
            value = self.carried.project.get(key)
            if "concurrency" not in self.ours and value is not None:
                self._convert_setting("", "concurrency", value, their_path=key)
        if not is_embedding:
            self._convert_parameters()
        for theirs in dict.fromkeys(find_prefix(key, _LEFT) or key for key in self.theirs):
            self._note_left(theirs, _LEFT.get(theirs, UNKNOWN))
        return self.ours

    def _convert_provider(self) -> None:
        """Convert provider and address: Azure, or a server with an OpenAI-compatible API."""
        kind = str(self.theirs.get("type") or "")
        provider = str(self.theirs.pop("model_provider", None) or "")
        if kind.startswith("azure") and not provider:
            self.theirs.pop("type")
        is_azure = provider.startswith("azure") or kind.startswith("azure")
        base = self.theirs.pop("api_base", None)
        if is_azure:
            self._convert_setting("model_provider" if provider else "type", "provider", "azure")
        elif provider == "openai":
            self._convert_setting("model_provider", "provider", provider)
            # OpenAI is our default provider, so the setting is not needed.
            del self.ours["provider"]
        elif provider:
            address = KEYS["addresses"].get(provider)
            if base is not None:
                self._note_left("model_provider", "not needed: base_url tells where the model is")
                if provider.startswith("ollama") and "$" not in str(base):
                    base = str(base).rstrip("/").removesuffix("/v1") + "/v1"
            elif address:
                self._convert_setting("model_provider", "base_url", address)
            else:
                self._note_left(
                    "model_provider",
                    f"the address of {provider} is not known: {self._use_address_variable()} has "
                    "to be one that speaks the protocol of OpenAI",
                )
        if base is not None:
            self._convert_setting("api_base", "base_url", base)
            if "base_url" not in self.ours and not is_azure:
                self._note_left(
                    "api_base", f"the address is wanted in {self._use_address_variable()}"
                )
        if is_azure and "base_url" not in self.ours:
            # Settings for Azure are invalid without an address: write a placeholder.
            self.ours["base_url"] = "https://NAME.openai.azure.com"
            self._note_left("api_base", "it is missing: write the address of Azure into base_url")

    def _use_address_variable(self) -> str:
        """Set the address to a new variable, so that no request goes to OpenAI by default."""
        variable = f"GRAPHRAG_API_BASE_{_to_variable_part(self.name)}"
        self.ours["base_url"] = f"${{{variable}}}"
        return variable

    def _convert_key(self) -> None:
        """Convert the API key: keep a variable, and move a literal key to a variable in `.env`."""
        setting = next((key for key in ("auth_method", "auth_type") if key in self.theirs), "")
        method = self.theirs.pop(setting, None)
        if method == "api_key":
            self._note_left(setting, "not needed: a key is the only way")
        elif method is not None:
            self._note_left(setting, "only keys are known: write one into .env, for api_key")
        needs_key = method in (None, "api_key")
        key = self.theirs.pop("api_key", None)
        if key is None and needs_key and self.path in ("llm", "embeddings.llm"):
            # Version 1 reads this variable if the settings have no API key.
            key = "${GRAPHRAG_API_KEY}"
        if key is None:
            if not needs_key:
                self.ours["api_key"] = "${AZURE_OPENAI_API_KEY:-}"
            return
        with self.carried.reason_for(f"{self.path}.api_key"):
            names = find_variables(key)
            shown = variable = str(key)
            if not names or variable != f"${{{names[0]}}}":
                secret = str(self.carried.project.expand(key))
                name = self._new_variable(secret)
                self.carried.secrets[name] = secret
                variable = f"${{{name}}}"
                shown = f"{variable}; the key is in .env"
            self.ours["api_key"] = variable
            self.carried.note_kept(f"{self.path}.api_key", self._our_path("api_key"), shown)

    def _new_variable(self, secret: str) -> str:
        """Return the name of a variable for an API key; no other API key uses this variable."""
        # Variables in Microsoft's settings belong to other API keys, even if they are not set.
        named = {
            name for _, value in self.carried.project.all_values() for name in find_variables(value)
        }
        taken = dict.fromkeys(named, "") | dict(self.carried.project.environment)
        taken |= self.carried.secrets
        wanted, own = "GRAPHRAG_API_KEY", _to_variable_part(self.name)
        names = chain([wanted, f"{wanted}_{own}"], (f"{wanted}_{own}_{n}" for n in count(2)))
        return next(name for name in names if taken.get(name, secret) == secret)

    def _convert_rate_limit(self) -> None:
        """Convert rate limits of any period to rate limits per minute."""
        period = self._positive_number("rate_limit.period_in_seconds") or 60
        for unit in ("requests", "tokens"):
            theirs = f"rate_limit.{unit}_per_period"
            number = self._positive_number(theirs)
            self.theirs.pop(theirs, None)
            if number:
                self._convert_setting(
                    theirs, f"{unit}_per_minute", max(1, int(number * 60 / period))
                )

    def _positive_number(self, theirs: str) -> float:
        """Return the positive number of a setting of Microsoft's; 0 if there is none."""
        value = None
        with self.carried.reason_for(f"{self.path}.{theirs}"):
            value = self.carried.project.expand(self.theirs.get(theirs))
        return float(value) if isinstance(value, int | float) and value > 0 else 0.0

    def _convert_parameters(self) -> None:
        """Convert the parameters that are sent with each request."""
        parameters = {}
        for theirs in list(self.theirs):
            name = theirs.removeprefix("call_args.")
            is_sent = theirs.startswith("call_args.") and "." not in name
            if name == "n" or not (is_sent or theirs in KEYS["model_parameters"]):
                continue
            value = self.theirs.pop(theirs)
            if _SECRET.search(name):
                self._note_left(theirs, "it may hold a secret: use api_key")
            else:
                parameters[name] = value
                path = self._our_path(f"parameters.{name}")
                self.carried.note_kept(f"{self.path}.{theirs}", path, value)
        if parameters:
            self.ours["parameters"] = parameters

    def _convert_setting(self, theirs: str, ours: str, value: Any, their_path: str = "") -> None:
        """Convert a value to a setting of our model, or record why it is invalid."""
        their_path = their_path or f"{self.path}.{theirs}"
        try:
            expanded = self.carried.project.expand(value)
            if ours in ("model", "deployment", "api_version"):
                expanded = str(expanded)
            trial = {"model": "m", "context_window": 1 << 30, ours: expanded}
            if ours == "provider":
                trial["base_url"] = "https://x"
            # An address may contain an API key, which must not be shown.
            check_value(ModelSettings, trial, self._our_path(ours), is_shown=ours != "base_url")
        except NotCarriedError as error:
            if isinstance(error, UnsetVariableError) and ours in _IDENTITY:
                self.ours[ours] = value
                self.carried.note_kept(
                    their_path, self._our_path(ours), f"{value}, which is not set"
                )
            else:
                self.carried.note_left(their_path, error)
            return
        if ours == "max_output_tokens" and expanded >= 128_000:
            self.ours["context_window"] = int(expanded) + 128_000
        self.ours[ours] = value if find_variables(value) else escape_dollars(expanded)
        self.carried.note_kept(their_path, self._our_path(ours), self.ours[ours])

    def _note_left(self, theirs: str, why: object) -> None:
        self.carried.note_left(f"{self.path}.{theirs}", why)

    def _our_path(self, ours: str) -> str:
        return f"models.{self.name}.{ours}"


def _to_variable_part(name: str) -> str:
    """Convert the name of a model to capital letters that fit into a variable name."""
    return re.sub(r"\W", "_", name.upper(), flags=re.ASCII)
