"""All settings, each default written once.

The models mirror `settings.yaml`: one section a step, one section a search.
Unknown keys are refused with the nearest known one.
"""

import copy
import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.graph_files import ReadGraph
from graphrag_index.schema.settings.llm_steps import (
    CreateCommunityReports,
    ExtractCovariates,
    ExtractGraph,
    ResolveEntities,
    SummarizeDescriptions,
)
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.searches import (
    BasicSearch,
    DriftSearch,
    GlobalSearch,
    LazySearch,
    LocalSearch,
    NeighbourhoodSearch,
    PathSearch,
    Search,
    StructuredSearch,
)
from graphrag_index.schema.settings.section import Section
from graphrag_index.schema.yaml_text import read_yaml

# More than any corpus has of anything; all that computes with it takes 32 bits.
_MANY = 1_000_000_000
# 32 bits, as all engines take them, among them the seed of Microsoft's, 0xDEADBEEF.
_LARGEST_SEED = 2**32 - 1


class LoadDocuments(Section):
    """Which files are read, and which of their fields mean what.

    Fields of nested records are named by a dotted path, such as `meta.title`.
    """

    folder: str = Field("input", description="Folder of the documents, relative to settings.yaml.")
    include: list[str] = Field(
        ["**/*"],
        description="Patterns of the files to read, relative to the folder: * and ? stand for "
        "characters of a name, [ab] for one of these, ** for any folders. Types that are not read "
        "are passed over.",
    )
    exclude: list[str] = Field(
        [], description="Patterns of files and folders to leave out, such as drafts/."
    )
    encoding: str = Field(
        "auto", description="Encoding of text files; auto detects it, a name is taken strictly."
    )
    text_column: str = Field("text", description="Records: the field that holds the text.")
    title_column: str | None = Field(
        "title", description="Records and front matter: the field of the title."
    )
    id_column: str | None = Field(
        None, description="Records: the field of a stable id; null takes a hash of the text."
    )
    date_column: str | None = Field(
        "date", description="Records and front matter: the field of the document's date."
    )
    metadata_columns: list[str] = Field(
        [], description="Records and front matter: fields carried along to the text units."
    )

    @field_validator("encoding")
    @classmethod
    def _encoding_is_known(cls, name: str) -> str:
        if name != "auto":
            try:
                "".encode(name)
            except LookupError:
                raise ValueError(
                    f"{name!r} is no encoding; try auto, utf-8, utf-16 or cp1252"
                ) from None
        return name


class CreateTextUnits(Section):
    """How documents are cut."""

    max_tokens: int = Field(240, ge=8, le=1_000_000, description="Longest text unit, in tokens.")
    overlap_tokens: int = Field(
        30, ge=0, le=500_000, description="At most so many tokens of whole sentences are repeated."
    )
    encoding: Literal["o200k_base", "cl100k_base"] = Field(
        "o200k_base", description="Encoding that counts the tokens."
    )

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> "CreateTextUnits":
        if self.overlap_tokens * 2 > self.max_tokens:
            raise ValueError("overlap_tokens must be at most half of max_tokens")
        return self


class ExtractGraphNlp(Section):
    """Names, terms and their relationships, found without a model."""

    min_frequency: int = Field(
        1, ge=1, le=_MANY, description="A name must be mentioned so many times."
    )
    min_frequency_caseless: int = Field(
        3,
        ge=2,
        le=_MANY,
        description="The same in scripts that do not mark names (Chinese, Arabic, ...).",
    )
    noun_phrases: bool = Field(
        True, description="Also find terms in lower case, such as 'sea ice'."
    )
    min_frequency_noun_phrase: int = Field(
        3, ge=2, le=_MANY, description="A term must occur so many times."
    )
    merge_variants: bool = Field(
        True, description="Join short, titled and inflected forms of a name where unambiguous."
    )
    max_links: int = Field(
        8, ge=1, le=1_000, description="A mention is linked with at most so many mentions after it."
    )
    neighbour_weight: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Worth of two names in neighbouring sentences; same sentence 1.",
    )
    min_evidence: float = Field(
        1.0, ge=0, description="Relationships with less evidence (sum of those worths) are pruned."
    )
    min_weight: float = Field(0.0, ge=0, description="Relationships of less weight are pruned.")


class FinalizeGraph(Section):
    """Merging, degrees and the drawing's layout."""

    layout: bool = Field(True, description="Compute the positions x and y of the entities.")
    seed: int = Field(42, ge=0, le=_LARGEST_SEED, description="Seed of the layout.")


