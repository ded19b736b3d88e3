"""The folder of a report, and the reports that a project keeps."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from graphrag_evaluation.project_folders import EVALUATIONS, check_folder_name
from graphrag_evaluation.report.evaluation_page import render_page
from graphrag_evaluation.report.evaluation_record import EvaluationRecord
from graphrag_evaluation.report.junit_file import junit_text
from graphrag_index.errors import ExportError
from graphrag_index.schema.settings.project_settings import SETTINGS_FILE
from graphrag_index.storage.atomic import lock_target, write_text_file

# Files of the folder.
RECORD, PAGE, JUNIT = "evaluation.json", "evaluation.html", "junit.xml"


def report_name(questions: Path, name: str = "") -> str:
    """Return the name of an evaluation: `name`, or the name of the questions without suffixes.

    Raises SettingsError if the name cannot be that of a folder.
    """
    name = name or Path(questions.name.removesuffix(".gz")).stem
    check_folder_name(name)
    return name


def kept_folder(root: Path, name: str) -> Path | None:
    """Return the folder of an evaluation in a project; None if `root` is only an output folder."""
    return root / EVALUATIONS / name if (root / SETTINGS_FILE).exists() else None


@contextmanager
def reserved_folder(folder: Path) -> Iterator[None]:
    """Create the folder of a report, and keep other processes from writing a report there.

    Reserve it before an evaluation, which may take long and cost money: raises ExportError if
    the folder cannot be written, or is in use.
    """
    with ExitStack() as stack:
        with _explained(folder):
            stack.enter_context(lock_target(folder / RECORD, "evaluation"))
        yield


def write_report(folder: Path, record: EvaluationRecord) -> Path:
    """Write the files of a report, each atomically; return the path of its page."""
    with _explained(folder):
        write_text_file(folder / RECORD, [record.model_dump_json()])
        write_text_file(folder / JUNIT, [junit_text(record)])
        write_text_file(folder / PAGE, render_page(record))
    return folder / PAGE


def find_reports(root: Path) -> dict[str, Path]:
    """Return the files `evaluation.json` that a project keeps, by the name of the evaluation."""
    found = (root / EVALUATIONS).glob(f"[!.]*/{RECORD}")
    return {path.parent.name: path for path in sorted(found)}


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Turn a failure of the file system into a sentence with the way out."""
    try:
        yield
    except OSError as error:
        raise ExportError(
            f"The report cannot be written to {folder} ({error.strerror or error}): name another "
            "folder with --to, or use --no-report."
        ) from error
