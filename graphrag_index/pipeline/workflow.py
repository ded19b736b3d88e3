"""Loading and validation of workflows. Start reading here, then read `run.py`.

A workflow is a YAML list of step names. Before the first step runs, every step is imported and
checked: an earlier step must write each table that the step reads, and the settings and services
of the step must exist. A service is an object that a step uses besides tables, such as a model. A
step asks for a service by the name of a parameter.
"""

import importlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from graphrag_index.errors import GraphRAGError, SettingsError, WorkflowError, describe_error
from graphrag_index.llm.local.local_models import (
    check_embedding_model,
    find_vector_identity,
    load_embedding_model,
)
from graphrag_index.llm.prompts import Prompts
from graphrag_index.readers.input_files import find_figure_files, open_figure_files
from graphrag_index.readers.recognition import PageReader
from graphrag_index.schema.settings.models import find_model, identity
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.settings.section import Section, describe_validation_error, read_yaml
from graphrag_index.step import Project, Step
from graphrag_index.steps import STEPS
from graphrag_index.storage.atomic import hash_files
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import StoredTable
from graphrag_index.storage.working_copy import locate_output

if TYPE_CHECKING:
    from graphrag_index.llm.registry import Models

logger = logging.getLogger(__name__)

# Names of the services that every run provides.
BUILT_IN_SERVICES = ("settings", "root", "progress", "previous", "shards")


@dataclass(frozen=True)
class Service:
    """Functions that open, check and close an object for a step, such as a chat model.

    Each gets the step and its settings, except `close`.
    """

    # Opens the service; called only for a step that runs.
    open: Callable[[Step, Any], Any]
    # Returns a value that changes if results of the service may change. Then the step runs again.
    identity: Callable[[Step, Any], Any] = lambda step, section: None
    # Called before the first step runs. Raises `GraphRAGError` if the service is not available.
    check: Callable[[Step, Any], object] = lambda step, section: None
    # Called after the step with the service and the stored tables. Returns the tables to record.
    close: Callable[[Any, Mapping[str, StoredTable]], Mapping[str, StoredTable]] = (
        lambda service, tables: tables
    )


@dataclass(frozen=True)
class Workflow:
    """A list of steps in running order. Each step reads only tables of earlier steps."""

    name: str
    steps: tuple[Step, ...]

    @property
    def loader(self) -> Step | None:
        """The step that reads the documents of the input folder."""
        return next((step for step in self.steps if step.input_table), None)


def load_workflow(root: Path, name: str) -> Workflow:
    """Load `workflows/<name>.yaml` beside the settings, and check the order of its steps."""
    path = root / "workflows" / f"{name}.yaml"
    names = read_step_names(path)
    workflow = Workflow(name, tuple(load_step(entry, root, str(path)) for entry in names))
    _check_table_order(workflow, str(path))
    return workflow


