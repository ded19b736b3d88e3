"""The file `junit.xml`, which Jenkins, GitLab and other servers of integration read."""

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from graphrag_evaluation.report.evaluation_record import EvaluationRecord
from graphrag_query.answer import Outcome

# Characters that XML 1.0 cannot hold.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
# Outcomes of a search that failed.
FAILED_OUTCOMES = [outcome.value for outcome in Outcome if outcome.is_failure]
MAX_NAME_CHARS = 200


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
