import pytest

from graphrag_index.reports.chosen_statements import Evidence
from graphrag_index.reports.document_groups import are_mixed, group_documents, join_near_groups
from graphrag_index.reports.text_nearness import MIN_NEARNESS, embed, measure_nearness
from graphrag_index.reports.theme_terms import Term, rank_terms

SHIPWRECK = (
    "The yacht lost its mast in the storm and was forced to return to the harbour.",
    "Sailors were rescued from the sea after their boat sank in high waves.",
    "A protest against the winner of the yacht race was dismissed.",
)


def test_what_most_sentences_say_is_nearer_than_a_detail() -> None:
    [[boats, protest], none] = measure_nearness(
        [SHIPWRECK, []], [["damaged boats", "protest"], ["protest"]]
    )
    assert boats > 2 * protest
    assert none == []


def test_nearness_does_not_depend_on_the_reports_beside() -> None:
    texts = ["damaged boats", "protest"]
    others = ["The court heard a case."]
    alone = measure_nearness([SHIPWRECK], [texts])
    assert measure_nearness([others, SHIPWRECK, SHIPWRECK], [["court"], texts, []]) == [
        measure_nearness([others], [["court"]])[0],
        alone[0],
        [],
    ]


def test_no_text_counts_nothing() -> None:
    [[near]] = measure_nearness([["The court heard a case."]], [["zinc oxide nanoparticles"]])
    assert near == pytest.approx(MIN_NEARNESS)


def test_a_near_term_comes_before_a_heavier_one() -> None:
    heavy, near, light = (
        Term(text, (text,), weight) for text, weight in zip("abc", (16, 9, 9), strict=True)
    )
    ranked = rank_terms([heavy, near, light], [0.2, 0.6, 0.1])
    assert [(term.text, round(term.weight, 2)) for term in ranked] == [
        ("b", 1.08),
        ("a", 0.16),
        ("c", 0.03),
    ]


def say(document: int, *words: str) -> Evidence:
    return Evidence(" ".join(words), (document,), document, document, 1.0, words=words)


SAIL = say(0, "fleet", "racer", "sailing", "winds")
MAST = say(1, "another", "yacht", "mast", "storm")
COURT = say(2, "judge", "sentence", "accountant", "theft")


def test_groups_that_say_the_like_in_other_words_are_joined() -> None:
    def join(*evidence: Evidence) -> list[set[int]]:
        groups = group_documents(evidence)
        assert are_mixed(groups)
        vectors = embed([" ".join(one.words) for one in evidence])
        return [set(group) for group in join_near_groups(groups, evidence, vectors)]

    assert join(SAIL, MAST) == [{0, 1}]
    # Two of three documents are most of them, and a single one is not.
    assert join(SAIL, MAST, COURT) == [{0, 1}, {2}]
    assert join(SAIL, COURT) == [{0}, {2}]
    assert len(join(SAIL, COURT, say(3, "doctor", "patient"))) == 3
