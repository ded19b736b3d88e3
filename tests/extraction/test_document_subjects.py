"""What a document is about: lines before its passages, and its figures in the graph."""

import re
import shutil
from itertools import chain, product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

import graphrag_query
from graphrag_index.extraction.prompting import describe_document, format_subject
from graphrag_index.health.checked_index import open_for_check
from graphrag_index.health.checks import check_index
from graphrag_index.llm.prompts import find_quoted_texts
from graphrag_index.schema.settings.step_sections import Check
from tests.fixtures.checked import found
from tests.fixtures.commands import REPOSITORY, call
from tests.fixtures.extraction import entity, link, reply
from tests.fixtures.small_index import read_files, read_table
from tests.model_server import Server, answer_from_text
from tests.model_server.chat import ChatRequest

COMPANIES = {"Galemark Group": 3, "Toradyne Holdings": 5, "Brailmark": 7}
QUARTERS = range(1, 5)
TITLES = (
    "{} 2022 q{} earnings call", "{} Q{} 2022 report", "{} 2022-Q{}", "{}: results of Q{} 2022",
)  # fmt: skip
TALK = (
    "Good afternoon, and welcome to the call on our results of the last three months. "
    "The regions were soft, while the channel held up well and freight was as dear as ever."
)
MEASURES = {
    "operating margin": "Our operating margin came in at {}%, helped by lower freight rates.",
    "customer churn": "Customer churn was {}%, which we track closely.",
}


def figure(company: str, quarter: int, measure: str) -> str:
    """The sentence that states a figure, which no other document has."""
    n = COMPANIES[company] * 10 + quarter
    return MEASURES[measure].format(f"{n}.{len(measure) % 10}")


def report(company: str, quarter: int, title: str) -> str:
    """A report in which only the title names the company; each figure is in its own passage."""
    parts = [TALK, figure(company, quarter, "operating margin"), TALK, TALK]
    parts += [figure(company, quarter, "customer churn"), TALK]
    heading = f"{title.format(company, quarter)}\n\n" if title else ""
    return heading + "\n\n".join(parts) + "\n"


def hang_figures(request: ChatRequest) -> Any:
    """Hang the figures of a passage on the company of its document, whose period they have."""
    properties = (request.schema or {}).get("properties", {})
    if not {"entities", "claims"} & properties.keys():
        return answer_from_text(request)
    user = request.texts[1]
    [passage] = find_quoted_texts(user)
    about = re.search("^About: (.*)", user, re.M)
    title = re.search("^Document: (.*)", user, re.M)
    told = (about or title or re.match("(.*)", passage))[1]  # type: ignore[index]
    company = next((name for name in COMPANIES if name in told), None)
    stated = {
        name: said[0]
        for name in MEASURES
        if (said := re.search(rf"[^.]*{name}[^%]*%[^.]*\.", passage, re.I))
    }
    if company is None or not stated:
        return {"claims": []} if "claims" in properties else reply()
    if "claims" in properties:
        claim = {"subject": company, "object": None, "type": "figure", "status": "TRUE"}
        claim |= {"start_date": None, "end_date": None}
        said = stated.items()
        return {"claims": [claim | {"description": n, "source_text": s.strip()} for n, s in said]}
    links = [link(company, name, "reports", f"{told}: {said}", 8) for name, said in stated.items()]
    names = [entity(name, "measure", name) for name in stated]
    return reply(entity(company, "company", f"{company} reports."), *names, links=links)


