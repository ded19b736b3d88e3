"""The models of Microsoft GraphRAG as ours: address, key, limits and parameters.

Version 3 names them in `completion_models` and `embedding_models`, version 2 in `models`;
version 1 has one of each, in `llm` and `embeddings.llm`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from graphrag_index.microsoft.migrate_keys import (
    ADDRESSES,
    LEFT,
    SAME,
    SECRET,
    TO_PARAMETERS,
)
from graphrag_index.microsoft.migrate_project import (
    UNKNOWN,
    Carried,
    MicrosoftProject,
    UnsetVariableError,
    references,
)
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.section import describe_validation_error
from graphrag_index.schema.settings.settings import DEFAULT_MODELS

# What theirs asks unless it is told otherwise.
_DEFAULTS = ("default_completion_model", "default_chat_model", "default_embedding_model")


def carry_models(project: MicrosoftProject, carried: Carried) -> dict[str, dict[str, Any]]:
    """Return our section `models`, and note what becomes of each key."""
    models: dict[str, dict[str, Any]] = {}
    for path, values, embeds in _theirs(project):
        known = path.rpartition(".")[2]
        # What steps ask unless they are told otherwise.
        name = "embedding" if embeds else "chat"
        if name in models:
            name = known if known not in models else f"{known}_{len(models)}"
        model = _Model(project, carried, path, name, values)
        if model.model is None:
            carried.left(path, "it names no model")
            continue
        models[name] = model.carry(embeds)
        carried.names[known] = name
    if models and "chat" not in models:
        models["chat"] = dict(DEFAULT_MODELS["chat"])
    return models


def _theirs(project: MicrosoftProject) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Give path and values of each model, and whether it embeds; the defaults come first."""
    found: list[tuple[str, Any, bool]] = []
    for section, embeds in (("completion_models", False), ("embedding_models", True)):
        named = project.get(section)
        for name, values in named.items() if isinstance(named, Mapping) else ():
            found.append((f"{section}.{name}", values, embeds))
    named = project.get("models")
    for name, values in named.items() if isinstance(named, Mapping) else ():
        kind = values.get("type", "") if isinstance(values, Mapping) else ""
        found.append((f"models.{name}", values, "embedding" in str(kind)))
    found += [("llm", project.get("llm"), False), ("embeddings.llm", _v1_embeddings(project), True)]
    found.sort(key=lambda entry: entry[0].rpartition(".")[2] not in _DEFAULTS)
    for path, values, embeds in found:
        if isinstance(values, Mapping):
            yield path, values, embeds


def _v1_embeddings(project: MicrosoftProject) -> Any:
    """Return the embedding model of version 1, which has the key of the other."""
    own = project.get("embeddings.llm")
    if not isinstance(own, Mapping):
        return None
    llm = project.get("llm")
    shared = ("api_key", "api_base", "api_version", "organization", "proxy")
    inherited = {key: llm[key] for key in shared if key in llm} if isinstance(llm, Mapping) else {}
    return {**inherited, **own}


