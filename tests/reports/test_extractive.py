from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.reports.candidate_sentences import (
    choose_best_sentences,
    drop_repeats_of_siblings,
    find_leads,
)
from graphrag_index.reports.centrality import rate_centrality
from graphrag_index.reports.chosen_statements import SUMMARY, Choice, Evidence, PlacedStatements
from graphrag_index.reports.extent import format_period
from graphrag_index.reports.extractive import choose_statements
from graphrag_index.reports.report import Finding, format_citation, join_titles
from graphrag_index.reports.report_choices import ReportChoice, make_choice_columns
from graphrag_index.reports.report_titles import Names
from graphrag_index.reports.theme_terms import Term

TITLES = {0: "Tom Crean", 1: "Endurance", 2: "Elephant Island", 3: "Kerry"}
WEIGHT = {0: 4.0, 1: 3.0, 2: 2.0, 3: 1.0}
NO_LEADS = pl.DataFrame(schema={"report": pl.Int32, "sentence": pl.Int32})


def evidence(text: str, *entities: int, source: int = 0, score: float = 0.0) -> Evidence:
    return Evidence(text, entities, source, 0, score or sum(WEIGHT[e] for e in entities))


TERMS = (Term("sea ice", ("ice",), 9.0), Term("boats", ("boats", "boat"), 8.0))
CREAN_SAILED = evidence("Tom Crean sailed in the Endurance.", 0, 1, source=3)
CREAN_ISLAND = evidence("From Elephant Island Tom Crean rowed on.", 0, 2, source=4)
CREAN_KERRY = evidence("Crean came from Kerry.", 0, 3, source=5)
ENDURANCE_SANK = evidence("The Endurance sank in 1915 far from any land.", 1, source=6)


def write(
    *sentences: Evidence, main: Sequence[int] = (), findings: int = 6, most: int = 14
) -> tuple[str, tuple[Finding, ...]]:
    names = Names(WEIGHT, TITLES, main)
    headings, chosen = choose_statements(sentences, names, TERMS, findings, most)
    return write_texts(sentences, headings, chosen)


def write_texts(
    sentences: Sequence[Evidence], headings: Sequence[str], chosen: Sequence[Choice]
) -> tuple[str, tuple[Finding, ...]]:
    choice = make_choice_columns([ReportChoice("", headings, chosen)])
    rows = [(0, s.text, list(s.entities), [], s.source, s.document, *s.place) for s in sentences]
    schema = {
        **{"report": pl.Int32, "text": pl.String, "entities": pl.List(pl.Int32)},
        **{"relationships": pl.List(pl.Int32), "source": pl.Int32, "document": pl.Int32},
        **{"start_char": pl.Int32, "end_char": pl.Int32},
    }
    frame = pl.DataFrame(rows, schema, orient="row")
    placed = PlacedStatements(choice.with_columns(report=0), frame)
    [summary], [explanations] = placed.write_texts()
    return summary, tuple(map(Finding, headings, explanations))


def test_the_summary_covers_the_main_members_first() -> None:
    summary, _ = write(CREAN_SAILED, CREAN_ISLAND, CREAN_KERRY, ENDURANCE_SANK)
    assert summary == (
        "Tom Crean sailed in the Endurance. [Data: Entities (0, 1); Sources (3)] "
        "From Elephant Island Tom Crean rowed on. [Data: Entities (0, 2); Sources (4)]"
    )


def test_each_finding_is_about_one_member_with_those_it_is_mentioned_with() -> None:
    _, findings = write(CREAN_SAILED, CREAN_ISLAND, CREAN_KERRY, ENDURANCE_SANK)
    assert findings == (
        Finding(
            "Tom Crean and Kerry", "Crean came from Kerry. [Data: Entities (0, 3); Sources (5)]"
        ),
        Finding(
            "Endurance",
            "The Endurance sank in 1915 far from any land. [Data: Entities (1); Sources (6)]",
        ),
    )


def test_a_finding_is_about_one_thing() -> None:
    said = [
        evidence("Tom Crean crossed the glacier with two officers.", 0, 1, source=3, score=9.0),
        evidence("Two officers crossed that glacier before Tom Crean.", 0, source=4),
        evidence("Tom Crean opened a pub in the south.", 0, source=5, score=8.0),
    ]
    said = [replace(one, document=at) for at, one in enumerate(said)]
    titles = [Evidence("Endurance", (1,), 9, 9, 20.0), Evidence("More", (2,), 9, 8, 19.0)]
    _, findings = write(*titles, *said)
    own = [one.explanation for one in findings if "Tom Crean" in one.explanation]
    assert [("glacier" in text, "pub" in text) for text in own] == [(True, False), (False, True)]
    # Sentences that stand together in a document are on one thing.
    near = [replace(one, document=0, place=(at * 90, at * 90 + 60)) for at, one in enumerate(said)]
    _, findings = write(*titles, *near)
    [own_one] = [one.explanation for one in findings if "Tom Crean" in one.explanation]
    assert "glacier" in own_one
    assert "pub" in own_one