def write_project(root: Path, url: str, documents: dict[str, str]) -> Path:
    for name, text in documents.items():
        path = root / "input" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copytree(REPOSITORY / "workflows", root / "workflows")
    settings = {
        "workflow": "standard",
        "models": {"chat": {"model": "test-model", "base_url": url, "timeout": 30}},
        "create_text_units": {"max_tokens": 60, "overlap_tokens": 0},
        "finalize_graph": {"layout": False},
    }
    (root / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return root


def planted(form: str) -> dict[str, str]:
    """Reports that name their company in the title only, or in the name of their file only."""
    named = {}
    for number, (company, quarter) in enumerate(product(COMPANIES, QUARTERS)):
        stem = f"{company.lower().replace(' ', '-')}-2022-q{quarter}"
        title = TITLES[quarter % len(TITLES)] if form == "title" else ""
        named[f"{stem if form == 'file' else number}.txt"] = report(company, quarter, title)
    return named


@pytest.mark.parametrize("form", ["title", "file"])
def test_figures_hang_on_the_company_of_their_document(tmp_path: Path, form: str) -> None:
    documents = planted(form)
    paths = dict(zip(documents, product(COMPANIES, QUARTERS), strict=True))
    with Server(answer=hang_figures) as server:
        root = write_project(tmp_path / "whole", server.url, documents)
        # One document comes by an update, and another one has nothing to tell of itself.
        late = documents.popitem()
        (root / "input" / late[0]).unlink()
        (root / "input" / "99.txt").write_text("It rained. Nobody came.", encoding="utf-8")
        for _ in range(2):
            result = call(root, "run")
            assert result.returncode == 0, result.stderr
            (root / "input" / late[0]).write_text(late[1], encoding="utf-8")
        rebuilt = write_project(tmp_path / "again", server.url, {})
        shutil.copytree(root / "input", rebuilt / "input")
        assert call(rebuilt, "run").returncode == 0
    updated, anew = read_files(root), read_files(rebuilt)
    for name in ("entities", "relationships", "mentions"):
        assert updated[f"extracted_{name}"] == anew[f"extracted_{name}"]
    assert updated["covariates"] == anew["covariates"]
    health = found(check_index(open_for_check(root / "output"), Check()))
    assert health == {"uncovered_documents": [("documents", 1)]}
    check_graph(root, {path: company for path, (company, _) in paths.items()})


def check_graph(root: Path, company_of: dict[str, str]) -> None:
    """Compare the entities, relationships and claims with the planted figures.

    All passages of its documents are in the neighbourhood of a company.
    """
    units = read_table(root, "text_units").join(
        read_table(root, "documents").select(document_id="id", path="path"), on="document_id"
    )
    entities, links = read_table(root, "entities"), read_table(root, "relationships")
    texts = dict(read_table(root, "documents").select("id", "text").iter_rows())
    claims = read_table(root, "covariates").join(units, left_on="text_unit_id", right_on="id")
    with graphrag_query.open(root / "output") as index:
        near = index.store.open_mapped("text_units_of_entities")
        near_units = near.columns("entity", "text_unit")
    assert set(entities["title"]) == {*COMPANIES, *MEASURES}
    for company in COMPANIES:
        own = units.filter(pl.col("path").replace(company_of) == company)
        sentences = {m: [figure(company, q, m) for q in QUARTERS] for m in MEASURES}
        figures = list(chain.from_iterable(sentences.values()))
        stating = own.filter(pl.col("text").str.contains_any(figures))
        assert stating.height == len(QUARTERS) * len(MEASURES)
        [row] = entities.filter(title=company).rows(named=True)
        assert set(row["text_unit_ids"]) == set(stating["id"])
        held = near_units.filter(entity=row["human_readable_id"])["text_unit"]
        assert sorted(held) == sorted(own["human_readable_id"])
        for measure, expected in sentences.items():
            [link] = links.filter(source=company, target=measure).rows(named=True)
            places = link["evidence"]
            said = [texts[p["document_id"]][p["start_char"] : p["end_char"]] for p in places]
            assert sorted(said) == sorted(expected)
            assert set(link["text_unit_ids"]) <= set(row["text_unit_ids"])
        told = claims.filter(subject_id=company)
        assert sorted(told["source_text"]) == sorted(figures)
        assert set(told["document_id"]) == set(own["document_id"])


HEAD = "Visit\n\nPatient: Ann Lee\nWard: 3\n\nThe patient slept."
FILE = "galemark-group-2022-q3.txt"


@pytest.mark.parametrize(
    ("title", "path", "text", "metadata", "date", "lines"),
    [
        ("Log of Q3 2022", "a.txt", "", None, "2022-11-02", ["Document: Log of Q3 2022"]),
        ("Log", "a.txt", "", None, "2022-11-02", ["Document: Log", "Date: 2022-11-02"]),
        ("Log", "log-2022-q3.txt", "", None, "", ["Document: Log", "Period: Q3 2022"]),
        ("", FILE, "", None, "", ["Document: galemark group 2022 q3", "About: Galemark Group"]),
        ("", "2022-q3.txt", "", None, "", ["Period: Q3 2022"]),
        ("", "17.txt", "Hi.", None, "", []),
        ("Visit", "17.txt", HEAD, None, "", ["Document: Visit; Patient: Ann Lee; Ward: 3"]),
        ("The Visit, 1901", "", "The Visit\n\nHi.", None, "", ["Document: The Visit, 1901"]),
        ("Log", "17.txt", "Hi.", '{"case": "T-10"}', "", ["Document: Log; case: T-10"]),
        ("", "17.txt", "Hi.", '{"case": "unknown"}', "", []),
    ],
)
def test_only_lines_that_say_something_new_describe_a_document(
    title: str, path: str, text: str, metadata: str | None, date: str, lines: list[str]
) -> None:
    assert describe_document(title, path, text, metadata, date) == "\n".join(lines)


def test_a_passage_that_begins_with_a_line_is_told_the_others() -> None:
    subject = "Document: Visit; Patient: Ann Lee\nPeriod: Q3 2022"
    assert format_subject(subject, HEAD) == "Period: Q3 2022\n\n"
    assert format_subject(subject, "She slept.") == f"{subject}\n\n"
    section = "Document: Patient: Ann Lee\nPeriod: Q3 2022\nSection: Visit > Night\n\n"
    assert format_subject(subject, "She slept.", "Visit > Night") == section
    # A sentence that has the words of a title is no headline.
    assert format_subject("Document: Visit", "The visit of that day was long.")
    assert format_subject("Document: Visit", HEAD) == format_subject("", "She slept.") == ""
