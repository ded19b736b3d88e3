"""Conversion of Microsoft GraphRAG models: address, API key, limits and parameters.

Version 3 has models in the sections `completion_models` and `embedding_models`, version 2 in
`models`.
"""

import re
from collections.abc import Mapping
from itertools import chain, count
from typing import Any

from graphrag_index.microsoft.migrate_project import (
    RULES,
    UNKNOWN_KEY,
    ConversionError,
    ConvertedSettings,
    MicrosoftProject,
    UnsetVariableError,
    check_value,
    escape_dollars,
    find_parent_key,
    find_variables,
    flatten,
    invert_section,
)
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.project_settings import DEFAULT_MODELS

# Names of the models that a step uses if its settings name no model.
_DEFAULT_MODEL_NAMES = ("default_completion_model", "default_chat_model", "default_embedding_model")
_NEW_KEYS, _SKIPPED = invert_section("model"), invert_section("skipped_model_keys")
# Request parameters with these names may be secrets: do not copy them into our settings.
_SECRET_NAME = re.compile(r"key|secret|password|credential|auth|header|token$", re.IGNORECASE)
# Settings that identify the model: keep them even if their variable is not set.
_IDENTIFYING_KEYS = ("model", "base_url", "deployment")


def convert_models(result: ConvertedSettings) -> dict[str, dict[str, Any]]:
    """Return our section `models`; record in `result` whether each Microsoft key is converted."""
    models: dict[str, dict[str, Any]] = {}
    for path, values, is_embedding in _read_models(result.project):
        old_name = path.rpartition(".")[2]
        # Our steps use `chat` and `embedding` by default.
        name = "embedding" if is_embedding else "chat"
        if name in models:
            name = old_name if old_name not in models else f"{old_name}_{len(models)}"
        model = _ModelConversion(result, path, name, values)
        if "model" not in model.old:
            result.skip_key(path, "this section names no model")
            continue
        models[name] = model.convert(is_embedding)
        result.names[old_name] = name
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
    found.sort(key=lambda entry: entry[0].rpartition(".")[2] not in _DEFAULT_MODEL_NAMES)
    return [entry for entry in found if isinstance(entry[1], Mapping)]


