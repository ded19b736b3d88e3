"""An index of any size, made directly as tables: no documents are read and nothing is embedded.

Entities belong to topics of a hundred, and text units name mostly those of one topic; some
entities are named everywhere. Vectors lie around those of their topics. Documents are reports of
companies on eight quarters.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import BaseModel

from graphrag_index.llm.local.static_model import load_static_model
from graphrag_index.pipeline.run import run_workflow
from graphrag_index.pipeline.workflow import Workflow
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import step
from graphrag_index.steps.generate_text_embeddings import create_search_tables
from graphrag_nlp.list_columns import gather_lists

# For each entity of the index.
RELATIONSHIPS, MENTIONS = 5, 10
ENTITIES_OF_TOPIC, TEXT_UNITS_OF_TOPIC, TEXT_UNITS_OF_DOCUMENT = 100, 50, 8
MENTIONS_OF_TEXT_UNIT = MENTIONS * ENTITIES_OF_TOPIC // TEXT_UNITS_OF_TOPIC
CHARS_OF_TEXT_UNIT = 600
# That of the model that embeds the questions.
DIMENSIONS = load_static_model().dimension
WORDS = 40_000
# Share of mentions and relationships that leave their topic.
ABROAD = 0.15
QUARTERS = [f"Q{quarter} {year}" for year in (2021, 2022) for quarter in (1, 2, 3, 4)]
BATCH = 8_192
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstv" for vowel in "aeo"]

# What an export of the graph reads, and characters that its forms must escape.
OF_A_GRAPH = (
    *("documents", "text_units", "entities", "relationships", "communities"),
    "community_reports",
)
MARKS = pl.lit(' "quoted" & <marked>;\n')

Frames = Iterator[dict[str, pl.DataFrame]]


class MakeTables(BaseModel):
    """How large the index is; `n_entities` is a multiple of 1,000."""

    n_entities: int = 10_000
    seed: int = 0


def make_index(project: Path, n_entities: int) -> dict[str, Any]:
    """Write an index to `output` below a folder; return what its steps cost."""
    settings = Settings(steps={"make_tables": {"n_entities": n_entities}})
    workflow = Workflow("synthetic", (make_tables, create_search_tables))
    version = run_workflow(workflow, settings, project, {}).version
    return {record.name: record for record in version.steps}


@step(
    writes=[
        *("documents", "text_units", "entities", "relationships", "mentions", "communities"),
        *("community_reports", "text_unit_text", "text_unit_vectors"),
        *("entity_description", "community_full_content"),
    ]
)
def make_tables(*, settings: MakeTables) -> Frames:
    """Write every table that searches and `create_search_tables` read."""
    make = _Maker(settings)
    yield from make.text_units()
    yield from make.entities()
    yield from make.relationships()
    yield from make.communities()


def title_of(entity: int) -> str:
    """Give twenty entities one surname, each with another first name."""
    return f"{_name(entity % 20 + entity // 20 % 50 * 20, 2)} {_name(entity // 20, 4)}"


def company_of(document: int) -> str:
    """Name the company of a document; the next ones are of its other quarters."""
    return f"{_name(document // len(QUARTERS) + 1, 5)} Holdings"


def _name(number: int, least: int) -> str:
    syllables = []
    while number or len(syllables) < least:
        number, at = divmod(number, len(SYLLABLES))
        syllables.append(SYLLABLES[at])
    return "".join(syllables).capitalize()


class _Maker:
    def __init__(self, settings: MakeTables) -> None:
        self.n_entities = settings.n_entities
        self.n_topics = self.n_entities // ENTITIES_OF_TOPIC
        self.n_text_units = self.n_topics * TEXT_UNITS_OF_TOPIC
        self.random = np.random.default_rng(settings.seed)
        self.topics = self.vectors(np.zeros((self.n_topics, DIMENSIONS), np.float32))
        self.titles = pl.Series("title", [title_of(i) for i in range(self.n_entities)])
        self.words = pl.Series([_name(i, 1).lower() for i in range(WORDS)])
        self.degree = np.zeros(self.n_entities, np.int64)
        self.frequency = np.zeros(self.n_entities, np.int64)

    def vectors(self, around: Any) -> Any:
        """Draw vectors of length 1 whose cosine with what they lie around is about 0.7."""
        noise = self.random.standard_normal(around.shape, np.float32) / DIMENSIONS**0.5
        vectors = around + noise
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def ids(self, kind: str, numbers: Any) -> pl.Series:
        return pl.select(
            pl.lit(kind) + pl.Series(numbers).cast(pl.String).str.zfill(31)
        ).to_series()

    def entities_of(self, topics: Any) -> Any:
        """Draw an entity for each topic, mostly from it and the first of it most often."""
        n = len(topics)
        inside = (self.random.random(n) ** 2 * ENTITIES_OF_TOPIC).astype(np.int64)
        found = topics * ENTITIES_OF_TOPIC + inside
        # The popular are popular everywhere, but no entity is in every text unit.
        abroad = (self.random.random(n) ** 3 * self.n_entities).astype(np.int64)
        leaves = self.random.random(n) < ABROAD
        return np.where(leaves, abroad * 7919 % self.n_entities, found)

    def sentences(self, n: int, n_words: int) -> pl.Series:
        """Draw texts of words, some of which are common."""
        at = (self.random.random(n * n_words) ** 3 * WORDS).astype(np.int64)
        owners = np.repeat(np.arange(n), n_words)
        return gather_lists(owners, self.words.gather(at), n).list.join(" ")

    def text_units(self) -> Frames:
        for start in range(0, self.n_text_units, BATCH):
            number = np.arange(start, min(start + BATCH, self.n_text_units))
            # The text units of a topic lie apart.
            topic = number % self.n_topics
            unit = np.repeat(number, MENTIONS_OF_TEXT_UNIT)
            entity = self.entities_of(np.repeat(topic, MENTIONS_OF_TEXT_UNIT))
            self.frequency += np.bincount(entity, minlength=self.n_entities)
            n = len(number)
            named = entity.reshape(n, -1)[:, :5].ravel()
            names = gather_lists(np.repeat(np.arange(n), 5), self.titles.gather(named), n)
            text = names.list.join(", ") + ": " + self.sentences(n, 60)
            document = number // TEXT_UNITS_OF_DOCUMENT
            first = number % TEXT_UNITS_OF_DOCUMENT * CHARS_OF_TEXT_UNIT
            place = np.tile(np.arange(MENTIONS_OF_TEXT_UNIT) * 25, n)
            start_char = np.repeat(first, MENTIONS_OF_TEXT_UNIT) + place
            shown = pl.DataFrame(
                {
                    "id": self.ids("t", number),
                    "human_readable_id": number,
                    "document_id": self.ids("d", document),
                    "text": text,
                    "headings": [""] * n,
                    "metadata": pl.Series([None] * n, dtype=pl.String),
                }
            )
            embedded = shown.with_columns(self.vector(topic))
            yield {
                "mentions": pl.DataFrame(
                    {
                        "entity": entity.astype(np.int32),
                        "text_unit": unit.astype(np.int32),
                        "start_char": start_char.astype(np.int32),
                        "end_char": (start_char + 12).astype(np.int32),
                    }
                ),
                "text_units": self.fill(
                    "text_units",
                    shown.with_columns(
                        pl.Series("start_char", first),
                        pl.Series("end_char", first + CHARS_OF_TEXT_UNIT),
                        n_tokens=pl.lit(150),
                        reading=pl.lit(None, pl.String),
                    ),
                ),
                "text_unit_text": embedded,
                "text_unit_vectors": embedded.select(pl.col("vector").arr.to_list()),
            }
        n_documents = -(-self.n_text_units // TEXT_UNITS_OF_DOCUMENT)
        number = np.arange(n_documents)
        title = [f"{company_of(i)} {QUARTERS[i % len(QUARTERS)]} report" for i in number.tolist()]
        documents = pl.DataFrame(
            {"id": self.ids("d", number), "human_readable_id": number, "title": title}
        ).with_columns(path=pl.col("title") + ".md", language=pl.lit("en"))
        yield {"documents": self.fill("documents", documents)}

    def entities(self) -> Frames:
        # Degrees are counted here, as relationships are drawn again from the same seed later.
        for source, target in self.pairs():
            self.degree += np.bincount(source, minlength=self.n_entities)
            self.degree += np.bincount(target, minlength=self.n_entities)
        for start in range(0, self.n_entities, BATCH):
            number = np.arange(start, min(start + BATCH, self.n_entities))
            part = slice(start, start + len(number))
            shown = pl.DataFrame(
                {
                    "id": self.ids("e", number),
                    "human_readable_id": number,
                    "title": self.titles[part],
                    "type": ["person"] * len(number),
                    "description": self.sentences(len(number), 12),
                    "degree": self.degree[part],
                    "frequency": self.frequency[part],
                }
            )
            text = pl.col("title") + ":" + pl.col("description")
            columns = list(TABLES["entity_description"].columns)
            yield {
                "entities": self.fill("entities", shown),
                "entity_description": shown.with_columns(
                    self.vector(number // ENTITIES_OF_TOPIC), text=text
                ).select(columns),
            }

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """Draw the ends of the relationships, the same at every call."""
        kept, self.random = self.random, np.random.default_rng(1)
        for start in range(0, self.n_entities, BATCH):
            source = np.repeat(np.arange(start, min(start + BATCH, self.n_entities)), RELATIONSHIPS)
            target = self.entities_of(source // ENTITIES_OF_TOPIC)
            target = np.where(target == source, (target + 1) % self.n_entities, target)
            yield source, target
        self.random = kept

    def relationships(self) -> Frames:
        first = 0
        for source, target in self.pairs():
            n = len(source)
            number = np.arange(first, first + n)
            first += n
            unit = source // ENTITIES_OF_TOPIC + number % TEXT_UNITS_OF_TOPIC * self.n_topics
            place = (unit % TEXT_UNITS_OF_DOCUMENT * CHARS_OF_TEXT_UNIT).astype(np.int64)
            evidence = pl.DataFrame(
                {
                    "document_id": self.ids("d", unit // TEXT_UNITS_OF_DOCUMENT),
                    "start_char": place,
                    "end_char": place + 100,
                }
            ).to_struct()
            owners = np.arange(n)
            rows = pl.DataFrame(
                {
                    "id": self.ids("r", number),
                    "human_readable_id": number,
                    "source": self.titles.gather(source),
                    "target": self.titles.gather(target),
                    "source_id": self.ids("e", source),
                    "target_id": self.ids("e", target),
                    "description": self.sentences(n, 12),
                    "weight": self.random.random(n) + 0.1,
                    "text_unit_ids": gather_lists(owners, self.ids("t", unit), n),
                    "evidence": gather_lists(owners, evidence, n),
                    "combined_degree": self.degree[source] + self.degree[target],
                }
            )
            yield {"relationships": self.fill("relationships", rows)}

    def communities(self) -> Frames:
        """Write three levels of communities of 1,000, 100 and 10, and a report on each."""
        sizes = (1_000, 100, 10)
        counts = [self.n_entities // size for size in sizes]
        firsts = [0, counts[0], counts[0] + counts[1], sum(counts)]
        for level, (size, count) in enumerate(zip(sizes, counts, strict=True)):
            at_once = max(1, BATCH * 10 // size)
            for start in range(0, count, at_once):
                within = np.arange(start, min(start + at_once, count))
                n = len(within)
                members = np.arange(within[0] * size, (within[-1] + 1) * size)
                owners = np.repeat(np.arange(n), size)
                children = np.arange(within[0] * 10, (within[-1] + 1) * 10) + firsts[level + 1]
                lists = gather_lists(np.repeat(np.arange(n), 10), pl.Series(children), n)
                number = within + firsts[level]
                parent = within // 10 + firsts[level - 1] if level else np.full(n, -1)
                yield {
                    "communities": self.fill(
                        "communities",
                        pl.DataFrame(
                            {
                                "id": self.ids("c", number),
                                "human_readable_id": number,
                                "community": number,
                                "level": [level] * n,
                                "parent": parent,
                                "children": lists if level < 2 else [[]] * n,
                                "title": [f"Community {i}" for i in number],
                                "entity_ids": gather_lists(owners, self.ids("e", members), n),
                                "size": [size] * n,
                            }
                        ),
                    )
                }
        for level in (2, 1, 0):
            for start in range(firsts[level], firsts[level + 1], BATCH):
                number = np.arange(start, min(start + BATCH, firsts[level + 1]))
                first_member = (number - firsts[level]) * sizes[level]
                summary = self.sentences(len(number), 40)
                reports = pl.DataFrame(
                    {
                        "id": self.ids("s", number),
                        "human_readable_id": number,
                        "community": number,
                        "level": [level] * len(number),
                        "title": self.titles.gather(first_member),
                        "summary": summary,
                        "full_content": summary,
                        "rank": self.random.random(len(number)) * 10,
                        "size": [sizes[level]] * len(number),
                    }
                )
                columns = list(TABLES["community_full_content"].columns)
                yield {
                    "community_reports": self.fill("community_reports", reports),
                    "community_full_content": reports.with_columns(
                        self.vector(first_member // ENTITIES_OF_TOPIC), text="full_content"
                    ).select(columns),
                }

    def vector(self, topics: Any) -> pl.Series:
        dtype = pl.Array(pl.Float32, DIMENSIONS)
        return pl.Series("vector", self.vectors(self.topics[topics]), dtype=dtype)

    def fill(self, name: str, rows: pl.DataFrame) -> pl.DataFrame:
        """Add the columns that are not shown: 0, empty or false."""
        table = TABLES[name]
        nothing: list[pl.Series] = []
        for column, dtype in table.schema.items():
            if column not in rows.columns:
                value: Any = [] if isinstance(dtype, pl.List) else 0
                value = "" if dtype == pl.String else value
                value = False if dtype == pl.Boolean else value
                nothing.append(
                    pl.Series(column, [value], dtype=dtype).new_from_index(0, rows.height)
                )
        return rows.with_columns(nothing).select(list(table.columns))


def make_graph_index(project: Path, n_entities: int) -> None:
    """Write an index that has tables and no vectors; `n_entities` is a multiple of 1,000."""
    settings = Settings(steps={"make_graph": {"n_entities": n_entities}})
    run_workflow(Workflow("graph", (make_graph,)), settings, project, {})


@step(writes=list(OF_A_GRAPH))
def make_graph(*, settings: MakeTables) -> Frames:
    """Write what an export reads."""
    make = _GraphMaker(settings)
    for frames in make.parts():
        yield {name: rows for name, rows in frames.items() if name in OF_A_GRAPH}


class _GraphMaker(_Maker):
    """Makes no vectors, and links entities to the text units of their topics."""

    def parts(self) -> Iterator[dict[str, pl.DataFrame]]:
        yield from self.text_units()
        yield from self.entities()
        yield from self.relationships()
        yield from self.communities()

    def vectors(self, around: Any) -> Any:
        return around[:, :1]

    def vector(self, topics: Any) -> pl.Series:
        return pl.Series("vector", np.zeros((len(topics), 1)), dtype=pl.Array(pl.Float32, 1))

    def fill(self, name: str, rows: pl.DataFrame) -> pl.DataFrame:
        filled = super().fill(name, rows)
        if name == "relationships":
            return filled.with_columns(pl.col("description") + MARKS)
        if name != "entities":
            return filled
        number = np.repeat(filled["human_readable_id"].to_numpy(), MENTIONS)
        nth = np.tile(np.arange(MENTIONS), filled.height)
        topic = number // ENTITIES_OF_TOPIC
        unit = topic + (number + nth) % TEXT_UNITS_OF_TOPIC * self.n_topics
        owners = np.repeat(np.arange(filled.height), MENTIONS)
        return filled.with_columns(
            pl.col("description") + MARKS,
            gather_lists(owners, self.ids("t", unit), filled.height).alias("text_unit_ids"),
        )