def test_sentences_that_need_context_are_findings_where_hardly_any_are_clear() -> None:
    said = (CREAN_SAILED, CREAN_ISLAND, CREAN_KERRY, ENDURANCE_SANK)
    unclear = [replace(one, wording=0.35) for one in said]
    _, findings = write(*unclear)
    assert [one.summary for one in findings] == ["Tom Crean and Kerry", "Endurance"]
    _, findings = write(CREAN_SAILED, *unclear[1:])
    assert [one.summary for one in findings] == ["Tom Crean and Kerry", "Endurance"]
    # Beside clear sentences, they are none.
    _, findings = write(CREAN_SAILED, CREAN_ISLAND, *unclear[2:])
    assert findings == ()
    _, findings = write(CREAN_SAILED, CREAN_ISLAND, unclear[2], ENDURANCE_SANK)
    assert [one.summary for one in findings] == ["Endurance"]
    # Calls in brackets and quoted letters are no findings.
    _, findings = write(*(replace(one, wording=0.3) for one in said))
    assert findings == ()


def test_a_summary_prefers_central_sentences_and_those_at_the_start() -> None:
    said = [replace(CREAN_SAILED, score=5.0), replace(ENDURANCE_SANK, score=5.0)]
    far = [replace(one, document=0, place=(900, 950)) for one in said]
    rated = rate_centrality(far, [0.1, 0.9])
    assert rated[0] < rated[1]
    near = [far[0], replace(far[1], place=(0, 50))]
    lead = rate_centrality(near)
    assert lead[0] < lead[1]
    names = Names({0: 0.0, 1: 0.0}, TITLES, ())
    for some, centrality in ((far, rated), (near, lead)):
        _, [first, *_] = choose_statements(some, names, (), 6, 1, centrality=centrality)
        assert first.sentences == [1]


def test_a_summary_on_few_documents_begins_with_the_start_of_their_main_document() -> None:
    start = "Explorers who wintered in the south came home to Ireland in 1917."
    lead = Evidence(start, (), 3, 0, 0.1, None, (0, len(start)))
    far = [
        replace(one, place=(at * 2_000, at * 2_000 + 50))
        for at, one in enumerate((CREAN_SAILED, CREAN_ISLAND), 1)
    ]
    names = Names(WEIGHT, TITLES, ())
    for n_documents, wording, is_first in ((1, 1.0, True), (5, 1.0, False), (1, 0.35, False)):
        own = [*far, replace(lead, wording=wording)]
        others = [
            replace(ENDURANCE_SANK, text=f"The Endurance met ship {n}.", document=n + 1)
            for n in range(n_documents - 1)
        ]
        groups = [frozenset(range(n_documents))]
        _, chosen = choose_statements([*own, *others], names, (), 6, 14, groups=groups)
        summary = [one.sentences[0] for one in chosen if one.finding == SUMMARY]
        assert (2 in summary) == is_first
    # A short one is a caption or a dateline.
    short = replace(lead, text="Kerry, 3 May 1917 came.")
    _, chosen = choose_statements([*far, short], names, (), 6, 14, groups=[frozenset({0})])
    assert chosen[0].sentences[0] != 2


def test_sentences_that_are_alike_are_said_once() -> None:
    again = evidence("Tom Crean sailed in the Endurance, then.", 0, 1, source=9)
    summary, findings = write(CREAN_SAILED, again)
    assert summary.count("sailed") == 1
    assert findings == ()


def test_headings_name_neither_the_title_again_nor_what_an_earlier_one_names() -> None:
    _, findings = write(
        evidence("Crean and the Endurance drifted past Elephant Island.", 0, 1, 2, score=99),
        evidence("Storms kept everybody awake, Crean of Kerry above all.", 0, 3, score=98),
        evidence("Tom Crean was proud to sail in that ship, the Endurance.", 0, 1, source=3),
        evidence("When spring came, Crean rowed towards Elephant Island.", 0, 2, source=4),
        evidence("The Endurance lay crushed, far from Elephant Island.", 1, 2, source=5),
        main=[0, 1],
    )
    assert [finding.summary for finding in findings] == [
        "Tom Crean and Elephant Island",
        "Endurance",
    ]


def test_the_finding_of_a_report_on_one_member_is_not_its_title() -> None:
    sentences = ("Crean was born near Annascaul.", "He rowed.", "Nobody sang so loudly as Crean.")
    _, findings = write(*(evidence(text, 0) for text in sentences), main=[0])
    assert [finding.summary for finding in findings] == ["More on Tom Crean"]