class CreateCommunities(Section):
    """The hierarchy of communities."""

    engine: Literal["native", "igraph", "leidenalg", "microsoft"] = Field(
        "native", description="Implementation of Leiden; see docs/settings.md."
    )
    quality: Literal["modularity", "cpm"] = Field(
        "modularity", description="What a partition maximises; microsoft knows modularity only."
    )
    resolution: float = Field(
        1.0, gt=0, le=1_000_000, description="Higher values give smaller communities."
    )
    scale_resolution: bool = Field(
        True,
        description="Modularity: raise the resolution above 1,000 entities in proportion to them, "
        "so that communities do not grow with the corpus.",
    )
    max_cluster_size: int = Field(
        10,
        ge=2,
        le=_MANY,
        description="Communities of more entities are split again one level down.",
    )
    max_levels: int = Field(6, ge=1, le=100, description="Deepest hierarchy.")
    iterations: int = Field(2, ge=1, le=1_000, description="Passes of Leiden.")
    min_component_size: int = Field(
        3, ge=1, le=_MANY, description="Smaller connected components are gathered into islands."
    )
    seed: int = Field(42, ge=0, le=_LARGEST_SEED, description="Seed of the partition.")
    stability: Literal["keep", "rebuild"] = Field(
        "keep",
        description="On an update: keep the communities and their numbers, and move only what the "
        "change touches; or make them anew, as if there had been no earlier index.",
    )
    max_drift: float = Field(
        0.02,
        ge=0,
        le=1,
        description="Say so if communities made anew would have a modularity higher by more.",
    )

    @model_validator(mode="after")
    def _engine_knows_the_quality(self) -> "CreateCommunities":
        if self.engine == "microsoft" and self.quality == "cpm":
            raise ValueError("the engine microsoft knows the quality modularity only")
        return self


class CreateCommunityReportsNlp(Section):
    """What is quoted about each community, without a model."""

    max_findings: int = Field(6, ge=1, le=1_000, description="Findings of one report at most.")
    max_sentences: int = Field(
        14, ge=2, le=10_000, description="Sentences of evidence in one report at most."
    )


class GenerateTextEmbeddings(Section):
    """Vectors of text units, entities and reports."""

    model: str = Field(
        "all-MiniLM-L6-v2",
        description="all-MiniLM-L6-v2, which runs here, or the name of a model in `models`.",
    )


class Check(Section):
    """What `graphrag-index check` lets pass: counts, or shares of what it looks at (1.0: all)."""

    max_dangling_ids: int = Field(0, ge=0, le=_MANY, description="Ids that no row has.")
    max_duplicates: int = Field(
        0, ge=0, le=_MANY, description="Rows with the id, number, title or ends of another."
    )
    max_unresolved_citations: int = Field(
        0, ge=0, le=_MANY, description="Citations in reports of rows that are not there."
    )
    max_missing_vectors: int = Field(
        0, ge=0, le=_MANY, description="Texts without a vector, or with one of zeros."
    )
    max_stale_vectors: int = Field(
        0, ge=0, le=_MANY, description="Vectors of an earlier text, or of what is gone."
    )
    max_stale_search_tables: int = Field(
        0, ge=0, le=_MANY, description="Rows in which search tables differ from the tables."
    )
    max_uncovered_entities: float = Field(
        1.0, ge=0, le=1, description="Share of the entities that no community or report covers."
    )
    max_uncovered_documents: float = Field(
        1.0, ge=0, le=1, description="Share of the documents that no community or report covers."
    )
    max_missing_reports: float = Field(
        1.0, ge=0, le=1, description="Share of the communities that have no report."
    )
    max_empty_reports: float = Field(
        1.0, ge=0, le=1, description="Share of the reports that say nothing."
    )
    max_oversized_communities: float = Field(
        1.0, ge=0, le=1, description="Share of the communities without parts that are oversized."
    )
    oversized_above: int = Field(
        50, ge=1, le=_MANY, description="A community without parts is oversized with more entities."
    )
    max_equal_documents: float = Field(
        1.0, ge=0, le=1, description="Share of the documents that have the text of another."
    )


# Used where settings.yaml names no models.
DEFAULT_MODELS = {
    "chat": {"model": "gpt-5-mini", "api_key": "${OPENAI_API_KEY:-}"},
    "embedding": {"model": "text-embedding-3-small", "api_key": "${OPENAI_API_KEY:-}"},
}


