"""Whatever types were wanted in turn, an index is as if the last had been wanted at once."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.llm.request import Request
from graphrag_index.schema.settings.llm_steps import ExtractGraph
from graphrag_index.step import Silent
from graphrag_index.steps.extract_graph import extract_graph
from tests.fixtures.examples import examples
from tests.fixtures.extraction import LINKS, NAMES, PROMPTS, named_in
from tests.fixtures.fake_model import EarlierTables, FakeChatModel

UNITS = [
    "Ada Byron married William King in London.",
    "Charles Babbage came from Turin to the Great Exhibition in London with Ada Byron.",
    "The Royal Society has Charles Babbage and William King.",
    "In Turin Ada Byron was unknown.",
]


class KeepingModel(FakeChatModel):
    """Keeps what it has answered, as a ledger does."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.kept: dict[str, Any] = {}
        self.facts: dict[str, str] = {}
        # Requests whose replies were not read again.
        self.n_used = 0

    def _answer(self, request: Request) -> Any:
        key = str(request.messages)
        if key not in self.kept:
            texts = [message["content"] for message in request.messages]
            self.kept[key] = named_in(texts)
        return self.kept[key]

    def cached_values(self, request: Request) -> tuple[Any, ...]:
        said = self.kept.get(str(request.messages))
        return (request.format.read(said).value,) if said else ()

    def reply_hashes(self, keys: Iterable[str]) -> list[str]:
        return [json.dumps(self.kept[key]) if key in self.kept else "" for key in keys]

    def mark_used(self, keys: Iterable[str]) -> None:
        self.n_used += len(list(keys))

    def get_meta(self, name: str) -> str | None:
        return self.facts.get(name)

    def set_meta(self, name: str, value: str) -> None:
        self.facts[name] = value


def run(
    model: FakeChatModel,
    n_units: int,
    wanted: ExtractGraph,
    earlier: Mapping[str, pl.DataFrame] | None = None,
) -> dict[str, pl.DataFrame]:
    """Run the step on the first text units, one document each."""
    numbers = range(n_units)
    texts = UNITS[:n_units]
    documents = pl.DataFrame(
        {"id": [f"d{n}" for n in numbers], "title": "", "path": "", "language": "en",
         "metadata": pl.Series([None] * n_units, dtype=pl.String)}
    )  # fmt: skip
    units = pl.DataFrame(
        {"human_readable_id": numbers, "document_id": documents["id"], "start_char": 0,
         "end_char": [len(text) for text in texts], "text": texts, "headings": ""}
    )  # fmt: skip
    tables = extract_graph(
        units.lazy(), documents.lazy(), settings=wanted, chat_model=model, prompts=PROMPTS,
        previous=EarlierTables(earlier), progress=Silent(),
    )  # fmt: skip
    assert isinstance(tables, dict)
    return tables


def graph(tables: dict[str, pl.DataFrame]) -> tuple[Any, Any]:
    """What is known of each entity and relationship, by name."""
    entities = tables["extracted_entities"]
    titles = entities["title"].to_list()
    told = entities.select("title", "type", "text_units", pl.col("descriptions").list.sort())
    links = tables["extracted_relationships"].select(
        pl.col("source", "target").replace_strict(dict(enumerate(titles)), return_dtype=pl.String),
        "type", "weight", "descriptions", "text_units",
    )  # fmt: skip
    return sorted(told.rows()), sorted(links.rows())


wishes = st.builds(
    ExtractGraph,
    entity_types=st.lists(st.sampled_from(sorted(set(NAMES.values()))), unique=True),
    relationship_types=st.lists(
        st.sampled_from(sorted({kind for _, _, kind in LINKS})), unique=True
    ),
    strict=st.booleans(),
)


@examples(20)
@given(st.lists(st.tuples(st.integers(1, len(UNITS)), wishes), min_size=1, max_size=5))
def test_types_and_text_come_and_go_and_the_graph_is_that_of_the_last(
    changes: list[tuple[int, ExtractGraph]],
) -> None:
    model = KeepingModel()
    grown: dict[str, pl.DataFrame] = {}
    for n_units, wanted in changes:
        n_before = len(model.kept)
        grown = run(model, n_units, wanted, grown)
        # One request for each text unit at most.
        assert len(model.kept) - n_before <= n_units
    n_units, wanted = changes[-1]
    assert graph(grown) == graph(run(KeepingModel(), n_units, wanted))
    # From the replies alone the tables are the same, and nothing is asked.
    n_kept = len(model.kept)
    again = run(model, n_units, wanted)
    assert len(model.kept) == n_kept
    assert all(again[name].equals(grown[name]) for name in grown)
    # And so they are from what was found before.
    taken = run(model, n_units, wanted, again)
    assert all(again[name].equals(taken[name]) for name in again)


def test_a_type_that_is_taken_out_does_not_come_in_with_new_text() -> None:
    model = KeepingModel()
    people = ExtractGraph(entity_types=["person"])
    tables = run(model, 1, ExtractGraph(entity_types=["person", "place"]))
    assert "London" in tables["extracted_entities"]["title"].to_list()
    # A model that gives places although nobody asks for them.
    model.answer = lambda request: named_in(
        [request.messages[0]["content"].replace("one of: person", "one of: place, person"),
         request.messages[1]["content"]]
    )  # fmt: skip
    titles = run(model, len(UNITS), people)["extracted_entities"]["title"].to_list()
    assert sorted(titles) == ["Ada Byron", "Charles Babbage", "William King"]
    # Where it never was in the list, it is the model's own.
    model.facts.clear()
    assert "Turin" in run(model, len(UNITS), people)["extracted_entities"]["title"].to_list()