def test_a_heading_has_a_term_of_its_sentences_that_no_other_heading_has() -> None:
    _, findings = write(
        evidence("Tom Crean and Shackleton crossed the mountains.", 0, score=99),
        evidence("The whalers of Stromness heard nothing all winter.", 0, score=98),
        evidence("Tom Crean pulled the boats over the floe.", 0, source=3),
        evidence("Under the ice lay the ship Endurance, crushed.", 1, source=4),
    )
    assert [finding.summary for finding in findings] == ["Boats: Tom Crean", "Sea ice: Endurance"]


def test_sentences_with_several_dates_become_a_chronology() -> None:
    years = (1916, 1914, 1915)
    texts = ("Men were saved in {}.", "A ship left Plymouth in {}.", "Ice crushed wood in {}.")
    dated = [
        replace(evidence(text.format(year), 0), days=(date(year, 1, 1), date(year, 12, 31)))
        for text, year in zip(texts, years, strict=True)
    ]
    _, findings = write(CREAN_SAILED, CREAN_ISLAND, *dated)
    assert findings[-1].summary == "1914 to 1916: Tom Crean"
    said = findings[-1].explanation
    assert said.index("1914") < said.index("1915") < said.index("1916")


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (date(2024, 3, 1), date(2024, 5, 31), "March to May 2024"),
        (date(2024, 3, 3), date(2024, 3, 3), "3 March 2024"),
        (date(2024, 1, 1), date(2024, 12, 31), "2024"),
        (date(1914, 8, 8), date(1917, 1, 1), "1914 to 1917"),
    ],
)
def test_a_period_is_as_short_as_its_dates_allow(first: date, last: date, expected: str) -> None:
    assert format_period(first, last) == expected


def test_siblings_share_no_sentence() -> None:
    chosen = pl.DataFrame({"report": [0, 1, 2, 1], "sentence": [7, 7, 7, 8], "place": [1, 0, 0, 1]})
    kept = drop_repeats_of_siblings(chosen, np.array([5, 5, 6]), np.array([3, 9, 2]))
    assert set(kept.select("report", "sentence").rows()) == {(1, 7), (2, 7), (1, 8)}


def test_a_poisoned_document_has_at_most_its_share_and_each_statement_one_source() -> None:
    things = ("gold", "coal", "tea", "wool", "iron", "silk", "salt", "oil", "rum", "tin")
    false = [
        replace(evidence(f"Crean secretly stole {thing} in {thing}town.", 0, score=99), document=1)
        for thing in things
    ]
    true = [
        replace(evidence("Elephant Island has no harbour for boats.", 2), document=2),
        replace(evidence("Farmers in Kerry keep sheep.", 3), document=3),
        replace(evidence("Storms broke masts of the Endurance.", 1), document=4),
    ]
    names = Names(WEIGHT, TITLES, [0])
    sentences = [*false, *true]
    headings, statements = choose_statements(sentences, names, TERMS, 6, 14, 0.5)
    summary, findings = write_texts(sentences, headings, statements)
    said = [summary, *(finding.explanation for finding in findings)]
    assert sum(text.count("stole") for text in said) == 3
    assert sum(text.count("Data:") for text in said) == 6
    assert {one.n_documents for one in statements} == {1}
    _, unlimited = choose_statements([*false, *true[:1]], names, TERMS, 6, 14, 0.5)
    assert sum("stole" in sentences[one.sentences[0]].text for one in unlimited) > 3


def test_a_statement_has_the_sentences_of_all_documents_that_state_it() -> None:
    sentences = [
        replace(evidence("Shackleton sailed to Elephant Island with 27 men.", 0, 2), document=1),
        replace(evidence("With 27 men, Crean sailed to Elephant Island.", 0, 2), document=2),
        # Another number, another member, and the same document.
        replace(evidence("Crean sailed to Elephant Island with 22 men.", 0, 2), document=3),
        replace(evidence("Crean sailed to Kerry with 27 men.", 0, 3), document=4),
        replace(evidence("So 27 men sailed to Elephant Island.", 0, 2), document=1),
    ]
    _, statements = choose_statements(sentences, Names(WEIGHT, TITLES, [0]), TERMS, 6, 14)
    found = {
        sentences[one.sentences[0]].text: {sentences[at].document for at in one.sentences}
        for one in statements
    }
    assert found["Shackleton sailed to Elephant Island with 27 men."] == {1, 2}
    assert found["Crean sailed to Kerry with 27 men."] == {4}
    assert all(one.n_documents == len(one.sentences) for one in statements)