def read_step_names(path: Path) -> list[str]:
    """Read the step names from a workflow file."""
    try:
        names = read_yaml(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        known = sorted(file.stem for file in path.parent.glob("*.yaml"))
        raise WorkflowError(
            f"There is no workflow {path.stem!r} ({path} is missing); "
            + _suggest_name(
                path.stem,
                known,
                "`graphrag-index init` writes the first ones into a new folder: copy them.",
            )
        ) from None
    except (OSError, ValueError) as error:
        raise WorkflowError(f"{path} cannot be read: {' '.join(str(error).split())}.") from error
    if names is None or names == []:
        raise WorkflowError(f"{path} names no step.")
    if not isinstance(names, list) or not all(isinstance(entry, str) for entry in names):
        raise WorkflowError(f"{path} must be a list of step names, one `- name` a line.")
    return names


def load_step(name: str, root: Path, where: str) -> Step:
    """Import a built-in step by its name, or a user-defined step by `package.module:function`."""
    module_name, colon, function = name.partition(":")
    if not colon:
        if name not in STEPS:
            raise WorkflowError(
                f"{where}: unknown step {name!r}; "
                + ("a step of your own is named module:function; " if "." in name else "")
                + _suggest_name(name, list(STEPS), "")
            )
        module_name, function = f"graphrag_index.steps.{STEPS[name]}", name
    else:
        if not all((*module_name.split("."), function)) or module_name.endswith(".py"):
            raise WorkflowError(
                f"{where}: {name!r} names no step; a step of your own is named module:function, "
                "such as redaction:redact_names for a function in redaction.py."
            )
        if str(root.absolute()) not in sys.path:
            # Make modules in the folder of settings.yaml importable.
            sys.path.insert(0, str(root.absolute()))
    try:
        module = importlib.import_module(module_name)
    except (ImportError, SyntaxError) as error:
        raise WorkflowError(f"{where}: step {name!r} cannot be imported: {error}.") from error
    except (KeyboardInterrupt, GraphRAGError):
        raise
    # Catch BaseException, because code of a user may raise any exception, also SystemExit.
    except BaseException as error:
        raise WorkflowError(
            f"{where}: step {name!r} cannot be imported: "
            f"{describe_error(error)}{find_last_code_line(error, module_name)}."
        ) from error
    found = getattr(module, function, None)
    if not isinstance(found, Step):
        raise WorkflowError(
            f"{where}: {name!r} is not a step; decorate the function with "
            "`@graphrag_index.step.step(writes=[...])`."
        )
    return found


def find_last_code_line(error: BaseException, module_name: str) -> str:
    """Return the last line of a module in a traceback, for example " (own.py, line 6)"."""
    lines = [
        f" ({Path(frame.f_code.co_filename).name}, line {number})"
        for frame, number in walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__") == module_name
    ]
    return lines[-1] if lines else ""


def _check_table_order(workflow: Workflow, where: str) -> None:
    names: set[str] = set()
    written: set[str] = set()
    for step in workflow.steps:
        if step.name in names:
            raise WorkflowError(f"{where}: there are two steps with the name {step.name}.")
        names.add(step.name)
        reads = {read.table for read in step.reads}
        for read in step.reads:
            if read.table not in written and not read.optional:
                raise WorkflowError(
                    f"{where}: step {step.name} reads the table {read.table}, "
                    "which no step before it writes."
                )
        for table in step.writes:
            # Two steps may write the same table only if the second step also reads the table.
            if table.name in written and table.name not in reads:
                raise WorkflowError(
                    f"{where}: step {step.name} writes the table {table.name} a second time."
                )
            written.add(table.name)


def select_sections(workflow: Workflow, settings: Settings) -> dict[str, Any]:
    """Return the settings of each step, by the name of the step.

    The annotation of the parameter `settings`, such as `CreateCommunities`, names the settings
    class of a step. A user-defined step gets its section under `steps` in `settings.yaml`.
    Raises SettingsError if a section under `steps` is invalid.
    """
    shipped = {type(section): section for _, section in settings if isinstance(section, Section)}
    sections: dict[str, Any] = {}
    for step in workflow.steps:
        if step.settings_model in shipped:
            sections[step.name] = shipped[step.settings_model]
        elif "settings" in step.services:
            values: Any = settings.steps.get(step.name, {})
            if (model := step.settings_model) is not None:
                try:
                    values = model.model_validate(values)
                except ValidationError as error:
                    raise SettingsError(
                        describe_validation_error(error, model, f"steps.{step.name}")
                    ) from None
            sections[step.name] = values
    return sections


def check_workflow(
    workflow: Workflow, settings: Settings, root: Path, services: Mapping[str, Service]
) -> None:
    """Check the settings, the input and the services of a workflow before a run."""
    check_steps(workflow, settings, root)
    check_services(workflow, select_sections(workflow, settings), services)


def check_steps(workflow: Workflow, settings: Settings, root: Path) -> None:
    """Check the settings, and call the checks of all steps.

    Raises GraphRAGError if a step cannot run, or if `settings.steps` names a step that the
    workflow does not have.
    """
    sections = select_sections(workflow, settings)
    shipped = {type(section) for _, section in settings if isinstance(section, Section)}
    own = [name for name, section in sections.items() if type(section) not in shipped]
    for name in settings.steps:
        if name not in own:
            raise SettingsError(
                f"settings: steps.{name} belongs to no step of the workflow {workflow.name}; "
                + _suggest_name(name, own, "none of its steps has settings of your own.")
            )
    prompts = Prompts(root)
    if lacking := prompts.check_placeholders():
        logger.warning("prompts/: %s; what the settings say there is not sent.", lacking)
    unused = prompts.unused_files
    # A step of your own may have prompts of any name.
    if unused and all(step.name in STEPS for step in workflow.steps):
        logger.warning("prompts/: no prompt has the name of %s; not read.", ", ".join(unused))
    project = Project(
        root, locate_output(root, settings), tuple(step.name for step in workflow.steps)
    )
    for step in workflow.steps:
        if step.check is not None:
            step.check(sections.get(step.name), project)


def check_services(
    workflow: Workflow, sections: Mapping[str, Any], services: Mapping[str, Service]
) -> None:
    """Check that all services of all steps exist and are available."""
    known = [*BUILT_IN_SERVICES, *services]
    for step in workflow.steps:
        for name in step.services:
            if name not in known:
                nearest = _suggest_name(name, known, "")
                raise WorkflowError(f"Step {step.name} asks for {name!r}; {nearest}")
        section = sections.get(step.name)
        for name in services.keys() & step.needs(section):
            services[name].check(step, section)


def _suggest_name(name: str, known: list[str], otherwise: str) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(known)}." if known else otherwise


