from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_index.llm.prompts import Prompts, quote_text
from graphrag_index.llm.request import ReplyError, Request
from graphrag_index.schema.settings.step_sections import ExtractCovariates
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import SerialShards, Silent
from graphrag_index.steps.extract_covariates import (
    Claim,
    extract_covariates,
    locate_evidence,
    read_claims,
)
from graphrag_index.steps.finalize_graph import link_text_units
from graphrag_index.storage.memo import join_batches
from tests.fixtures.fake_model import EarlierTables, FakeChatModel, KeepingModel
from tests.fixtures.small_index import table

TEXTS = (
    "Scott was late.\nAmundsen was said to have lied about\nhis plans. Nobody asked him.",
    "The crew ate the dogs.",
)


def claim(subject: str = "Scott", **other: object) -> dict[str, object]:
    return {
        "subject": subject,
        "object": None,
        "type": "delay",
        "status": "TRUE",
        "start_date": "1912-01",
        "end_date": None,
        "description": f"{subject} was late.",
        "source_text": "Scott was late.",
        **other,
    }


LIED = claim(
    "Amundsen",
    object="the public",
    type="deceit",
    status="SUSPECTED",
    description="Amundsen may have lied about his plans.",
    source_text="Amundsen was said to have lied about his plans.",
)


def by_text(**answers: Any) -> Callable[[Request], Any]:
    """Answer by the word that the passage holds."""

    def answer(request: Request) -> Any:
        text = request.messages[1]["content"]
        return next(reply for word, reply in answers.items() if word in text)

    return answer


def run(
    answer: Callable[[Request], Any], *texts: str, **settings: Any
) -> tuple[pl.DataFrame, list[Request]]:
    tables, asked = extract(FakeChatModel(answer), *texts, **settings)
    return tables["covariates"], asked


def extract(
    model: FakeChatModel,
    *texts: str,
    earlier: Mapping[str, pl.DataFrame] | None = None,
    **settings: Any,
) -> tuple[Mapping[str, pl.DataFrame], list[Request]]:
    model.asked.clear()
    batches = extract_covariates(
        text_units(*(texts or TEXTS)).lazy(),
        table("documents", {"id": "d", "path": "log.txt", "title": "Log"}).lazy(),
        settings=ExtractCovariates(**settings),
        chat_model=model,
        prompts=Prompts(Path("nowhere")),
        previous=EarlierTables(earlier),
        progress=Silent(),
    )
    assert isinstance(batches, Iterator)
    return join_batches(batches), model.asked


def text_units(*texts: str) -> pl.DataFrame:
    rows = (
        {"id": f"t{i}", "human_readable_id": i, "text": text, "document_id": "d", "end_char": 9}
        for i, text in enumerate(texts)
    )
    return table("base_text_units", *rows)


def test_claims_are_rows_in_the_order_of_the_text() -> None:
    dogs = claim("the crew", source_text="The crew ate the dogs.", description="They ate dogs.")
    claims, asked = run(by_text(Scott={"claims": [LIED, claim()]}, dogs={"claims": [dogs]}))
    assert claims.schema == TABLES["covariates"].schema
    assert claims["human_readable_id"].to_list() == [0, 1, 2]
    assert claims["subject_id"].to_list() == ["Scott", "Amundsen", "the crew"]
    assert claims["text_unit_id"].to_list() == ["t0", "t0", "t1"]
    assert claims["id"].n_unique() == 3
    assert claims.drop("id").row(1, named=True) == {
        "human_readable_id": 1,
        "covariate_type": "claim",
        "type": "deceit",
        "description": "Amundsen may have lied about his plans.",
        "subject_id": "Amundsen",
        "object_id": "the public",
        "status": "SUSPECTED",
        "start_date": "1912-01",
        "end_date": None,
        # As the text has it.
        "source_text": "Amundsen was said to have lied about\nhis plans.",
        "text_unit_id": "t0",
    }
    assert [request.unit for request in asked] == ["log.txt (Log), characters 0 to 9"] * 2


def test_text_units_are_linked_with_their_claims() -> None:
    claims, _ = run(by_text(Scott={"claims": [claim()]}, dogs={"claims": []}))
    none = table("entities").lazy(), table("relationships").lazy()
    batches = link_text_units(
        text_units(*TEXTS).lazy(), *none, claims.lazy(), shards=SerialShards()
    )
    assert isinstance(batches, Iterator)
    (linked,) = batches
    assert isinstance(linked, pl.DataFrame)
    assert linked["covariate_ids"].to_list() == [claims["id"].to_list(), []]


