"""The folder of a report with its `junit.xml`, and the reports that a project keeps."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from graphrag_evaluation.project_folders import EVALUATIONS, check_folder_name
from graphrag_evaluation.report.evaluation_page import render_page
from graphrag_evaluation.report.evaluation_record import EvaluationRecord
from graphrag_index.errors import ExportError
from graphrag_index.schema.settings.project_settings import SETTINGS_FILE
from graphrag_index.storage.atomic import lock_target, write_text_file
from graphrag_query.answer import Outcome

# Files of the folder.
RECORD, PAGE, JUNIT = "evaluation.json", "evaluation.html", "junit.xml"
# Characters that XML 1.0 cannot hold.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
# Outcomes of a search that failed.
FAILED_OUTCOMES = [outcome.value for outcome in Outcome if outcome.is_failure]
MAX_NAME_CHARS = 200


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


def junit_text(record: EvaluationRecord) -> str:
    """Return the JUnit file of an evaluation: a suite for each system.

    Each limit is a test case, which fails if the mean is lower. Each question is a test case
    too, which is an error if the search failed; a low score of one question is no failure.
    """
    root = Element("testsuites", name=_clean(record.name))
    failures = {(system, measure): said for system, measure, said in record.failures}
    for system, results in record.results.items():
        suite = SubElement(root, "testsuite", name=_clean(system))
        name = _clean(f"{record.name}.{system}")
        for measure, limit in record.limits.items():
            case = _add_case(suite, name, f"{measure} is at least {limit:g}", 0)
            if said := failures.get((system, measure)):
                SubElement(case, "failure", type="limit", message=_clean(said))
        for question, result in zip(record.questions, results, strict=True):
            title = f"{question.id}: {question.text}"
            case = _add_case(suite, name, title, result.scores.get("seconds", 0))
            if result.outcome in FAILED_OUTCOMES:
                message = _clean(" ".join(result.notes) or result.answer or result.outcome)
                SubElement(case, "error", type=result.outcome, message=message)
        suite.attrib |= {
            "tests": str(len(suite)),
            "failures": str(len(suite.findall("*/failure"))),
            "errors": str(len(suite.findall("*/error"))),
            "time": f"{sum(float(case.attrib['time']) for case in suite):.3f}",
            "timestamp": record.date.partition("+")[0],
        }
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _add_case(suite: Element, group: str, name: str, seconds: float) -> Element:
    shown = _clean(name)[:MAX_NAME_CHARS]
    return SubElement(suite, "testcase", classname=group, name=shown, time=f"{seconds:.3f}")


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
