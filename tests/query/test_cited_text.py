from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import graphrag_query
from graphrag_query.cited_text import CitedText
from graphrag_query.knowledge_model import KnowledgeModel


@pytest.fixture(scope="module")
def model(sample_project: Path) -> KnowledgeModel:
    return graphrag_query.open(sample_project / "output").model


@pytest.fixture(scope="module")
def crean(model: KnowledgeModel) -> int:
    """The text unit that tells where Tom Crean was born."""
    found = model.scan("text_units").filter(pl.col("text").str.contains("near Annascaul"))
    return int(found.select("human_readable_id").collect().item(0, 0))


def checked(model: KnowledgeModel, text: str, **shown: set[int]) -> tuple[str, CitedText]:
    cited = CitedText(model, shown)
    return cited.feed(text, is_last=True), cited


def test_a_citation_leads_to_the_sentence_that_says_it(model: KnowledgeModel, crean: int) -> None:
    written = f"Crean was born on a farm near Annascaul [Data: Sources ({crean})]."
    text, cited = checked(model, written, Sources={crean})
    assert text == "Crean was born on a farm near Annascaul [1]."
    [citation] = cited.citations
    assert citation.quote.startswith("Crean was born in 1877 on a farm near Annascaul")
    assert citation.cited_as == f"Sources ({crean})"
    documents = model.scan("documents").filter(pl.col("id") == citation.document_id)
    whole = documents.select("text").collect().item()
    assert whole[citation.start_char : citation.end_char] == citation.quote


@pytest.mark.parametrize(
    ("citation", "expected", "n_removed"),
    [
        (" [Data: Sources (999999)]", "", 1),
        (" [Data: Reports (4); Sources (0, 999999)]", " [1]", 2),
        (" [0]", " [1]", 0),
        (" [^0]", " [1]", 0),
        (" [0, 7]", " [1]", 1),
        (" [12345]", "", 1),
        (" [see](http://example.org)", " [see](http://example.org)", 0),
        (" [sic]", " [sic]", 0),
        (" [Data: nothing]", "", 0),
        (" [Data：Sources（0）]", " [1]", 0),
    ],
)
def test_what_was_not_shown_is_removed_and_counted(
    model: KnowledgeModel, citation: str, expected: str, n_removed: int
) -> None:
    text, cited = checked(model, f"A statement{citation}.", Sources={0})
    assert text == f"A statement{expected}."
    assert cited.n_removed == n_removed


def test_the_same_passage_keeps_its_number(model: KnowledgeModel, crean: int) -> None:
    sentence = f"Crean was born near Annascaul [Data: Sources ({crean})]."
    text, cited = checked(model, f"{sentence} {sentence}", Sources={crean})
    assert text.count("[1]") == 2
    assert len(cited.citations) == 1


def test_entities_relationships_and_reports_lead_to_passages(model: KnowledgeModel) -> None:
    entity = model.scan("entities").filter(pl.col("title") == "Tom Crean").collect()
    number = int(entity["human_readable_id"][0])
    report = int(model.scan("community_reports").select("community").collect().item(0, 0))
    link = (
        model.scan("relationships")
        .filter(pl.col("source") == "Tom Crean")
        .select("human_readable_id")
        .collect()
        .item(0, 0)
    )
    shown = {"Entities": {number}, "Reports": {report}, "Relationships": {int(link)}}
    written = (
        f"Crean was a seaman [Data: Entities ({number})]. He sailed with others "
        f"[Data: Relationships ({link})]. So says the report [Data: Reports ({report})]."
    )
    text, cited = checked(model, written, **shown)
    assert "[Data" not in text
    assert {citation.cited_as for citation in cited.citations} == {
        f"Entities ({number})",
        f"Relationships ({link})",
        f"Reports ({report})",
    }
    assert "seaman" in cited.citations[0].quote


def test_a_quotation_that_is_not_in_the_passage_is_flagged(
    model: KnowledgeModel, crean: int
) -> None:
    true = "Crean was born in 1877 on a farm near Annascaul"
    false = "Crean was born in 1878 in a castle near Dublin"
    _, cited = checked(
        model,
        f"It says “{true}” [Data: Sources ({crean})] and “{false}” [Data: Sources ({crean})].",
        Sources={crean},
    )
    assert cited.not_found == [false]
    assert true in cited.citations[0].quote


def test_citations_may_stay_in_microsofts_syntax(model: KnowledgeModel) -> None:
    cited = CitedText(model, {"Sources": {0, 1}}, "data")
    text = "One [Data: Sources (0, 1)]. Two [Data: Sources (1, 999)]. Three [Data: Reports (1)]."
    expected = "One [Data: Sources (0, 1)]. Two [Data: Sources (1)]. Three."
    assert cited.feed(text, is_last=True) == expected
    assert cited.n_removed == 2


@pytest.mark.parametrize(
    ("reply", "has_no_record", "rest"),
    [
        ("NO_RECORD The documents do not tell.", True, "The documents do not tell."),
        ("NO_RECORD", True, ""),
        ("`NO_RECORD`: nothing.", True, "nothing."),
        ("no_record\nNothing.", True, "Nothing."),
        ("Norway is cold.", False, "Norway is cold."),
        ("N", False, "N"),
    ],
)
def test_a_reply_can_say_that_there_is_no_record(
    model: KnowledgeModel, reply: str, has_no_record: bool, rest: str
) -> None:
    text, cited = checked(model, reply, Sources={0})
    assert (cited.has_no_record, text) == (has_no_record, rest)


TEXTS = st.lists(
    st.sampled_from(
        ["Crean ", "was ", "born. ", " [Data: Sources (0)]", " [0]", "[", "] ", "\n\n", "[Da", "“",
         " [Data: Reports (1); Sources (1)]", "NO_RECORD", " [^1]", "[x] ", "(1)", ", ", "” "]
    ),
    max_size=14,
)  # fmt: skip


@given(parts=TEXTS, cuts=st.lists(st.integers(1, 12), max_size=20))
@hypothesis_settings(max_examples=60)
def test_a_text_is_the_same_in_whatever_pieces_it_comes(
    model: KnowledgeModel, parts: list[str], cuts: list[int]
) -> None:
    whole = "".join(parts)
    expected, at_once = checked(model, whole, Sources={0})
    cited = CitedText(model, {"Sources": {0}})
    pieces, rest = [], whole
    for cut in cuts:
        pieces.append(cited.feed(rest[:cut]))
        rest = rest[cut:]
    pieces.append(cited.feed(rest, is_last=True))
    assert "".join(pieces) == expected
    assert cited.citations == at_once.citations
    assert cited.n_removed == at_once.n_removed
