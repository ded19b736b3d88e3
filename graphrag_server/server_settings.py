"""Settings of a server: the options of `graphrag-index serve`, or the file `server.yaml`."""

import re
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator

from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.section import (
    Section,
    describe_validation_error,
    read_settings_yaml,
    read_text_file,
)

DEFAULT_PORT = 8321
Protocol = Literal["ollama", "openai"]
_INDEX_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_.-]{0,62}[a-z0-9])?")
# An origin as browsers send it: without a path, and in small letters.
_ORIGIN = re.compile(r"https?://[a-z0-9._-]+(?::[0-9]+)?")


class ServerSettings(Section):
    """The settings of one server."""

    indexes: dict[str, Path] = Field(
        description="Projects to serve: the folder of settings.yaml, by the name of the index."
    )
    host: str = Field("127.0.0.1", description="Address to listen on.", min_length=1)
    port: int = Field(DEFAULT_PORT, description="Port to listen on.", ge=0, le=65535)
    no_auth: bool = Field(False, description="Whether everybody who reaches it may do everything.")
    allowed_hosts: list[str] = Field(
        [],
        description="Names, besides those of loopback, by which a server without keys is called.",
    )
    allowed_origins: list[str] = Field(
        [], description="Web pages of other servers that may call this one, such as https://x.org."
    )
    state_folder: Path | None = Field(
        None,
        description="Folder of the keys: that of server.yaml by default, or of the first project.",
    )
    root_path: str = Field(
        "",
        description="Path under which a proxy offers the server, such as /graphrag.",
        pattern="^(/[A-Za-z0-9._~-]+)*$",
    )
    max_body_bytes: int = Field(
        1_000_000, description="Maximum size of a request that uploads no file.", ge=1
    )
    max_upload_bytes: int = Field(
        100_000_000, description="Maximum size of a request that uploads files.", ge=1
    )
    grace_seconds: int = Field(
        20, description="Time for running requests to end when the server is stopped.", ge=0
    )
    log_questions: bool = Field(False, description="Whether the log has the texts of questions.")
    trace_contents: bool = Field(
        False, description="Whether traces have the texts of questions, prompts and answers."
    )
    append_sources: list[Protocol] = Field(
        ["ollama"], description="Protocols whose replies end with a line for each source."
    )
    max_concurrent_questions: int = Field(
        8, description="Searches that run at once; further questions wait.", ge=1
    )
    max_waiting_questions: int = Field(
        64, description="Questions that wait; further questions are refused with 429.", ge=0
    )

    @field_validator("indexes")
    @classmethod
    def _check_names(cls, indexes: dict[str, Path]) -> dict[str, Path]:
        if not indexes:
            raise ValueError("must name at least one project")
        for name in indexes:
            if not _INDEX_NAME.fullmatch(name):
                raise ValueError(
                    f"has the name {name!r}: use up to 64 of a-z, 0-9, dot, dash and underscore"
                )
        return indexes

    @field_validator("allowed_origins")
    @classmethod
    def _check_origins(cls, origins: list[str]) -> list[str]:
        for origin in origins:
            if not _ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"has {origin!r}: write a scheme and a host, such as https://x.org"
                )
        return origins

    @property
    def state_path(self) -> Path:
        """The folder of the keys of the server."""
        return self.state_folder or next(iter(self.indexes.values()))


def load_server_settings(file: Path) -> ServerSettings:
    """Read `server.yaml`. Its paths are relative to its folder.

    Raises SettingsError if the file is missing or has an invalid value.
    """
    text = read_text_file(file)
    if text is None:
        raise SettingsError(f"There is no {file}: name the file of the server's settings.")
    values = read_settings_yaml(text, str(file))
    if not isinstance(values, dict):
        raise SettingsError(f"{file} must hold `key: value` lines, such as `indexes:`.")
    try:
        settings = ServerSettings.model_validate(values)
    except ValidationError as error:
        raise SettingsError(describe_validation_error(error, ServerSettings, str(file))) from None
    indexes = {name: file.parent / root for name, root in settings.indexes.items()}
    state = file.parent / (settings.state_folder or "")
    return settings.model_copy(update={"indexes": indexes, "state_folder": state})


def name_projects(roots: list[Path]) -> dict[str, Path]:
    """Name each project after its folder; a second folder of the same name gets a number."""
    names: dict[str, Path] = {}
    for root in roots:
        base = re.sub(r"[^a-z0-9]+", "-", root.resolve().name.lower()).strip("-")[:60] or "index"
        name, number = base, 1
        while name in names:
            number += 1
            name = f"{base}-{number}"
        names[name] = root
    return names
