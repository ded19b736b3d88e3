"""What a step's signature says."""

from typing import Any

import polars as pl
import pytest
from pydantic import BaseModel

from graphrag_index.errors import WorkflowError
from graphrag_index.schema.tables import TABLES, Table
from graphrag_index.step import Read, step

WORDS = Table("words", "one word", "the word", {"word": pl.String})


class Redact(BaseModel):
    """Settings of a step of one's own."""

    words: list[str] = []


def test_positional_parameters_are_tables_and_keywords_are_services() -> None:
    @step(writes=["documents", WORDS], code_version=3)
    def redact(
        loaded_documents: pl.LazyFrame,
        entities: pl.DataFrame,
        covariates: pl.LazyFrame | None = None,
        words=None,  # type: ignore[no-untyped-def]
        *,
        settings: Redact,
        progress: object,
    ) -> dict[str, pl.DataFrame]:
        return {}

    assert redact.name == "redact"
    assert redact.reads == (
        Read("loaded_documents", optional=False, lazy=True),
        Read("entities", optional=False, lazy=False),
        Read("covariates", optional=True, lazy=True),
        Read("words", optional=True, lazy=False),
    )
    assert redact.writes == (TABLES["documents"], WORDS)
    assert redact.services == ("settings", "progress")
    assert redact.settings_model is Redact
    assert redact.code_version == 3
    assert redact.fingerprint is None


def test_settings_without_a_model_are_the_plain_values() -> None:
    @step(writes=[WORDS])
    def list_words(*, settings: dict[str, str]) -> pl.DataFrame:
        return WORDS.empty()

    assert list_words.settings_model is None
    assert list_words.services == ("settings",)


def test_a_step_can_be_called_as_the_function_that_it_is() -> None:
    @step(writes=[WORDS])
    def list_words(documents: pl.DataFrame, *, settings: Redact) -> pl.DataFrame:
        return documents.select(word="title").filter(~pl.col("word").is_in(settings.words))

    titles = pl.DataFrame({"title": ["a", "b"]})
    found = list_words(titles, settings=Redact(words=["a"]))
    assert isinstance(found, pl.DataFrame)
    assert found["word"].to_list() == ["b"]


@pytest.mark.parametrize(("writes", "shown"), [("documents", "'documents'"), (WORDS, "...")])
def test_one_table_in_place_of_a_list_is_refused(writes: Any, shown: str) -> None:
    def redact() -> None: ...

    with pytest.raises(WorkflowError) as caught:
        step(writes=writes)(redact)
    assert str(caught.value) == (
        "Step redact: writes must be a list of tables, "
        f"`@step(writes=[{shown}])`, also if it is one."
    )


def test_a_table_that_nobody_defined_is_refused() -> None:
    declare = step(writes=["docments"])

    def redact() -> None: ...

    with pytest.raises(WorkflowError) as caught:
        declare(redact)
    assert str(caught.value) == (
        "Step redact writes the unknown table 'docments': "
        "give a Table with its columns instead of a name."
    )
