"""`graphrag-index init --from`: a project of ours out of one of Microsoft GraphRAG."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from graphrag_index.errors import SettingsError
from graphrag_index.llm.prompts import FOLDER
from graphrag_index.microsoft.migrate_project import (
    Carried,
    Line,
    MicrosoftProject,
    read_project,
    references,
)
from graphrag_index.microsoft.migrate_prompts import Prompts, read_prompts
from graphrag_index.microsoft.migrate_replies import read_cache
from graphrag_index.microsoft.migrate_settings import WITHOUT_CLAIMS, carry_settings
from graphrag_index.schema.settings.project_files import (
    check_can_be_folder,
    settings_text,
    shipped_workflows,
)
from graphrag_index.schema.settings.settings import (
    SETTINGS_FILE,
    Settings,
    load_settings,
    read_env_file,
)
from graphrag_index.storage.atomic import temporary_path
from graphrag_index.text.tokens import count_tokens, load_encoding

# Counts prompts; other models count much the same.
ENCODING = "o200k_base"
INDEXING = ("extract_graph", "summarize_descriptions", "create_community_reports")
# Stands for a variable that is not set, also where an address is wanted.
_UNSET = "http://unset"


@dataclass
class Taken:
    """What was written, and what is to be told about it."""

    written: list[Path] = field(default_factory=list)
    # Each with what became of it; what needs a person's attention comes last.
    carried: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    cache: list[str] = field(default_factory=list)
    to_do: list[str] = field(default_factory=list)


def init_from(
    folder: Path,
    source: Path,
    input_folder: Path | None = None,
    *,
    prompts: bool = True,
    cache: bool = True,
) -> Taken:
    """Write a project of ours into a folder, from one of Microsoft GraphRAG.

    `settings.yaml` is written last, so that a folder has one only if all else is there.
    Nothing in `source` is changed. With `input_folder` documents are read from there.

    Raises
    ------
    SettingsError
        There is no such project, it is broken, or it lies in the same folder; there is a
        `settings.yaml` or another file in the way. Nothing is written.
    """
    project = read_project(source)
    settings_path = folder / SETTINGS_FILE
    if folder.resolve() == source.resolve():
        raise SettingsError(
            f"{source} is the project of Microsoft GraphRAG itself, whose settings stay as they "
            "are: name another folder for ours; nothing was written."
        )
    if settings_path.exists():
        raise SettingsError(f"{settings_path} is there already: nothing was written.")
    if input_folder is not None and not input_folder.is_dir():
        raise SettingsError(
            f"The input folder {input_folder} is no folder that is there: nothing was written."
        )
    for wanted in (folder, folder / "workflows", folder / FOLDER):
        check_can_be_folder(wanted)
    carried = carry_settings(project)
    _set_input(carried, folder, input_folder)
    own_prompts = read_prompts(project) if prompts else Prompts()
    taken = Taken()
    _tell(taken, project, carried, own_prompts)
    environment = _environment(project, carried, folder / ".env", taken)
    text = settings_text(carried.values, _heading(project, taken))
    settings = _loaded(text, project, carried)
    texts = {folder / FOLDER / f"{name}.txt": own for name, own in own_prompts.texts.items()}
    for path, own in texts.items():
        if path.exists() and path.read_bytes() != own.encode():
            raise SettingsError(f"{path} is there already: nothing was written.")
    texts |= _workflows(folder)
    with _written(taken.written, folder / settings.output) as write:
        for path, content in texts.items():
            if not path.exists():
                write(path, content)
        if cache:
            _take_cache(taken, project, settings, folder, own_prompts)
        if environment:
            write(folder / ".env", environment, secret=True)
        write(settings_path, text)
    taken.written.insert(0, taken.written.pop())
    return taken


def _set_input(carried: Carried, folder: Path, input_folder: Path | None) -> None:
    """Name the folder of the documents as our settings do; a dollar sign is no variable."""
    section = carried.values.setdefault("load_documents", {})
    path = Path(section.get("folder", folder / "input")) if input_folder is None else input_folder
    path, root = path.resolve(), folder.resolve()
    named = path.relative_to(root) if path.is_relative_to(root) else path
    section["folder"] = named.as_posix().replace("$", "$$")


def _tell(taken: Taken, project: MicrosoftProject, carried: Carried, prompts: Prompts) -> None:
    """Write down what became of each key, and what is left to do."""
    taken.carried = [f"{line.theirs} -> {line.ours}: {line.shown}" for line in _kept(carried)]
    taken.left = [f"{line.theirs}: {line.why}" for line in carried.lines if not line.ours]
    taken.prompts = [
        f"{source} -> {FOLDER}/{name}.txt: {_length(prompts.texts[name], name)}"
        for name, source in prompts.taken.items()
    ]
    taken.left += [f"{key}: {why}" for key, why in prompts.left.items()]
    unset = sorted(
        name
        for name in _used(carried.values)
        if _is_placeholder({**project.environment, **carried.secrets}.get(name, ""))
    )
    taken.to_do += [f"Set the variable {name}, or write it into .env." for name in unset]
    documents = str(carried.values["load_documents"]["folder"]).replace("$$", "$")
    if os.path.isabs(documents) and not Path(documents).is_dir():
        taken.to_do.append(f"There are no documents in {documents}: mend load_documents.folder.")


def _length(text: str, name: str) -> str:
    """Say how long a prompt is, and ours that it stands in for."""
    encoding = load_encoding(ENCODING)
    package = "graphrag_index" if name in INDEXING else "graphrag_query"
    ours = files(package).joinpath(FOLDER, f"{name}.txt").read_text(encoding="utf-8")
    return f"{count_tokens(text, encoding):,} tokens, ours {count_tokens(ours, encoding):,}"


def _kept(carried: Carried) -> Iterator[Line]:
    return (line for line in carried.lines if line.ours)


def _heading(project: MicrosoftProject, taken: Taken) -> list[str]:
    """Return the comment at the start of `settings.yaml`."""
    where = f"{project.path.resolve()} of Microsoft GraphRAG, version {project.version}"
    lines = [f"Made from {where}."]
    for title, told in (
        ("Carried over:", taken.carried),
        ("Prompts taken over:", taken.prompts),
        ("Not carried over, and why:", taken.left),
    ):
        if told:
            lines += ["", title, *(f"  {line}" for line in told)]
    # A comment is one line, whatever a key or a name holds.
    return ["".join(part if part.isprintable() else " " for part in line) for line in lines]


def _used(value: Any) -> set[str]:
    """Return the names of the variables that some values use."""
    if isinstance(value, Mapping):
        return set().union(*map(_used, value.values()))
    if isinstance(value, list):
        return set().union(*map(_used, value))
    if not isinstance(value, str):
        return set()
    return set(references(value))


def _is_placeholder(value: str) -> bool:
    """Tell whether a value is none yet, such as the <API_KEY> that their init writes."""
    return not value or (value.startswith("<") and value.endswith(">"))


def _environment(project: MicrosoftProject, carried: Carried, path: Path, taken: Taken) -> str:
    """Return the whole text of our `.env`, with what the settings use; empty if nothing is new."""
    here = read_env_file(path)
    wanted = {
        name: project.variables[name] for name in _used(carried.values) if name in project.variables
    }
    wanted = {name: value for name, value in wanted.items() if not _is_placeholder(value)}
    wanted |= carried.secrets
    for name, secret in carried.secrets.items():
        if here.get(name, secret) != secret:
            raise SettingsError(
                f"{path} has another {name} than {project.path}: take it out of one of them; "
                "nothing was written."
            )
    lines = []
    for name in sorted(wanted.keys() - here.keys()):
        line = _env_line(name, wanted[name])
        if line is None:
            taken.to_do.append(f"Set the variable {name}: .env cannot hold its value.")
        else:
            lines.append(line)
    if not lines:
        return ""
    before = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    if before and not before.endswith("\n"):
        before += "\n"
    return before + "".join(lines)


def _loaded(text: str, project: MicrosoftProject, carried: Carried) -> Settings:
    """Load settings as they will be written, so that none are written which do not load."""
    # What is not set yet, such as a key, is no mistake of the settings.
    variables = dict.fromkeys(_used(carried.values), _UNSET)
    variables |= {**project.variables, **carried.secrets}
    # What .env cannot hold is set by hand, and is not set yet.
    lines = [_env_line(name, value) or f"{name}={_UNSET}\n" for name, value in variables.items()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / SETTINGS_FILE
        path.write_text(text, encoding="utf-8")
        (Path(folder) / ".env").write_text("".join(lines), encoding="utf-8")
        try:
            return load_settings(Path(folder))
        except SettingsError as error:
            said = str(error).replace(str(path), "ours")
            raise SettingsError(
                f"What {project.path} says makes no settings of ours, and nothing was written: "
                f"{said}"
            ) from error


def _env_line(name: str, value: str) -> str | None:
    """Write a variable as `.env` has it; None if it cannot have this value."""
    mark = next((mark for mark in "'\"" if mark not in value), None)
    return f"{name}={mark}{value}{mark}\n" if mark and value.isprintable() else None


def _workflows(folder: Path) -> dict[Path, str]:
    """Return the workflows by their files, with one more: the standard one without claims."""
    texts = shipped_workflows()
    steps = [line for line in texts["standard"].splitlines() if line.startswith("- ")]
    steps.remove("- extract_covariates")
    told = "# The workflow standard without claims."
    texts[WITHOUT_CLAIMS] = "\n".join([told, *steps]) + "\n"
    return {folder / "workflows" / f"{name}.yaml": text for name, text in texts.items()}


def _take_cache(
    taken: Taken, project: MicrosoftProject, settings: Settings, folder: Path, prompts: Prompts
) -> None:
    """Read the paid replies into the ledger, and say what became of them."""
    models = settings.models
    if any(_UNSET in str(model.identity()) for model in models.values()):
        taken.to_do.append(
            "The cache was not read, since a model is named by a variable that is not set."
        )
        return
    result = read_cache(project, settings, folder, prompts.originals)
    taken.cache = result.lines()
    extraction = result.steps.get("extract_graph")
    if extraction and extraction.n_used and settings.extract_graph.max_gleanings:
        taken.to_do.append(
            f"extract_graph.max_gleanings is {settings.extract_graph.max_gleanings}, so that each "
            "text unit is asked what was missed, and that is paid again: 0 asks nothing."
        )


@contextmanager
def _written(paths: list[Path], output: Path) -> Iterator[Any]:
    """Write files each as a whole; if anything fails, all that was made is taken away again."""
    made: list[Path] = []
    had_output = output.exists()

    def write(path: Path, text: str, secret: bool = False) -> None:
        for parent in reversed([path.parent, *path.parent.parents]):
            if not parent.exists():
                parent.mkdir()
                made.append(parent)
        temporary = temporary_path(path)
        was_there = path.exists()
        made.append(temporary)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with open(os.open(temporary, flags, 0o600 if secret else 0o666), "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        made[-1:] = [] if was_there else [path]
        paths.append(path)

    try:
        yield write
    except BaseException:
        if not had_output:
            shutil.rmtree(output, ignore_errors=True)
        for path in reversed(made):
            _remove(path)
        paths.clear()
        raise


def _remove(path: Path) -> None:
    try:
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
    except OSError:
        # A folder in which something else was put stays.
        return