class Settings(Section):
    """One project: which workflow runs, where the output lies, and the section of each step."""

    workflow: str = Field("embedded", description="Name of a file in workflows/, without .yaml.")
    output: str = Field(
        "output", min_length=1, description="Folder of the index, relative to settings.yaml."
    )
    models: dict[str, ModelSettings] = Field(
        {name: ModelSettings(model=known["model"]) for name, known in DEFAULT_MODELS.items()},
        description="Models behind an OpenAI-compatible address, by the names that steps use. "
        "A workflow that asks none needs no key.",
    )
    load_documents: LoadDocuments = LoadDocuments()
    read_graph: ReadGraph = ReadGraph()
    create_text_units: CreateTextUnits = CreateTextUnits()
    extract_graph_nlp: ExtractGraphNlp = ExtractGraphNlp()
    extract_graph: ExtractGraph = ExtractGraph()
    resolve_entities: ResolveEntities = ResolveEntities()
    summarize_descriptions: SummarizeDescriptions = SummarizeDescriptions()
    extract_covariates: ExtractCovariates = ExtractCovariates()
    finalize_graph: FinalizeGraph = FinalizeGraph()
    create_communities: CreateCommunities = CreateCommunities()
    create_community_reports_nlp: CreateCommunityReportsNlp = CreateCommunityReportsNlp()
    create_community_reports: CreateCommunityReports = CreateCommunityReports()
    generate_text_embeddings: GenerateTextEmbeddings = GenerateTextEmbeddings()
    search: Search = Search()
    basic_search: BasicSearch = BasicSearch()
    local_search: LocalSearch = LocalSearch()
    global_search: GlobalSearch = GlobalSearch()
    drift_search: DriftSearch = DriftSearch()
    lazy_search: LazySearch = LazySearch()
    path_search: PathSearch = PathSearch()
    neighbourhood_search: NeighbourhoodSearch = NeighbourhoodSearch()
    structured_search: StructuredSearch = StructuredSearch()
    check: Check = Check()
    steps: dict[str, dict[str, Any]] = Field(
        {}, description="Sections of steps of one's own, by the name of the function."
    )

    @field_validator("output")
    @classmethod
    def _home_is_found(cls, folder: str) -> str:
        return os.path.expanduser(folder)

    @model_validator(mode="before")
    @classmethod
    def _empty_sections_are_left_out(cls, values: Any) -> Any:
        # A section whose every key is left out, or made a comment, is null in YAML.
        if not isinstance(values, dict):
            return values
        return {
            key: value
            for key, value in values.items()
            if value is not None or key not in cls.model_fields
        }


SETTINGS_FILE = "settings.yaml"


def load_settings(root: Path, overrides: tuple[str, ...] = (), *, needed: bool = True) -> Settings:
    """Read `settings.yaml` in `root`, expand `${ENV}`, and apply `section.key=value` overrides.

    Variables come from the environment, then from `.env` beside the settings. Where it is not
    `needed`, no such file means the defaults.

    Raises
    ------
    SettingsError
        No such file, broken YAML, an unknown key, a value of the wrong type, an unset variable.
    """
    path = root / SETTINGS_FILE
    try:
        text = _read_text(path)
    except FileNotFoundError:
        if needed:
            raise SettingsError(
                f"There is no {SETTINGS_FILE} in {root}: name another folder with --root, "
                "or write a first one with `graphrag-index init`."
            ) from None
        text = ""
    values = _read_yaml(text, str(path))
    if values is None:
        values = {}
    if not isinstance(values, dict):
        what = "a list" if isinstance(values, list) else "a single value"
        raise SettingsError(f"{path} must hold sections of `key: value`, not {what}.")
    if values.get("models") is None:
        values["models"] = copy.deepcopy(DEFAULT_MODELS)
    variables = {**read_env_file(root / ".env"), **os.environ}
    values = _expand(values, variables, str(path))
    for override in overrides:
        _apply_override(values, override, variables)
    return parse_settings(values, f"{path} with --set" if overrides else str(path))


def parse_settings(values: dict[str, Any], where: str = SETTINGS_FILE) -> Settings:
    """Check values against the models; one sentence per mistake."""
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError(describe_validation_error(error, Settings, where)) from None