def test_the_wanted_claims_stand_in_the_part_that_is_always_the_same() -> None:
    _, asked = run(lambda _: {"claims": []}, description="who ate what {x} {{y}}")
    first, second = (request.messages[0]["content"] for request in asked)
    assert first == second
    assert "who ate what {x} {{y}}" in first


def test_without_claims_there_is_one_empty_table() -> None:
    claims, _ = run(lambda _: {"claims": []})
    assert claims.is_empty()
    assert claims.schema == TABLES["covariates"].schema


def test_a_failure_costs_its_text_unit_only(caplog: pytest.LogCaptureFixture) -> None:
    claims, _ = run(by_text(Scott=None, dogs={"claims": [claim(source_text="ate the dogs")]}))
    assert claims["text_unit_id"].to_list() == ["t1"]
    # What did not happen is not told: no "0 invalid claims".
    assert caplog.messages == ["Lost: 1 text unit not read to the end"]


def test_a_claim_made_twice_is_one_row() -> None:
    claims, _ = run(lambda _: {"claims": [claim(), claim(), claim("SCOTT ")]}, TEXTS[0])
    assert claims.height == 1


class TestGleanings:
    def test_what_is_gleaned_is_kept(self) -> None:
        def answer(request: Request) -> Any:
            return {"claims": [[claim()], [LIED], []][len(request.messages) // 2 - 1]}

        claims, asked = run(answer, TEXTS[0], max_gleanings=5)
        assert claims["subject_id"].to_list() == ["Scott", "Amundsen"]
        # The last reply brought nothing new, so nothing follows it.
        assert len(asked) == 3
        assert '"subject": "Scott"' in asked[1].messages[2]["content"]

    def test_nothing_is_asked_again_after_an_empty_list_or_by_default(self) -> None:
        _, asked = run(lambda _: {"claims": []}, max_gleanings=2)
        assert len(asked) == len(TEXTS)
        _, asked = run(lambda _: {"claims": [claim()]})
        assert len(asked) == len(TEXTS)

    def test_a_failed_gleaning_costs_what_it_would_have_brought_only(self) -> None:
        def answer(request: Request) -> Any:
            return {"claims": [claim()]} if len(request.messages) == 2 else None

        claims, _ = run(answer, TEXTS[0], max_gleanings=1)
        assert claims["subject_id"].to_list() == ["Scott"]


class TestReply:
    def test_a_bad_record_costs_itself(self) -> None:
        records = [claim(), {}, "prose", None, claim(""), claim("x" * 300), claim(description=" ")]
        reading = read_claims({"claims": records})
        assert [found.subject for found in reading.value] == ["Scott"]
        assert reading.dropped == 6

    def test_lists_single_claims_and_other_keys_are_read(self) -> None:
        record = {"subject_id": "“Scott”", "claim_description": "He\0died.", "claim_status": "true"}
        for data in ([record], {"claims": [record]}, {"covariates": [record]}, record):
            (found,) = read_claims(data).value
            assert (found.subject, found.description, found.status) == ("Scott", "He died.", "TRUE")

    @pytest.mark.parametrize("data", [{}, "no claims", 5, {"claims": "none"}, ["a"], [{}]])
    def test_prose_and_junk_are_refused(self, data: object) -> None:
        with pytest.raises(ReplyError):
            read_claims(data)

    def test_an_empty_list_is_no_error(self) -> None:
        assert read_claims({"claims": []}).value == ()
        assert read_claims([]).value == ()

    @pytest.mark.parametrize("nothing", [None, "", "NONE", "null", "N/A", " Unknown "])
    def test_words_for_nothing_are_nothing(self, nothing: object) -> None:
        (found,) = read_claims([claim(object=nothing, end_date=nothing)]).value
        assert (found.object, found.end_date) == ("", "")

    @pytest.mark.parametrize(
        ("status", "expected"),
        [(True, "TRUE"), ("false", "FALSE"), ("alleged", "SUSPECTED"), (None, "SUSPECTED")],
    )
    def test_every_status_is_one_of_three(self, status: object, expected: str) -> None:
        (found,) = read_claims([claim(status=status)]).value
        assert found.status == expected


def made(source_text: str, description: str = "", subject: str = "Scott") -> Claim:
    return Claim(subject, "", "", "TRUE", "", "", description, source_text)


class TestSourceText:
    text = "Scott was late. The dogs were eaten by\nhis crew. スコットは遅れた。犬は食べられた。"

    def found(self, *parts: str) -> str | None:
        place = locate_evidence(made(*parts), self.text)
        return None if place is None else self.text[slice(*place)]

    def test_a_quotation_is_found_whatever_its_spaces_and_quotation_marks(self) -> None:
        assert self.found("Scott was late.") == "Scott was late."
        assert self.found('"dogs were  eaten by his crew"') == "dogs were eaten by\nhis crew"

    def test_of_several_quotations_the_first_that_is_found_counts(self) -> None:
        assert self.found("He never came. ... The dogs were eaten") == "The dogs were eaten"

    def test_otherwise_the_nearest_sentence_stands_there(self) -> None:
        assert self.found("The crew ate its dogs", "Dogs were eaten") == (
            "The dogs were eaten by\nhis crew."
        )
        assert self.found("", "犬は食べられてしまった", "犬") == "犬は食べられた。"

    def test_what_the_text_does_not_say_at_all_is_nowhere(self) -> None:
        assert self.found("Zzz", "Qqq xxx", "Jjj") is None

    @given(text=st.text(max_size=200), quoted=st.text(max_size=80), told=st.text(max_size=80))
    def test_it_is_always_a_part_of_the_text(self, text: str, quoted: str, told: str) -> None:
        place = locate_evidence(made(quoted, told), text)
        assert place is None or 0 <= place[0] < place[1] <= len(text)


def test_claims_of_text_units_that_are_as_they_were_are_taken_from_the_last_run() -> None:
    dogs = claim("the crew", source_text="The crew ate the dogs.", description="They ate dogs.")
    model = KeepingModel(
        by_text(
            Scott={"claims": [LIED, claim()]}, dogs={"claims": [dogs, {}]}, penguins={"claims": []}
        )
    )
    first, asked = extract(model, *TEXTS)
    assert len(asked) == 2
    assert model.used == []
    second, asked = extract(model, TEXTS[1], "No penguins.", TEXTS[0], earlier=first)
    assert [request.messages[1]["content"] for request in asked] == [
        f"Document: Log\n\nPassage:\n{quote_text('No penguins.')}"
    ]
    # What is taken over rests on its replies as if they had been read.
    assert sorted(model.used) == sorted(
        map(str, first["text_unit_claims"]["request_keys"].explode())
    )
    rebuilt, asked = extract(model, TEXTS[1], "No penguins.", TEXTS[0])
    assert len(asked) == 3
    for name, frame in rebuilt.items():
        assert_frame_equal(second[name], frame)
    assert second["covariates"]["subject_id"].to_list() == ["the crew", "Scott", "Amundsen"]
    # Another wish, or another reply, is read.
    assert len(extract(model, *TEXTS, earlier=first, description="Who lied?")[1]) == 2
    model.kept[first["text_unit_claims"]["request_keys"][1][0]] = {"claims": []}
    third, asked = extract(model, TEXTS[1], earlier=second)
    assert len(asked) == 1
    assert third["covariates"].is_empty()


def test_claims_that_a_failed_request_leaves_out_are_asked_for_again() -> None:
    model = KeepingModel(by_text(Scott=None, dogs={"claims": []}))
    first, _ = extract(model, *TEXTS)
    assert first["text_unit_claims"]["input_hash"].to_list()[0] == ""
    model.function = by_text(Scott={"claims": [claim()]})
    second, asked = extract(model, *TEXTS, earlier=first)
    assert len(asked) == 1
    assert second["covariates"]["subject_id"].to_list() == ["Scott"]


def test_batches_are_of_text_units_however_many_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphrag_index.steps.extract_covariates.BATCH_TEXT_UNITS", 2)
    texts = [f"The crew ate {n} dogs." for n in range(7)]
    model = KeepingModel(lambda _: {"claims": [claim("the crew", source_text="The crew")]})
    some, _ = extract(model, *texts[1:3], texts[6])
    for earlier in (None, some):
        found, _ = extract(model, *texts, earlier=earlier)
        assert found["text_unit_claims"].height == 7
        assert found["covariates"]["text_unit_id"].to_list() == [f"t{n}" for n in range(7)]
        assert found["covariates"]["human_readable_id"].to_list() == list(range(7))
