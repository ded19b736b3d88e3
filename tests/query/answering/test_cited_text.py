from functools import cached_property

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_query.answering.cited_text import CitedText
from graphrag_query.store.index_store import IndexStore
from graphrag_query.store.links import LinkedRows, Links
from tests.fixtures.cases import cases
from tests.fixtures.examples import examples


@pytest.fixture(scope="module")
def crean(store: IndexStore) -> int:
    """The text unit that tells where Tom Crean was born."""
    found = store.scan("text_units").filter(pl.col("text").str.contains("near Annascaul"))
    return int(found.select("human_readable_id").collect().item(0, 0))


def checked(store: IndexStore, text: str, **shown: set[int]) -> tuple[str, CitedText]:
    cited = CitedText(store, shown)
    return cited.add_piece(text, is_last=True), cited


def test_a_citation_leads_to_the_sentence_that_says_it(store: IndexStore, crean: int) -> None:
    written = f"Crean was born on a farm near Annascaul [Data: Sources ({crean})]."
    text, cited = checked(store, written, Sources={crean})
    assert text == "Crean was born on a farm near Annascaul [1]."
    [citation] = cited.citations
    assert citation.quote.startswith("Crean was born in 1877 on a farm near Annascaul")
    assert citation.cited_as == f"Sources ({crean})"
    documents = store.scan("documents").filter(pl.col("id") == citation.document_id)
    whole = documents.select("text").collect().item()
    assert whole[citation.start_char : citation.end_char] == citation.quote


@cases("citation, expected, n_removed")
def test_what_was_not_shown_is_removed_and_counted(
    store: IndexStore, citation: str, expected: str, n_removed: int
) -> None:
    end = "" if citation.endswith("(0)") else "."
    text, cited = checked(store, f"A statement{citation}{end}", Sources={0})
    assert text == f"A statement{expected}{end}"
    assert cited.n_removed_citations == n_removed


def test_a_number_that_is_cut_off_is_removed(store: IndexStore) -> None:
    for begun in ("[Data: Sources (1", "(Data: Sources (1", "Data: Sources (1", "(Sources: 1"):
        written = f"One [Data: Sources (0)]. Two {begun}"
        text, cited = checked(store, written, Sources={0, 1})
        assert text == "One [1]. Two "
        assert cited.n_removed_citations == 1


def test_an_ordinary_bracket_is_streamed_at_once(store: IndexStore) -> None:
    cited = CitedText(store, {"Sources": {0}})
    for piece in ("He sailed", " (with", " (1)", " dogs", " and the", " data", " of", " 3"):
        cited.add_piece(piece)
    assert cited.add_piece(" men") == " men"
    assert cited.add_piece(" (so says (Sou") == " (so says"
    assert cited.add_piece("th) he") == " (South) he"


def test_no_part_of_a_citation_is_streamed_unchecked(store: IndexStore) -> None:
    for citation in CITATIONS:
        cited = CitedText(store, {"Sources": {0}})
        streamed = "".join(cited.add_piece(character) for character in f"It was so{citation}")
        assert streamed == "It was so"
        assert cited.add_piece(". ") + cited.add_piece("", is_last=True) == " [1]. "


def test_footnotes_number_reports_where_only_reports_were_shown(store: IndexStore) -> None:
    text, cited = checked(store, "The ice held [0, 99].", Reports={0})
    assert text == "The ice held [1]."
    assert [citation.cited_as for citation in cited.citations] == ["Reports (0)"]
    assert cited.n_removed_citations == 1


@pytest.mark.parametrize("has_topics", [True, False])
def test_a_report_that_cites_nothing_leads_to_the_passages_of_its_members(
    store: IndexStore, has_topics: bool
) -> None:
    class Described(Links):
        def text_units_of(self, entity: int) -> LinkedRows:
            numbers, is_subject = super().text_units_of(entity)
            return LinkedRows(numbers, is_subject & has_topics)

    class Uncited(IndexStore):
        @cached_property
        def links(self) -> Links:
            return Described(self.open_mapped, self.n_rows("text_unit_rows"))

        def report(self, community: int) -> dict[str, str]:
            return {"full_content": "# Ice\n\nThe ice held the ship."}

    uncited = Uncited(store.backend, store.version, store.models)
    text, cited = checked(uncited, "The ice held the ship [Data: Reports (0)].", Reports={0})
    assert text == "The ice held the ship [1]."
    assert cited.citations[0].cited_as == "Reports (0)"


def test_what_leads_to_no_passage_is_removed_and_counted(store: IndexStore) -> None:
    text, cited = checked(store, "A statement [Data: Sources (999999)].", Sources={999999})
    assert (text, cited.n_removed_citations) == ("A statement.", 1)