class _ModelConversion:
    """The conversion of one model: each setting moves to `new`, or is skipped for a reason."""

    def __init__(
        self, result: ConvertedSettings, path: str, name: str, values: Mapping[str, Any]
    ) -> None:
        self.result, self.path, self.name = result, path, name
        self.old = {key: value for key, value in flatten(values) if value not in (None, {})}
        self.new: dict[str, Any] = {}

    def convert(self, is_embedding: bool) -> dict[str, Any]:
        """Return the settings of the model in our section `models`."""
        self._convert_setting("model", "model", self.old.pop("model"))
        self._convert_provider()
        self._convert_key()
        for old_key, new_key in _NEW_KEYS.items():
            if old_key not in self.old:
                continue
            value = self.old.pop(old_key)
            if new_key in self.new:
                self._skip_key(old_key, f"{new_key} is set already")
            elif value == "auto":
                self._skip_key(old_key, "not needed: the limits that the server reports are used")
            elif is_embedding and new_key in ("temperature", "max_output_tokens"):
                self._skip_key(old_key, "not needed: an embedding model writes no text")
            else:
                self._convert_setting(old_key, new_key, value)
        self._convert_rate_limit()
        key = "concurrent_requests"
        value = self.result.project.get(key)
        if "concurrency" not in self.new and value is not None:
            self._convert_setting("", "concurrency", value, old_path=key)
        if not is_embedding:
            self._convert_parameters()
        for old_key in dict.fromkeys(find_parent_key(key, _SKIPPED) or key for key in self.old):
            self._skip_key(old_key, _SKIPPED.get(old_key, UNKNOWN_KEY))
        return self.new

    def _convert_provider(self) -> None:
        """Convert provider and address: Azure, or a server with an OpenAI-compatible API."""
        kind = str(self.old.get("type") or "")
        provider = str(self.old.pop("model_provider", None) or "")
        if kind.startswith("azure") and not provider:
            self.old.pop("type")
        is_azure = provider.startswith("azure") or kind.startswith("azure")
        base = self.old.pop("api_base", None)
        if is_azure:
            self._convert_setting("model_provider" if provider else "type", "provider", "azure")
        elif provider == "openai":
            self._convert_setting("model_provider", "provider", provider)
            # OpenAI is our default provider, so the setting is not needed.
            del self.new["provider"]
        elif provider:
            address = RULES["addresses"].get(provider)
            if base is not None:
                self._skip_key("model_provider", "not needed: base_url has the address")
                if provider.startswith("ollama") and "$" not in str(base):
                    base = str(base).rstrip("/").removesuffix("/v1") + "/v1"
            elif address:
                self._convert_setting("model_provider", "base_url", address)
            else:
                self._skip_key(
                    "model_provider",
                    f"the address of {provider} is not known: set {self._use_address_variable()} "
                    "to an address with an OpenAI-compatible API",
                )
        if base is not None:
            self._convert_setting("api_base", "base_url", base)
            if "base_url" not in self.new and not is_azure:
                self._skip_key(
                    "api_base", f"set the variable {self._use_address_variable()} to the address"
                )
        if is_azure and "base_url" not in self.new:
            # Settings for Azure are invalid without an address: write a placeholder.
            self.new["base_url"] = "https://NAME.openai.azure.com"
            self._skip_key("api_base", "there is no address: write the Azure address into base_url")

    def _use_address_variable(self) -> str:
        """Set the address to a new variable, so that no request goes to OpenAI by default."""
        variable = f"GRAPHRAG_API_BASE_{_to_variable_part(self.name)}"
        self.new["base_url"] = f"${{{variable}}}"
        return variable

    def _convert_key(self) -> None:
        """Convert the API key: keep a variable, and move a literal key to a variable in `.env`."""
        setting = next((key for key in ("auth_method", "auth_type") if key in self.old), "")
        method = self.old.pop(setting, None)
        if method == "api_key":
            self._skip_key(setting, "not needed: an API key is the only way to sign in")
        elif method is not None:
            self._skip_key(setting, "only API keys are supported: write an API key into .env")
        needs_key = method in (None, "api_key")
        key = self.old.pop("api_key", None)
        if key is None:
            if not needs_key:
                self.new["api_key"] = "${AZURE_OPENAI_API_KEY:-}"
            return
        with self.result.record_errors(f"{self.path}.api_key"):
            names = find_variables(key)
            shown = variable = str(key)
            if not names or variable != f"${{{names[0]}}}":
                secret = str(self.result.project.expand(key))
                name = self._name_key_variable(secret)
                self.result.secrets[name] = secret
                variable = f"${{{name}}}"
                shown = f"{variable}; the key is in .env"
            self.new["api_key"] = variable
            self.result.keep_key(f"{self.path}.api_key", self._new_path("api_key"), shown)

    def _name_key_variable(self, secret: str) -> str:
        """Return the name of a variable for an API key; no other API key uses this variable."""
        # Variables in Microsoft's settings belong to other API keys, even if they are not set.
        named = {
            name for _, value in self.result.project.all_values() for name in find_variables(value)
        }
        taken = dict.fromkeys(named, "") | dict(self.result.project.environment)
        taken |= self.result.secrets
        wanted, own = "GRAPHRAG_API_KEY", _to_variable_part(self.name)
        names = chain([wanted, f"{wanted}_{own}"], (f"{wanted}_{own}_{n}" for n in count(2)))
        return next(name for name in names if taken.get(name, secret) == secret)

    def _convert_rate_limit(self) -> None:
        """Convert rate limits of any period to rate limits per minute."""
        period = self._read_positive_number("rate_limit.period_in_seconds") or 60
        for unit in ("requests", "tokens"):
            old_key = f"rate_limit.{unit}_per_period"
            number = self._read_positive_number(old_key)
            self.old.pop(old_key, None)
            if number:
                self._convert_setting(
                    old_key, f"{unit}_per_minute", max(1, int(number * 60 / period))
                )

    def _read_positive_number(self, old_key: str) -> float:
        """Return the value of a Microsoft setting; 0 if the value is not a positive number."""
        value = None
        with self.result.record_errors(f"{self.path}.{old_key}"):
            value = self.result.project.expand(self.old.get(old_key))
        return float(value) if isinstance(value, int | float) and value > 0 else 0.0

    def _convert_parameters(self) -> None:
        """Convert the parameters that are sent with each request."""
        for old_key in list(self.old):
            name = old_key.removeprefix("call_args.")
            is_sent = old_key.startswith("call_args.") and "." not in name
            if name == "n" or not (is_sent or old_key in RULES["model_parameters"]):
                continue
            value = self.old.pop(old_key)
            if _SECRET_NAME.search(name):
                self._skip_key(old_key, "this value may be a secret: use api_key")
            else:
                self.new.setdefault("parameters", {})[name] = value
                path = self._new_path(f"parameters.{name}")
                self.result.keep_key(f"{self.path}.{old_key}", path, value)

    def _convert_setting(self, old_key: str, new_key: str, value: Any, old_path: str = "") -> None:
        """Convert a value to a setting of our model, or record why the value is invalid."""
        old_path = old_path or f"{self.path}.{old_key}"
        try:
            expanded = self.result.project.expand(value)
            if new_key in ("model", "deployment", "api_version"):
                expanded = str(expanded)
            trial = {"model": "m", "context_window": 1 << 30, new_key: expanded}
            if new_key == "provider":
                trial["base_url"] = "https://x"
            # An address may contain an API key, which must not be shown.
            check_value(
                ModelSettings, trial, self._new_path(new_key), is_shown=new_key != "base_url"
            )
        except ConversionError as error:
            if isinstance(error, UnsetVariableError) and new_key in _IDENTIFYING_KEYS:
                self.new[new_key] = value
                self.result.keep_key(
                    old_path, self._new_path(new_key), f"{value}, which is not set"
                )
            else:
                self.result.skip_key(old_path, error)
            return
        if new_key == "max_output_tokens" and expanded >= 128_000:
            self.new["context_window"] = int(expanded) + 128_000
        self.new[new_key] = value if find_variables(value) else escape_dollars(expanded)
        self.result.keep_key(old_path, self._new_path(new_key), self.new[new_key])

    def _skip_key(self, old_key: str, why: object) -> None:
        self.result.skip_key(f"{self.path}.{old_key}", why)

    def _new_path(self, new_key: str) -> str:
        return f"models.{self.name}.{new_key}"


def _to_variable_part(name: str) -> str:
    """Convert the name of a model to capital letters that fit into a variable name."""
    return re.sub(r"\W", "_", name.upper(), flags=re.ASCII)