def describe_validation_error(error: ValidationError, model: type[BaseModel], where: str) -> str:
    """Turn pydantic's list into sentences that name the key and the nearest right one."""
    lines = []
    for mistake in error.errors():
        key = ".".join(str(part) for part in mistake["loc"])
        place = f"{where}: {key}" if key else where
        if mistake["type"] == "extra_forbidden":
            known = _known_keys(model, mistake["loc"][:-1])
            close = difflib.get_close_matches(str(mistake["loc"][-1]), known, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}."
            lines.append(f"{where}: unknown key {key!r}; {hint}")
        elif mistake["type"] == "value_error":
            lines.append(f"{place}: {mistake['ctx']['error']}.")
        elif mistake["type"] == "missing":
            lines.append(f"{place} is missing.")
        elif mistake["type"] in ("model_type", "dict_type"):
            lines.append(f"{place} is {mistake['input']!r}: it must hold keys and their values.")
        else:
            message = mistake["msg"][0].lower() + mistake["msg"][1:]
            lines.append(f"{place} is {mistake['input']!r}: {message}.")
    return "\n".join(lines)


def _known_keys(model: type[BaseModel], location: tuple[str | int, ...]) -> list[str]:
    """Return the keys of a section: one of the settings, of a mapping of sections, or optional."""
    annotation: Any = model
    for part in location:
        if get_origin(annotation) is dict:
            annotation = get_args(annotation)[1]
        else:
            annotation = annotation.model_fields[str(part)].annotation
        if NoneType in get_args(annotation):
            annotation = get_args(annotation)[0]
        if get_origin(annotation) is not dict and not hasattr(annotation, "model_fields"):
            return []
    return list(annotation.model_fields)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8: save it in that encoding.") from error


def _read_yaml(text: str, where: str) -> Any:
    try:
        return read_yaml(text)
    except ValueError as error:
        raise SettingsError(f"{where} is not valid YAML: {error}.") from error


_VARIABLE = re.compile(r"\$\$|\$\{([^}]*)\}?")
_NAME_AND_DEFAULT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


def _expand(value: Any, variables: Mapping[str, str], where: str) -> Any:
    """Replace `${NAME}` and `${NAME:-default}` in every string; `$$` is a dollar sign.

    As in a shell the default also stands for a variable that is empty. A number that
    comes from a variable is still text here; the models read it as what they need.
    """
    if isinstance(value, dict):
        return {key: _expand(item, variables, where) for key, item in value.items()}
    if isinstance(value, list):
        return [_expand(item, variables, where) for item in value]
    if not isinstance(value, str):
        return value

    def replace(found: re.Match[str]) -> str:
        if found.group() == "$$":
            return "$"
        parts = _NAME_AND_DEFAULT.fullmatch(found[1])
        if parts is None or not found.group().endswith("}"):
            raise SettingsError(
                f"{where} has {found.group()!r}: write ${{NAME}} or ${{NAME:-default}}, "
                "or $$ for a dollar sign."
            )
        name, default = parts.groups()
        if default is not None:
            return variables.get(name) or str(default)
        if name not in variables:
            raise SettingsError(
                f"{where} uses ${{{name}}}, which is not set: export {name} or write it into .env."
            )
        return variables[name]

    return _VARIABLE.sub(replace, value)


# NAME=value, with or without `export`; a value in quotes, or up to a comment.
_ENV_LINE = re.compile(
    r"""(?:export\s+)?([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|(.*?))\s*(?:(?<=\s)\#.*)?"""
)


def read_env_file(path: Path) -> dict[str, str]:
    """Read `NAME=value` lines; `#` comments, `export` and quotes are understood."""
    try:
        text = _read_text(path)
    except FileNotFoundError:
        return {}
    variables = {}
    if "\0" in text:
        raise SettingsError(f"{path} has a null character, which no variable can have.")
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        found = _ENV_LINE.fullmatch(line)
        if found is None:
            raise SettingsError(f"{path}, line {number}: expected NAME=value.")
        name, *values = found.groups()
        variables[name] = next(value for value in values if value is not None)
    return variables


def _apply_override(values: dict[str, Any], override: str, variables: Mapping[str, str]) -> None:
    """Set `section.key=value`; the value is read as YAML, so `[a, b]` and `null` work."""
    keys, equals, text = override.partition("=")
    if not equals or not keys:
        raise SettingsError(f"--set {override}: expected section.key=value.")
    where = f"--set {override}"
    value = _expand(_read_yaml(text, where), variables, where)
    *parents, last = keys.split(".")
    for parent in parents:
        if values.get(parent) is None:
            values[parent] = {}
        values = values[parent]
        if not isinstance(values, dict):
            raise SettingsError(f"--set {override}: {parent} is a value, not a section.")
    values[last] = value