def test_the_same_passage_keeps_its_number(store: IndexStore, crean: int) -> None:
    sentence = f"Crean was born near Annascaul [Data: Sources ({crean})]."
    text, cited = checked(store, f"{sentence} {sentence}", Sources={crean})
    assert text.count("[1]") == 2
    assert len(cited.citations) == 1


def test_entities_relationships_and_reports_lead_to_passages(store: IndexStore) -> None:
    entity = store.scan("entities").filter(pl.col("title") == "Tom Crean").collect()
    number = int(entity["human_readable_id"][0])
    report = int(store.scan("community_reports").select("community").collect().item(-1, 0))
    link = (
        store.scan("relationships")
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
    text, cited = checked(store, written, **shown)
    assert "[Data" not in text
    assert {citation.cited_as for citation in cited.citations} == {
        f"Entities ({number})",
        f"Relationships ({link})",
        f"Reports ({report})",
    }
    assert "seaman" in cited.citations[0].quote


def test_a_quotation_that_is_not_in_the_passage_is_flagged(store: IndexStore, crean: int) -> None:
    true = "Crean was born in 1877 on a farm near Annascaul"
    false = "Crean was born in 1878 in a castle near Dublin"
    _, cited = checked(
        store,
        f"It says “{true}” [Data: Sources ({crean})] and “{false}” [Data: Sources ({crean})].",
        Sources={crean},
    )
    assert cited.missing_quotations == [false]
    assert true in cited.citations[0].quote


@cases("said, flagged")
def test_quotations_are_known_by_their_marks(
    store: IndexStore, crean: int, said: str, flagged: bool
) -> None:
    _, cited = checked(store, f"{said} [Data: Sources ({crean})].", Sources={crean})
    assert bool(cited.missing_quotations) is flagged


def test_citations_may_stay_in_microsofts_syntax(store: IndexStore) -> None:
    cited = CitedText(store, {"Sources": {0, 1}}, "data")
    text = "One [Data: Sources (0, 1)]. Two [Data: Sources (1, 999)]. Three [Data: Reports (1)]."
    expected = "One [Data: Sources (0, 1)]. Two [Data: Sources (1)]. Three."
    assert cited.add_piece(text, is_last=True) == expected
    assert cited.n_removed_citations == 2


@cases("reply, has_no_record, rest")
def test_a_reply_can_say_that_there_is_no_record(
    store: IndexStore, reply: str, has_no_record: bool, rest: str
) -> None:
    text, cited = checked(store, reply, Sources={0})
    assert (cited.has_no_record, text) == (has_no_record, rest)


CITATIONS = (
    *(" [Data: Sources (0)]", " (Data: Sources (0))", " (Sources: 0)", " {Data: Sources (0)}"),
    *("（数据：来源（0））", " Data: Sources (0)", " [Data - Sources (0)]", " [Data Sources (0)]"),
    *(" [Data: Sources [0]]", " ([Data: Sources (0)])", " **(Data: Sources (0))**"),
)
TEXTS = st.lists(
    st.sampled_from(
        [*CITATIONS, " (Data: Sources (0, 7", "**", "(Sou", "rces (0))", "Data: ", " (he ", "{",
         "(", "Reports (1)", "; Sources (0)", "0, 7", "))", "Data", " data", "(Source: 1914)", "）",
         "Crean ", "was ", "born. ", " [Data: Sources (0)]", " [0]", "[", "] ", "\n\n", "[Da", "“",
         " [Data: Reports (1); Sources (1)]", "NO_RECORD", " [^1]", "[x] ", " NO_REC", " N",
         "ORD ", "`a[0]` ", "\n```\n", "[1914]", "【0】", ":", "[1914] and ", "(1)", ", ", "” "]
    ),
    max_size=14,
)  # fmt: skip


@given(parts=TEXTS, cuts=st.lists(st.integers(1, 12), max_size=20))
@examples(80)
def test_a_text_is_the_same_in_whatever_pieces_it_comes(
    store: IndexStore, parts: list[str], cuts: list[int]
) -> None:
    whole = "".join(parts)
    expected, at_once = checked(store, whole, Sources={0})
    cited = CitedText(store, {"Sources": {0}})
    pieces, rest = [], whole
    for cut in cuts:
        pieces.append(cited.add_piece(rest[:cut]))
        rest = rest[cut:]
    pieces.append(cited.add_piece(rest, is_last=True))
    assert "".join(pieces) == expected
    assert cited.citations == at_once.citations
    assert cited.n_removed_citations == at_once.n_removed_citations
