"""Reports whose sentences are on nothing common."""

from dataclasses import replace

import pytest

from graphrag_index.reports.chosen_statements import SUMMARY, Evidence
from graphrag_index.reports.report_drafts import Draft, choose_reports
from graphrag_index.reports.report_titles import Names

TITLES = {0: "Anna Berg", 1: "Reuben", 2: "Volcano Club"}
WEIGHT = {0: 3.0, 1: 2.0, 2: 1.0}
HEADLINE = "A bishop praises churches"


def said(document: int, text: str, *entities: int, start: int = 0) -> Evidence:
    words = [word for word in text.rstrip(".").split() if word.islower() and len(word) > 4]
    place = (start, start + len(text))
    return Evidence(text, entities, document, document, 1.0, None, place, words)


CHURCH = said(7, "Bishop Anna Berg leads the weekly service in the church.", 0)
CHURCHES = said(7, "Anna Berg wants more priests in the churches.", 0, start=90)
SANDWICH = said(7, "The sandwich that Reuben made had mustard and pickles.", 1, start=200)
LAVA = said(7, "Lava of molten rock flows under the Volcano Club.", 2, start=300)


def choose(evidence: list[Evidence], headline: str = "", n_documents: int = 1) -> tuple[str, bool]:
    """Return the title of a report, and whether it has a summary."""
    headlines = dict.fromkeys({one.document for one in evidence}, headline)
    names = Names(WEIGHT, TITLES, [0, 1, 2], headlines)
    is_one = n_documents == 1
    draft = Draft(evidence, [*range(len(evidence))], [], "en", names, [], "", is_one)
    [choice] = choose_reports([draft], 6, 14, 1.0)
    return choice.title, any(one.finding == SUMMARY for one in choice.statements)


@pytest.mark.parametrize("n_documents", [1, 3])
def test_sentences_on_nothing_common_are_subjects_of_their_own(n_documents: int) -> None:
    evidence = [
        one if n_documents == 1 else replace(one, document=at)
        for at, one in enumerate([CHURCH, SANDWICH, LAVA])
    ]
    title, has_summary = choose(evidence, n_documents=n_documents)
    assert title == "Different subjects: Anna Berg; Reuben; Volcano Club"
    assert not has_summary


def test_sentences_on_one_thing_have_a_summary() -> None:
    title, has_summary = choose([CHURCH, CHURCHES])
    assert has_summary
    assert not title.startswith("Different subjects")


def test_a_headline_that_says_what_a_sentence_says_holds_them_together() -> None:
    evidence = [CHURCH, SANDWICH, LAVA]
    assert choose(evidence, HEADLINE)[0].startswith(HEADLINE)
    # The headline of another text says nothing of them.
    assert choose(evidence, "Cars collide on a bridge")[0].startswith("Different subjects")


def test_other_documents_do_not_scatter_a_report_of_one_document() -> None:
    elsewhere = [replace(SANDWICH, document=8), replace(LAVA, document=9)]
    assert choose([CHURCH, CHURCHES, *elsewhere])[1]