class _Model:
    """One model on its way from there to here."""

    def __init__(
        self,
        project: MicrosoftProject,
        carried: Carried,
        path: str,
        name: str,
        values: Mapping[str, Any],
    ) -> None:
        self.project, self.carried, self.path, self.name = project, carried, path, name
        self.theirs = dict(_flat(values))
        self.model = self.theirs.pop("model", None)
        self.ours: dict[str, Any] = {}

    def carry(self, embeds: bool) -> dict[str, Any]:
        """Return the model as a section of ours."""
        self._take("model", "model", self.model)
        self._provider()
        self._key()
        for theirs, ours in SAME.items():
            value = self.theirs.pop(theirs, None)
            if value is None:
                continue
            if ours in self.ours:
                self._leave(theirs, f"{ours} is set already")
            elif value == "auto":
                self._leave(theirs, "not needed: what a server says of its limits is kept to")
            elif embeds and ours in ("temperature", "max_output_tokens"):
                self._leave(theirs, "not needed: it embeds")
            else:
                self._take(theirs, ours, value)
        self._rate_limit()
        self._concurrency()
        if not embeds:
            self._parameters()
        reasons = {}
        for theirs, value in self.theirs.items():
            if value is not None:
                known = _known(theirs)
                reasons[known or theirs] = LEFT[known] if known else UNKNOWN
        for theirs, why in reasons.items():
            self._leave(theirs, why)
        return self.ours

    def _provider(self) -> None:
        """Take over where the model is: Azure, or an address with the protocol of OpenAI."""
        kind = str(self.theirs.get("type") or "")
        provider = str(self.theirs.pop("model_provider", None) or "")
        if kind.startswith("azure") and not provider:
            self.theirs.pop("type")
        azure = provider.startswith("azure") or kind.startswith("azure")
        base = self.theirs.pop("api_base", None)
        if azure:
            self._take("model_provider" if provider else "type", "provider", "azure")
        elif provider == "openai":
            self._take("model_provider", "provider", provider)
            # It is what a model has that says nothing.
            del self.ours["provider"]
        elif provider:
            address = ADDRESSES.get(provider)
            if base is None and address:
                self._take("model_provider", "base_url", address)
            elif base is None:
                self._leave(
                    "model_provider",
                    f"the address of {provider} is not known: {self._address()} has to be one "
                    "that speaks the protocol of OpenAI",
                )
            else:
                self._leave("model_provider", "not needed: base_url tells where the model is")
            if base is not None and provider.startswith("ollama") and "$" not in str(base):
                base = re.sub(r"/*$", "", str(base))
                base = base if base.endswith("/v1") else f"{base}/v1"
        if base is not None:
            self._take("api_base", "base_url", base)
            if "base_url" not in self.ours and not azure:
                self._leave("api_base", f"the address is wanted in {self._address()}")
        if azure and "base_url" not in self.ours:
            # Without it our settings would not load.
            self.ours["base_url"] = "https://NAME.openai.azure.com"
            self._leave("api_base", "it is missing: write the address of Azure into base_url")

    def _address(self) -> str:
        """Let a variable tell the address; without one, OpenAI would get what is for another."""
        variable = f"GRAPHRAG_API_BASE_{_upper(self.name)}"
        self.ours["base_url"] = f"${{{variable}}}"
        return variable

    def _key(self) -> None:
        """Take over a key as a reference; one that stands there itself goes into .env."""
        named = next((key for key in ("auth_method", "auth_type") if key in self.theirs), "")
        way = self.theirs.pop(named, None)
        if way == "api_key":
            self._leave(named, "not needed: a key is the only way")
        elif way is not None:
            self._leave(named, "only keys are known: write one into .env, for api_key")
        key = self.theirs.pop("api_key", None)
        if key is None and way in (None, "api_key") and self.path in ("llm", "embeddings.llm"):
            # Version 1 falls back on this variable.
            key = "${GRAPHRAG_API_KEY}"
        if key is None:
            if way not in (None, "api_key"):
                self.ours["api_key"] = "${AZURE_OPENAI_API_KEY:-}"
            return
        names = references(key)
        if names and str(key) == f"${{{names[0]}}}":
            self.ours["api_key"] = f"${{{names[0]}}}"
            self.carried.kept(self._there("api_key"), self._here("api_key"), key)
            return
        try:
            secret = str(self.project.expand(key))
        except UnsetVariableError as error:
            self._leave("api_key", f"it uses the variable {error}, which is not set")
            return
        variable = self._variable(secret)
        self.carried.secrets[variable] = secret
        self.ours["api_key"] = f"${{{variable}}}"
        self.carried.kept(
            self._there("api_key"), self._here("api_key"), f"${{{variable}}}; the key is in .env"
        )

    def _variable(self, secret: str) -> str:
        """Name the variable for a key that stood in the settings."""
        taken = {**self.project.environment, **self.carried.secrets}
        # One that their settings name is of another key, set or not yet.
        named = {name for _, value in self.project.leaves() for name in references(value)}
        taken = {**dict.fromkeys(named, ""), **taken}
        wanted, own = "GRAPHRAG_API_KEY", _upper(self.name)
        for name in (wanted, f"{wanted}_{own}", *(f"{wanted}_{own}_{n}" for n in range(2, 99))):
            if taken.get(name, secret) == secret:
                return name
        raise AssertionError("a hundred keys of one model")

    def _rate_limit(self) -> None:
        period = self._number("rate_limit.period_in_seconds", keep=True) or 60
        for theirs, ours in (
            ("rate_limit.requests_per_period", "requests_per_minute"),
            ("rate_limit.tokens_per_period", "tokens_per_minute"),
        ):
            number = self._number(theirs)
            if number:
                self._take(theirs, ours, max(1, int(number * 60 / period)))

    def _concurrency(self) -> None:
        for key in ("concurrent_requests", "parallelization.num_threads"):
            at_once = self.project.get(key)
            if "concurrency" not in self.ours and at_once is not None:
                self._take("", "concurrency", at_once, there=key)

    def _parameters(self) -> None:
        """Take over what is sent with each request."""
        parameters = {}
        for theirs in list(self.theirs):
            name = theirs.removeprefix("call_args.")
            is_sent = theirs.startswith("call_args.") and "." not in name
            if name == "n" or not (is_sent or theirs in TO_PARAMETERS):
                continue
            if SECRET.search(name):
                # Whatever is in it, it is not copied into our settings.
                self._leave(theirs, "it may hold a secret: use api_key")
                del self.theirs[theirs]
                continue
            value = self.theirs.pop(theirs)
            if value is not None:
                parameters[name] = value
                self.carried.kept(self._there(theirs), self._here(f"parameters.{name}"), value)
        if parameters:
            self.ours["parameters"] = parameters

    def _number(self, theirs: str, keep: bool = False) -> float | None:
        value = self.theirs.get(theirs) if keep else self.theirs.pop(theirs, None)
        try:
            value = self.project.expand(value)
        except UnsetVariableError as error:
            self._leave(theirs, f"it uses the variable {error}, which is not set")
            return None
        return float(value) if isinstance(value, int | float) and value > 0 else None

    def _take(self, theirs: str, ours: str, value: Any, there: str = "") -> None:
        """Take a value over, if a model of ours can have it."""
        there = there or self._there(theirs)
        try:
            expanded = self.project.expand(value)
        except UnsetVariableError as error:
            if ours in ("model", "base_url", "deployment"):
                # Without it the model would be another: whoever runs it sets the variable.
                self.ours[ours] = value
                self.carried.kept(there, self._here(ours), f"{value}, which is not set")
                return
            self.carried.left(there, f"it uses the variable {error}, which is not set")
            return
        if ours in ("model", "deployment", "api_version"):
            expanded = str(expanded)
        trial = {"model": "m", "context_window": 1 << 30, ours: expanded}
        if ours == "provider":
            trial["base_url"] = "https://x"
        try:
            ModelSettings.model_validate(trial)
        except ValidationError as error:
            why = describe_validation_error(error, ModelSettings, "").partition(": ")[2]
            # An address may hold a key.
            why = "" if ours == "base_url" else f" ({why.rstrip('.')})"
            self.carried.left(there, f"{self._here(ours)} cannot have this value{why}")
            return
        if ours == "max_output_tokens" and expanded >= 128_000:
            self.ours["context_window"] = int(expanded) + 128_000
        self.ours[ours] = value if references(value) else _escaped(expanded)
        self.carried.kept(there, self._here(ours), self.ours[ours])

    def _leave(self, theirs: str, why: str) -> None:
        self.carried.left(self._there(theirs), why)

    def _there(self, theirs: str) -> str:
        return f"{self.path}.{theirs}"

    def _here(self, ours: str) -> str:
        return f"models.{self.name}.{ours}"


def _upper(name: str) -> str:
    """Write the name of a model as a part of the name of a variable."""
    return re.sub(r"\W", "_", name.upper(), flags=re.ASCII)


def _escaped(value: Any) -> Any:
    return value.replace("$", "$$") if isinstance(value, str) else value


def _known(theirs: str) -> str | None:
    """Return the key of `LEFT` that is this one or stands above it."""
    parts = theirs.split(".")
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((name for name in names if name in LEFT), None)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
