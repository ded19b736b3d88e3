"""Types are added to an index, taken out and put back: what is asked, and what is there then."""

import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from graphrag_index.llm.ledger import FILE
from graphrag_index.llm.prompts import quote_text
from graphrag_index.pipeline.estimate import estimate
from graphrag_index.pipeline.run import RunResult, RunSetup, run_workflow
from graphrag_index.pipeline.workflow import load_workflow, make_services, open_models
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_index.storage.table_store import open_index
from tests.fixtures.commands import start, wait_for
from tests.fixtures.extraction import named_in, wanted_types
from tests.fixtures.small_index import read_table
from tests.model_server import Faults, Server
from tests.model_server.answers import answer_from_text
from tests.model_server.chat import ChatRequest

DOCUMENTS = {
    "wedding.txt": "Ada Byron married William King in London. The Royal Society sent its wishes.",
    "engine.txt": "Charles Babbage showed Ada Byron his engine in London. The Royal Society was not amused, "  # noqa: E501
    "and the Great Exhibition in London went without it.",
    "turin.txt": "Charles Babbage spoke in Turin. The Royal Society did not send Ada Byron.",
}  # fmt: skip
SHORT = "load_documents create_text_units extract_graph extract_covariates".split()
WHOLE = """load_documents create_text_units extract_graph summarize_descriptions finalize_graph
extract_covariates create_communities link_text_units create_community_reports""".split()


def answer(request: ChatRequest) -> Any:
    if "entities" in (request.schema or {}).get("properties", {}):
        return named_in(request.texts)
    return answer_from_text(request)