def test_a_document_with_many_sentences_leaves_candidates_to_other_documents() -> None:
    n, others = 200, 15
    members = {"report": [0], "entity": [5], "weight": [1.0], "n_sentences": [n + others]}
    sentences = {
        "sentence": range(n + others),
        "fitness": [1.0] * n + [0.1] * others,
        "document": [0] * n + [*range(1, others + 1)],
    }
    shard = {"members": pl.DataFrame(members), "sentences": pl.DataFrame(sentences)}
    shard["leads"] = find_leads(np.array([0]), np.array([1.0], np.float32))
    shard["theme_leads"] = NO_LEADS
    chosen = choose_best_sentences(shard, 0.5)["chosen"]["sentence"]
    assert (chosen < n).sum() == 11
    assert len(chosen) == 22


def test_a_report_gets_the_first_sentence_of_its_main_document() -> None:
    # All but the first sentence of document 0 and one of document 1 mention the member.
    document = np.array([0, 0, 0, 0, 1, 1])
    fitness = np.ones(6, np.float32)
    rows = [1, 2, 3, 5]
    members = {"report": [0], "entity": [5], "weight": 2.0, "n_sentences": [4]}
    sentences = {"sentence": rows, "fitness": fitness[rows], "document": document[rows]}
    shard = {"members": pl.DataFrame(members), "sentences": pl.DataFrame(sentences)}
    shard |= {"leads": find_leads(document, fitness), "theme_leads": NO_LEADS}
    chosen = choose_best_sentences(shard, 0.5)["chosen"]
    assert sorted(chosen["sentence"]) == [0, 1, 2, 3, 5]
    assert chosen.filter(sentence=0)["entities"].to_list() == [[]]


def test_a_report_with_one_sentence_gets_the_first_fit_sentences_of_its_document() -> None:
    document = np.array([0, 0, 0, 0, 0, 1, 1])
    fitness = np.array([0.01, 1.3, 0.8, 0.9, 1.0, 1.0, 1.0], np.float32)
    leads = find_leads(document, fitness)
    assert leads["sentence"].to_list() == [1, 2, 3, 5, 6]
    # Report 0 has one sentence, report 1 two documents, and report 2 a whole document.
    members = {"report": [0, 1, 2], "entity": [5, 6, 7], "weight": 2.0, "n_sentences": [1, 2, 2]}
    rows = [2, 4, 5, 5, 6]
    sentences = {"sentence": rows, "fitness": fitness[rows], "document": document[rows]}
    shard = {"members": pl.DataFrame(members), "sentences": pl.DataFrame(sentences)}
    chosen = choose_best_sentences({**shard, "leads": leads, "theme_leads": NO_LEADS}, 0.5)[
        "chosen"
    ]
    assert chosen.select("report", "sentence", "place").rows() == [
        (0, 2, 0),
        (0, 1, 1),
        (0, 3, 2),
        (1, 4, 0),
        (1, 5, 1),
        (2, 5, 0),
        (2, 6, 1),
    ]
    assert chosen.filter(report=0)["entities"].to_list() == [[5], [], []]
    assert chosen.filter(report=0)["score"].is_sorted(descending=True)


def test_the_start_of_a_document_leads_a_summary() -> None:
    start = replace(evidence("The harbour of Tralee was built in 1829.", score=0.1), place=(0, 40))
    other = replace(evidence("Crean came from Kerry.", 3, score=9.0), place=(50, 72))
    _, chosen = choose_statements([other, start], Names(WEIGHT, TITLES, [3]), [], 6, 14)
    assert [one.sentences[0] for one in chosen if one.finding == SUMMARY] == [1, 0]


def test_no_evidence_gives_no_findings() -> None:
    assert write() == ("", ())


def test_a_citation_names_at_most_five_of_a_kind() -> None:
    rows = {"Entities": range(1, 7), "Relationships": (7,), "Claims": (), "Sources": [8]}
    assert format_citation(rows) == (
        "[Data: Entities (1, 2, 3, 4, 5, +more); Relationships (7); Sources (8)]"
    )


def test_titles_are_joined_as_prose_joins_them() -> None:
    assert [join_titles(["A", "B", "C"][:n]) for n in range(4)] == [
        "",
        "A",
        "A and B",
        "A, B and C",
    ]


@given(
    st.lists(st.tuples(st.text("abc d", min_size=1), st.sets(st.integers(0, 3), min_size=1))),
    st.integers(1, 6),
    st.integers(2, 14),
)
def test_budgets_hold_and_nothing_is_said_twice(
    sentences: list[tuple[str, set[int]]], n_findings: int, most: int
) -> None:
    rows = [evidence(text + ".", *sorted(entities)) for text, entities in sentences]
    summary, findings = write(*rows, findings=n_findings, most=most)
    said = [summary, *(finding.explanation for finding in findings)]
    cited = sum(part.count("[Data:") for part in said)
    assert cited <= most
    assert len(findings) <= n_findings
