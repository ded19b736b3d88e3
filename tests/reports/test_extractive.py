from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.reports.extractive import Evidence, write_findings
from graphrag_index.reports.report import Finding, format_citation, join_titles

TITLES = {0: "Tom Crean", 1: "Endurance", 2: "Elephant Island", 3: "Kerry"}
WEIGHT = {0: 4.0, 1: 3.0, 2: 2.0, 3: 1.0}


def evidence(text: str, *entities: int, source: int = 0, score: float = 0.0) -> Evidence:
    return Evidence(text, entities, (), source, score or sum(WEIGHT[e] for e in entities))


CREAN_SAILED = evidence("Tom Crean sailed in the Endurance.", 0, 1, source=3)
CREAN_ISLAND = evidence("From Elephant Island Tom Crean rowed on.", 0, 2, source=4)
CREAN_KERRY = evidence("Crean came from Kerry.", 0, 3, source=5)
ENDURANCE_SANK = evidence("The Endurance sank in 1915 far from any land.", 1, source=6)


def write(
    *sentences: Evidence, main: Sequence[int] = (), findings: int = 6, most: int = 14
) -> tuple[str, tuple[Finding, ...]]:
    return write_findings(sentences, WEIGHT, TITLES, main, findings, most)


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