class Project:
    """A small project whose models are a server; each run says what was asked."""

    def __init__(self, root: Path, server: Server, workflow: str = "short") -> None:
        self.root, self.server, self.workflow = root, server, workflow
        (root / "input").mkdir(parents=True)
        (root / "workflows").mkdir()
        for name, text in DOCUMENTS.items():
            self.write(name, text)
        for name, steps in {"short": SHORT, "whole": WHOLE}.items():
            (root / "workflows" / f"{name}.yaml").write_text(yaml.safe_dump(steps), "utf-8")

    def write(self, name: str, text: str) -> None:
        (self.root / "input" / name).write_text(text, encoding="utf-8")

    def settings(self, extract_graph: Mapping[str, Any]) -> Any:
        settings = {
            "workflow": self.workflow,
            "models": {"chat": {"model": "test-model", "base_url": self.server.url, "timeout": 5}},
            "finalize_graph": {"layout": False},
            "summarize_descriptions": {"max_tokens_without_call": 0},
            "extract_graph": dict(extract_graph),
        }
        (self.root / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        loaded = load_settings(self.root)
        return loaded.model_copy(update={"output": str(self.root / "output")})

    def n_answered(self) -> int:
        """How many requests have a reply in the ledger."""
        with closing(sqlite3.connect(self.root / "output" / FILE)) as ledger:
            query = "SELECT count(*) FROM requests WHERE state = 'done'"
            n: int = ledger.execute(query).fetchone()[0]
            return n

    def run(self, retry: bool = False, **extract_graph: Any) -> Counter[str]:
        """Run; returns how many requests of each kind were sent."""
        settings = self.settings(extract_graph)
        workflow = load_workflow(self.root, self.workflow)
        n_before = len(self.server.requests)
        with closing(open_models(workflow, settings, self.root)) as models:
            if retry:
                models.reopen_requests(SHORT)
            self.result: RunResult = run_workflow(
                workflow,
                settings,
                self.root,
                make_services(settings, models, self.root),
                RunSetup(models=models),
            )
        self.asked = [
            asked for asked in self.server.requests[n_before:] if "chat" in asked.path
        ]  # fmt: skip
        formats = (asked.json["response_format"]["json_schema"]["name"] for asked in self.asked)
        return Counter(formats)

    def extractions(self) -> list[ChatRequest]:
        """What the last run asked of text units."""
        requests = [ChatRequest(asked.json) for asked in self.asked]
        return [r for r in requests if "entities" in (r.schema or {}).get("properties", {})]

    def table(self, name: str) -> pl.DataFrame:
        return read_table(self.root, name)

    @property
    def titles(self) -> list[str]:
        return self.table("extracted_entities")["title"].to_list()

    def types(self) -> dict[str, str]:
        return dict(self.table("extracted_entities").select("title", "type").iter_rows())

    def links(self) -> list[tuple[str, str, str]]:
        """Source, target and type of each relationship."""
        titles = self.titles
        rows = self.table("extracted_relationships").select("source", "target", "type").iter_rows()
        return sorted((titles[source], titles[target], kind) for source, target, kind in rows)

    def bytes(self) -> dict[str, bytes]:
        store, version = open_index(self.root / "output")
        return {
            name: (store.output / table.file).read_bytes()
            for name, table in version.tables.items()
            # This one tells by which requests it was found, too.
            if table.file and name != "text_unit_findings"
        }  # fmt: skip

    @property
    def quarantined(self) -> int:
        return sum(record.quarantined for record in self.result.version.steps)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(answer=answer) as server:
        yield server


PEOPLE = {"entity_types": ["person", "organization"]}
PLACES = {"entity_types": ["person", "organization", "place"]}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Path:
    """An index of people and organizations; tests work on copies."""
    project = Project(tmp_path_factory.mktemp("schema") / "people", server, "whole")
    assert project.run(**PEOPLE)["extraction"] == 3
    return project.root


@pytest.fixture
def project(people: Path, tmp_path: Path, server: Server) -> Project:
    project = Project(tmp_path / "copy", server)
    shutil.copytree(people / "output", project.root / "output")
    return project


def test_an_added_type_is_asked_for_alone(project: Project) -> None:
    project.workflow = "whole"
    before = project.table("entities")
    assert set(before["type"]) == {"person", "organization"}
    asked = project.run(**PLACES)
    assert asked["extraction"] == len(project.extractions()) == 3
    assert asked["claims"] == 0
    for request in project.extractions():
        assert wanted_types(request.texts[0])[0] == ["place"]
        assert "- Ada Byron (person)" in request.texts[1]
    entities = project.table("entities")
    assert set(entities["title"]) - set(before["title"]) == {"London", "Turin"}
    links = project.table("relationships").select("source", "target", "type").rows()
    assert ("Charles Babbage", "Turin", "visits") in links
    # What was known has the descriptions that it had.
    kept = entities.filter(pl.col("title").is_in(before["title"].to_list()))
    assert kept["description"].to_list() == before["description"].to_list()
    assert asked["description"] == 1  # of London: two text units tell of it
    assert project.run(**PLACES).total() == 0


def test_a_type_that_is_taken_out_and_put_back_costs_no_extraction(project: Project) -> None:
    people = project.bytes()
    project.run(**PLACES)
    both = project.bytes()
    assert project.run(**PEOPLE).total() == 0
    assert project.bytes() == {name: people[name] for name in both}
    assert project.run(**PLACES).total() == 0
    assert project.bytes() == both
    # A type that was asked for in the first request.
    project.workflow = "whole"
    asked = project.run(entity_types=["person", "place"])
    assert asked["extraction"] == asked["claims"] == 0
    entities, links = project.table("entities"), project.table("relationships")
    assert set(entities["type"]) == {"person", "place"}
    assert set(links["source"]) | set(links["target"]) <= set(entities["title"])
    units = project.table("text_units")
    assert set(units["entity_ids"].explode().drop_nulls()) == set(entities["id"])
    assert set(units["relationship_ids"].explode().drop_nulls()) == set(links["id"])
    assert project.table("mentions")["entity"].max() == len(entities) - 1
    reports = " ".join(project.table("community_reports")["full_content"])
    assert "Ada Byron occurs" in reports
    assert "Royal Society occurs" not in reports
    assert "knows" in reports
    assert "Royal Society knows" not in reports
    project.workflow = "short"
    assert project.run(**PLACES).total() == 0
    assert project.bytes() == both


def test_neither_order_nor_spelling_of_types_asks_again(project: Project) -> None:
    project.run(**PEOPLE)
    before = project.bytes()
    assert project.run(entity_types=["organization", "person"]).total() == 0
    assert project.bytes() == before
    assert project.run(entity_types=["Organization", "person"])["extraction"] == 0
    assert set(project.types().values()) == {"person", "Organization"}


def test_new_text_is_asked_once_for_all_types_and_old_text_for_what_it_lacks(
    project: Project,
) -> None:
    project.run(**PLACES)
    project.write("letter.txt", "Ada Byron wrote from Turin to the Royal Society.")
    assert project.run(**PLACES)["extraction"] == 1
    assert wanted_types(project.extractions()[0].texts[0])[0] == PLACES["entity_types"]
    assert "Known entities" not in project.extractions()[0].texts[1]
    # From different paths, each goes on with the one type.
    every = {"entity_types": [*PLACES["entity_types"], "event"]}
    assert project.run(**every)["extraction"] == 4
    assert {str(wanted_types(request.texts[0])[0]) for request in project.extractions()} == {
        "['event']"
    }
    assert "Great Exhibition" in project.titles
    grown = project.bytes()
    # Asked in another place with no memory, the graph is the same, though not its replies.
    fresh = Project(project.root.parent / "fresh", project.server)
    fresh.write("letter.txt", "Ada Byron wrote from Turin to the Royal Society.")
    assert fresh.run(**every)["extraction"] == 4
    assert project.types() == fresh.types()
    assert project.links() == fresh.links()
    # With the ledger alone, every reply is found, and every table is the same to the byte.
    for path in (project.root / "output").iterdir():
        if not path.name.startswith(FILE):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert project.run(**every).total() == 0
    assert project.bytes() == grown


def test_a_relationship_type_is_added_between_known_entities(project: Project) -> None:
    knows = {**PEOPLE, "relationship_types": ["knows"]}
    # A list where whatever fitted was asked for is another question.
    assert project.run(**knows)["extraction"] == 3
    assert {kind for _, _, kind in project.links()} == {"knows"}
    before = project.bytes()
    asked = project.run(**PEOPLE, relationship_types=["knows", "belongs to"])
    assert (asked["extraction"], asked["claims"]) == (3, 0)
    assert [wanted_types(r.texts[0])[1] for r in project.extractions()] == [["belongs to"]] * 3
    assert project.links() == [
        ("Charles Babbage", "Ada Byron", "knows"),
        ("Charles Babbage", "Royal Society", "belongs to"),
        ("Royal Society", "Ada Byron", "knows"),
    ]
    assert project.run(**knows).total() == 0
    assert project.bytes() == before


def test_a_request_for_added_types_that_fails_costs_these_types_alone(project: Project) -> None:
    texts = list(DOCUMENTS.values())
    with Server(answer=answer, faults=Faults(by_text={quote_text(texts[2]): "refusal"})) as bad:
        project.server = bad
        assert project.run(**PLACES)["extraction"] == 3
        assert project.quarantined == 1
        titles = set(project.titles)
        assert "London" in titles
        assert "Turin" not in titles
        assert {"Charles Babbage", "Ada Byron"} <= titles
        # Without the type nothing is missing.
        assert project.run(**PEOPLE).total() == 0
        assert project.quarantined == 0
        assert project.run(**PLACES).total() == 0
        assert project.quarantined == 1
        bad.faults = Faults()
        assert project.run(retry=True, **PLACES)["extraction"] == 1
        assert project.quarantined == 0
        assert "Turin" in project.titles


def test_what_a_killed_run_was_answered_is_not_asked_again(project: Project) -> None:
    n_before = project.n_answered()
    with Server(answer=answer, latency=0.2) as slow:
        project.server = slow
        project.settings(PLACES)
        one_by_one = ("--set", "models.chat.concurrency=1")
        with start(project.root, "run", *one_by_one) as process:
            # One is answered and noted, the next is on its way.
            wait_for(lambda: project.n_answered() == n_before + 1, process)
            wait_for(lambda: sum("chat" in asked.path for asked in slow.requests) == 2, process)
            process.kill()
            process.communicate()
        slow.latency = 0
        assert project.run(**PLACES)["extraction"] == 2
        answered = [ChatRequest(a.json) for a in slow.requests if a.status == 200 and a.body]
        assert [wanted_types(request.texts[0])[0] for request in answered] == [["place"]] * 3
        assert "Turin" in project.titles


def test_gleanings_follow_each_question(project: Project) -> None:
    # What was missed of people first, and then of places.
    assert project.run(**PEOPLE, max_gleanings=1)["extraction"] == 3
    before = project.bytes()
    assert project.run(**PLACES, max_gleanings=1)["extraction"] == 6
    assert {len(request.messages) for request in project.extractions()} == {2, 4}
    assert project.run(**PEOPLE, max_gleanings=1).total() == 0
    assert project.bytes() == before


def test_an_estimate_counts_the_new_requests_alone(project: Project) -> None:
    settings = project.settings(PLACES)
    ledger = (project.root / "output" / FILE).read_bytes()
    said = estimate(load_workflow(project.root, "short"), settings, project.root, 100)
    assert said is not None
    line = {line.step: line for line in said.lines}
    assert (line["extract_graph"].n_answered, line["extract_graph"].n_to_ask) == (3, 3)
    assert (line["extract_covariates"].n_answered, line["extract_covariates"].n_to_ask) == (3, 0)
    assert (project.root / "output" / FILE).read_bytes() == ledger
    assert project.run(**PLACES)["extraction"] == 3
