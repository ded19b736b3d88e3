"""The subject of a document, from its title, file name, first lines and metadata."""

import json

from hypothesis import given
from hypothesis import strategies as st

from graphrag_nlp.text.subjects import HEAD_CHARS, MAX_LABEL_CHARS, Subject, find_subject
from tests.fixtures.cases import cases

PROSE = "It rained all day, and the margin rose to 4%. More followed."
LINES = (
    "Patient: Ann Lee", "a: b", "# Title", "---", "**X:** y", "", "Q3 2022", "x: " + "word " * 30,
    "：： z", "公司：明治", "| a | b |", "[1](2022)", ": : :",
)  # fmt: skip
values = st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.lists(st.text()))


def check(subject: Subject, label: str, entity: str, period: str, names: list[str]) -> None:
    found = (subject.label, subject.entity, str(subject.period or ""), [*subject.names])
    assert found == (label, entity, period, names)


@cases("title, label, entity, period, names")
def test_a_title(title: str, label: str, entity: str, period: str, names: list[str]) -> None:
    check(find_subject(title, "17.txt", PROSE), label or title, entity, period, [*names, "17"])


@cases("path, label, entity, period, names")
def test_a_file_name(path: str, label: str, entity: str, period: str, names: list[str]) -> None:
    for title in ("", path, path.rpartition("/")[2]):
        check(find_subject(title, path, PROSE), label, entity, period, names)


@cases("head, label, entity, period, names")
def test_first_lines(head: str, label: str, entity: str, period: str, names: list[str]) -> None:
    check(find_subject("", "17.txt", f"{head}\n\n{PROSE}"), label, entity, period, [*names, "17"])


@cases("head")
def test_first_lines_that_say_nothing(head: str) -> None:
    check(find_subject("", "17.txt", f"{head}\n{PROSE}"), "17", "17", "", ["17"])


@cases("metadata, label, entity, period, names")
def test_metadata(metadata: str, label: str, entity: str, period: str, names: list[str]) -> None:
    subject = find_subject("", "17.txt", PROSE, metadata, "1999-12-31")
    check(subject, label, entity, period, [*names, "17"])


def test_a_title_says_the_period_before_metadata_and_these_before_the_file() -> None:
    metadata = json.dumps({"quarter": "Q2 2022"})
    for title, path, columns, period in (
        ("Acme Q1 2022", "acme-2022-q3.txt", metadata, "Q1 2022"),
        ("Acme", "acme-2022-q3.txt", metadata, "Q2 2022"),
        ("Acme", "acme-2022-q3.txt", None, "Q3 2022"),
        ("Acme", "acme.txt", None, "2022-11-28"),
        # The shortest period of a title, and equal ones together.
        ("Acme 2022: Q4 2022", "acme.txt", None, "Q4 2022"),
        ("Acme Q1, Q2 and Q3 2022", "acme.txt", None, "Q1 2022 to Q3 2022"),
    ):
        assert str(find_subject(title, path, PROSE, columns, "2022-11-28").period) == period


def test_only_the_head_of_a_document_is_read() -> None:
    lines = "\n".join(f"Field {n}: value {n}" for n in range(200))
    subject = find_subject("Acme", "a.txt", lines)
    assert len(subject.names) < 20
    assert len(find_subject("Acme " * HEAD_CHARS, "a.txt", lines).label) == MAX_LABEL_CHARS


@given(
    st.text(),
    st.text(),
    st.one_of(st.text(), st.lists(st.sampled_from(LINES)).map("\n".join)),
    st.one_of(st.none(), st.dictionaries(st.text(), values).map(json.dumps)),
    st.text(),
)
def test_any_document_has_a_subject(
    title: str, path: str, text: str, metadata: str | None, date: str
) -> None:
    subject = find_subject(title, path, text, metadata, date)
    assert all(subject.names)
    assert len(set(subject.names)) == len(subject.names)
    assert len(subject.label) <= MAX_LABEL_CHARS