def make_services(settings: Settings, models: "Models | None", root: Path) -> dict[str, Service]:
    """Return the models and prompts of a project as services, by name.

    If `models` is None, the models of the settings are opened.
    """
    prompts = Prompts(root)
    vectors = settings.generate_text_embeddings.model

    def remote() -> "Models":
        from graphrag_index.llm.registry import Models

        return models or Models(settings.models, locate_output(root, settings))

    def check_embedding(step: Step, section: Any) -> None:
        if vectors not in settings.models:
            check_embedding_model(vectors)

    def open_embedding(step: Step, section: Any) -> Any:
        if vectors in settings.models:
            return remote().open_embedding_model(vectors, step.name)
        return load_embedding_model(vectors)

    def open_page_reader() -> PageReader:
        found = remote()
        return PageReader(lambda: found.ledger, found.announce, only_known=found.only_known)

    return {
        "chat_model": Service(
            open=lambda step, section: remote().open_chat_model(
                _get_chat_model_name(section), step.name
            ),
            identity=lambda step, section: identity(settings.models, section),
            check=lambda step, section: find_model(
                settings.models, _get_chat_model_name(section), step.name
            ),
        ),
        "embedding_model": Service(
            open=open_embedding,
            identity=lambda step, section: find_vector_identity(settings),
            check=check_embedding,
            close=_record_embedding_model,
        ),
        # The page reader of `load_documents`.
        "page_reader": Service(open=lambda step, section: open_page_reader()),
        # The PDF and picture files of the input folder, which `describe_figures` reads again.
        "figure_files": Service(
            open=lambda step, section: partial(open_figure_files, settings.load_documents, root),
            identity=lambda step, section: hash_files(
                file.path for file in find_figure_files(settings.load_documents, root)
            ),
        ),
        # Whether pictures without text are no failure of `load_documents`.
        "describes_figures": Service(
            open=lambda step, section: describes_figures(root, settings),
            identity=lambda step, section: describes_figures(root, settings),
        ),
        "prompts": Service(
            open=lambda step, section: prompts,
            identity=lambda step, section: prompts.project_prompts(),
        ),
    }


def describes_figures(root: Path, settings: Settings) -> bool:
    """Return whether the workflow of the settings describes figures."""
    path = root / "workflows" / f"{settings.workflow}.yaml"
    return path.exists() and "describe_figures" in read_step_names(path)


def _get_chat_model_name(section: Any) -> str:
    """Return the name of the chat model in the settings of a step."""
    name = section.get("model") if isinstance(section, dict) else getattr(section, "model", None)
    return str(name or "chat")


def _record_embedding_model(
    model: Any, tables: Mapping[str, StoredTable]
) -> Mapping[str, StoredTable]:
    """Add the identity of the embedding model to the record of each vector table."""
    name, dimensions = model.identity
    stored = dict(tables)
    for table_name, table in tables.items():
        if table.vectors:
            vectors = replace(table.vectors, model=name, dimensions=dimensions)
            stored[table_name] = replace(table, vectors=vectors)
    return stored


def open_models(
    workflow: Workflow,
    settings: Settings,
    root: Path,
    budget: float | None = None,
    batch: bool = False,
    announce: Callable[[str], None] = lambda line: None,
) -> "Models":
    """Return the models of a workflow; a model is opened when a step asks for the model."""
    from graphrag_index.llm.registry import Models

    needed: dict[str, str] = {}
    for step, name, embeds in _find_model_uses(workflow, settings):
        find_model(settings.models, name, step.name)
        needed[name] = step.name if embeds else needed.get(name, "")
    store = TableStore(locate_output(root, settings))
    return Models(
        settings.models, store.output, store.next_number, needed, budget, batch, announce=announce
    )


def check_keys(workflow: Workflow, settings: Settings) -> None:
    """Raise SettingsError if a model of the workflow lacks a key that is named or demanded."""
    from graphrag_index.llm.protocol import OPENAI_ADDRESS, server_address

    for _, name, _ in _find_model_uses(workflow, settings):
        model = settings.models[name]
        if not model.require_key() and server_address(model) == OPENAI_ADDRESS:
            raise SettingsError(
                f"models.{name} has no key, which {OPENAI_ADDRESS} demands: export OPENAI_API_KEY "
                "or set api_key, or set base_url to another server."
            )


def find_asking_steps(workflow: Workflow, settings: Settings) -> set[str]:
    """Return the names of the steps that send requests to a model."""
    return {step.name for step, *_ in _find_model_uses(workflow, settings)}


def _find_model_uses(workflow: Workflow, settings: Settings) -> Iterator[tuple[Step, str, bool]]:
    """Yield (step, name of its remote model, whether the model embeds)."""
    sections = select_sections(workflow, settings)
    vectors = settings.generate_text_embeddings.model
    for step in workflow.steps:
        section = sections.get(step.name)
        needs = step.needs(section)
        if "chat_model" in needs:
            yield step, _get_chat_model_name(section), False
        if "embedding_model" in needs and vectors in settings.models:
            yield step, vectors, True
