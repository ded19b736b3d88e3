"""The choice of the sentences of a summary and of findings."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from graphrag_nlp.reports.findings import (
    MIN_DOCUMENTS,
    Chosen,
    Limits,
    Sentence,
    StatementSources,
    choose_sentences,
    group_by_member,
)

TITLES = {0: "Tom Crean", 1: "Endurance", 2: "Elephant Island", 3: "Kerry"}
WEIGHT = {0: 4.0, 1: 3.0, 2: 2.0, 3: 1.0}
LIMITS = Limits(6, 14, 0.5)


def make(*said: tuple[str, Sequence[int], int]) -> list[Sentence]:
    """Make sentences, best first, from (text, entities, document)."""
    return [
        Sentence(row, text, list(entities), "", row, document, 900 * row, 900 * row + 80, 1.0)
        for row, (text, entities, document) in enumerate(said)
    ]


def choose(ranked: Sequence[Sentence], limits: Limits = LIMITS, is_theme: bool = False) -> Chosen:
    return choose_sentences(ranked, group_by_member(ranked), WEIGHT, limits, is_theme=is_theme)


def rows(chosen: Chosen) -> tuple[list[int], list[tuple[int, list[int]]]]:
    findings = [(one.subject, [s.row for s in one.sentences]) for one in chosen.findings]
    return [one.row for one in chosen.summary], findings


CREAN = [
    ("Tom Crean sailed in the Endurance.", (0, 1), 0),
    ("From Elephant Island somebody rowed onwards.", (0, 2), 0),
    ("Crean came home to Kerry.", (0, 3), 0),
    ("The ship sank in 1915 far from land.", (1,), 0),
]


def test_the_best_sentences_are_the_summary_and_each_finding_has_a_subject_of_its_own() -> None:
    assert rows(choose(make(*CREAN))) == ([0, 1], [(0, [2]), (1, [3])])


def test_a_finding_is_about_one_thing() -> None:
    ranked = make(
        ("Whalers wintered there once.", (3,), 0),
        ("Nobody expected any letters.", (3,), 1),
        ("Tom Crean crossed the great glacier with seven officers under storms.", (0,), 2),
        ("Tom Crean opened a pub in the south.", (0,), 3),
        ("Some officers had crossed that glacier and mapped its edges before Tom Crean.", (0,), 4),
    )
    assert rows(choose(ranked))[1] == [(0, [2, 4])]
    # Sentences that stand together in a document are on one thing.
    ranked[3].document, ranked[3].place = 2, (ranked[2].place[0] + 90, 0)
    assert rows(choose(ranked))[1] == [(0, [2, 3, 4])]


def test_sentences_that_are_alike_are_said_once() -> None:
    ranked = make(CREAN[0], ("Tom Crean sailed in the Endurance, then.", (0, 1), 1))
    assert rows(choose(ranked)) == ([0], [])


def test_what_is_much_worse_than_the_best_is_no_finding() -> None:
    ranked = make(*CREAN)
    ranked[3].score = 0.1
    assert rows(choose(ranked)) == ([0, 1], [(0, [2])])
    # Nor is it added to a better one.
    ranked = make(*CREAN[:3], ("Neighbours never heard him talk.", (0,), 0))
    ranked[3].place = (ranked[2].place[0] + 90, 0)
    assert rows(choose(ranked))[1] == [(0, [2, 3])]
    ranked[3].score = 0.4
    assert rows(choose(ranked))[1] == [(0, [2])]


def test_each_sentence_on_a_theme_is_on_another_document() -> None:
    ranked = make(*((f"Storm{n} broke mast{n} near harbour{n}.", (), n // 2) for n in range(12)))
    summary, findings = rows(choose(ranked, is_theme=True))
    assert summary == [0, 2, 4]
    assert findings == [(-1, [6]), (-1, [8]), (-1, [10])]


def test_a_document_has_at_most_its_share() -> None:
    things = ("gold", "coal", "tea", "wool", "iron", "silk", "salt", "oil", "rum", "tin")
    false = [(f"Crean secretly stole {one} in {one}town.", (0, 1, 2, 3), 1) for one in things]
    true = [
        ("Elephant Island has no harbour for boats.", (2,), 2),
        ("Farmers in Kerry keep sheep.", (3,), 3),
        ("Storms broke masts of the Endurance.", (1,), 4),
    ]
    chosen = choose(make(*false, *true))
    texts = [s.text for s in chosen.summary]
    texts += [s.text for one in chosen.findings for s in one.sentences]
    assert 0 < 2 * sum("stole" in text for text in texts) <= len(texts)
    # With two documents, nothing is limited.
    chosen = choose(make(*false, true[0]))
    assert all("stole" in s.text for s in chosen.summary)


def test_a_statement_has_the_sentences_of_all_documents_that_state_it() -> None:
    ranked = make(
        ("Shackleton sailed to Elephant Island with 27 men.", (0, 2), 1),
        ("With 27 men, Crean sailed to Elephant Island.", (0, 2), 2),
        # Another number, another member, and the same document.
        ("Crean sailed to Elephant Island with 22 men.", (0, 2), 3),
        ("Crean sailed to Kerry with 27 men.", (0, 3), 4),
        ("So 27 men sailed to Elephant Island.", (0, 2), 1),
    )
    sources = StatementSources(group_by_member(ranked), TITLES)
    assert sources.find(ranked[0]) == (2, [0, 1])
    assert sources.find(ranked[3]) == (1, [3])
    assert StatementSources(group_by_member(ranked[:1]), TITLES).find(ranked[0]) == (1, [0])


@given(
    st.lists(
        st.tuples(
            st.text("abc d", min_size=1),
            st.sets(st.integers(0, 3), min_size=1).map(sorted),
            st.integers(0, 4),
        )
    ),
    st.integers(1, 6),
    st.integers(2, 14),
    st.booleans(),
)
def test_limits_hold_and_nothing_is_said_twice(
    said: list[tuple[str, list[int], int]], n_findings: int, most: int, is_theme: bool
) -> None:
    ranked = make(*said)
    chosen = choose(ranked, Limits(n_findings, most, 0.5), is_theme)
    used = [*chosen.summary, *(s for one in chosen.findings for s in one.sentences)]
    assert len(chosen.findings) <= n_findings
    assert len(used) <= most
    assert len({*used}) == len(used)
    counts = Counter(one.document for one in used)
    if len({one.document for one in ranked}) >= MIN_DOCUMENTS:
        assert max(counts.values()) <= max(1, 0.5 * len(used))
    subjects = [one.subject for one in chosen.findings if one.subject >= 0]
    assert is_theme or len({*subjects}) == len(subjects)


def test_without_sentences_there_are_no_findings() -> None:
    assert choose([]) == ([], [])
