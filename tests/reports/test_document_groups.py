from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.reports.chosen_statements import SUMMARY, Evidence
from graphrag_index.reports.document_groups import (
    are_mixed,
    find_shared_name,
    group_documents,
)
from graphrag_index.reports.extractive import choose_statements
from graphrag_index.reports.report_drafts import Draft, choose_reports
from graphrag_index.reports.report_titles import Names, compose_mixed_title, contains

TITLES = {0: "BBC", 1: "Hawthorne", 2: "Omar", 3: "Gaza"}
WEIGHT = {0: 4.0, 1: 3.0, 2: 2.0, 3: 1.0}


def said(document: int, text: str, *entities: int) -> Evidence:
    words = [word for word in text.rstrip(".").split() if word.islower() and len(word) > 4]
    return Evidence(text, entities, document, document, 1.0, words=words)


ACTOR = said(0, "Hawthorne, the actor of the BBC, died of cancer.", 0, 1)
CANCER = said(1, "Hawthorne had fought his cancer as an actor.", 1)
TALIBAN = said(2, "The BBC reports difficult negotiations with Omar.", 0, 2)
RAID = said(3, "Soldiers raided houses near Gaza before sunrise.", 3)


def groups_of(*evidence: Evidence) -> list[set[int]]:
    return [set(group) for group in group_documents(evidence)]


def test_documents_with_common_words_are_one_group_and_a_shared_name_joins_none() -> None:
    assert groups_of(TALIBAN, ACTOR, CANCER, RAID) == [{0, 1}, {2}, {3}]


def test_a_report_is_mixed_if_no_group_is_large_enough() -> None:
    assert are_mixed(groups_of(ACTOR, TALIBAN, RAID))
    assert not are_mixed(groups_of(ACTOR, CANCER, TALIBAN))
    assert not are_mixed(groups_of(ACTOR))
    assert not are_mixed(groups_of())


def test_documents_with_the_same_headline_are_in_one_group() -> None:
    same = {TALIBAN.document: "Afghanistan", RAID.document: "Afghanistan", ACTOR.document: ""}
    groups = group_documents([ACTOR, TALIBAN, RAID], same)
    assert groups == [{TALIBAN.document, RAID.document}, {ACTOR.document}]


def test_a_finding_on_a_document_has_its_headline() -> None:
    evidence = [ACTOR, TALIBAN, RAID]
    names = Names(WEIGHT, TITLES, [0], {ACTOR.document: "Obituary", RAID.document: ""})
    groups = group_documents(evidence, names.headlines)
    headings, _ = choose_statements(evidence, names, [], 6, 14, 1.0, "en", groups)
    assert headings == ["Obituary", "Omar", "Gaza"]


def test_the_shared_name_is_in_half_of_the_documents() -> None:
    assert find_shared_name([ACTOR, TALIBAN, RAID], WEIGHT) == [0]
    assert find_shared_name([ACTOR, RAID], WEIGHT) == []


def test_unlike_documents_get_a_finding_each_and_no_common_summary() -> None:
    evidence = [ACTOR, TALIBAN, RAID]
    groups = group_documents(evidence)
    headings, chosen = choose_statements(
        evidence, Names(WEIGHT, TITLES, [0]), [], 6, 14, 1.0, "en", groups
    )
    assert headings == ["Hawthorne", "Omar", "Gaza"]
    assert [one.finding for one in chosen] == [0, 1, 2]


def test_the_summary_is_on_the_largest_group() -> None:
    evidence = [TALIBAN, ACTOR, CANCER]
    groups = group_documents(evidence)
    _, chosen = choose_statements(
        evidence, Names(WEIGHT, TITLES, [0]), [], 6, 14, 1.0, "en", groups
    )
    summary = [one.sentences[0] for one in chosen if one.finding == SUMMARY]
    assert {evidence[at].document for at in summary} <= {0, 1}


def test_the_title_lists_subjects_as_they_stand_in_the_text() -> None:
    headings = ["Cancer: Hawthorne", "Omar", "Gaza", "More"]
    findings = [["died of cancer"], ["Omar said"], ["in Gaza"], ["more"]]
    title = compose_mixed_title(["BBC"], headings, findings)
    assert title == "BBC: cancer (Hawthorne); Omar; Gaza; …"
    assert compose_mixed_title([], headings[1:3], findings[1:3]) == "Different subjects: Omar; Gaza"
    long = [f"{subject} and what came of it at the very end" for subject in ("Fire", "Ice", "Rain")]
    title = compose_mixed_title([], long, findings[:3])
    assert title == f"Different subjects: {long[0]}; {long[1]}; …"
    # A headline may have a colon, which stands before no name.
    headline = "Gaza: Truce holds"
    title = compose_mixed_title([], ["Omar", headline], findings[:2], {headline})
    assert title == f"Different subjects: Omar; {headline}"


@given(st.permutations([ACTOR, CANCER, TALIBAN, RAID]))
def test_groups_do_not_depend_on_the_order_of_sentences(evidence: list[Evidence]) -> None:
    assert sorted(map(sorted, groups_of(*evidence))) == [[0, 1], [2], [3]]


def test_a_document_of_few_words_is_on_no_subject_of_its_own() -> None:
    taught, sails = said(0, "Ada taught Bo.", 0, 1), said(1, "Cy sails.", 2)
    assert groups_of(taught, sails) == [{0, 1}]


@pytest.mark.parametrize(
    ("n_documents", "n_named", "headline", "title"),
    [
        (3, 2, "War in the east", "War in the east (BBC)"),
        (4, 4, "War in the east", "BBC"),
        # A headline of one of three documents does not say what the others are on.
        (3, 1, "War in the east", "BBC"),
        # The name of a member says no more than the member.
        (3, 2, "Omar", "BBC"),
    ],
)
def test_headlines_stand_for_few_documents_without_a_term(
    n_documents: int, n_named: int, headline: str, title: str
) -> None:
    # The document of the sentence comes last of those with the headline.
    numbers = range(TALIBAN.document - n_named + 1, TALIBAN.document - n_named + 1 + n_documents)
    headlines = {n: headline if n <= TALIBAN.document else "" for n in numbers}
    names = Names(WEIGHT, TITLES, [0], headlines)
    draft = Draft([TALIBAN], [0], [], "xx", names, [], "")
    assert choose_reports([draft], 6, 14, 1.0)[0].title == title


def test_the_headline_of_the_summary_is_the_title_of_a_community_of_one_document() -> None:
    headlines = {TALIBAN.document: "War in the east", **{n + 90: "Other" for n in range(9)}}
    draft = Draft([TALIBAN], [0], [], "xx", Names(WEIGHT, TITLES, [0], headlines), [], "", True)
    assert choose_reports([draft], 6, 14, 1.0)[0].title == "War in the east (BBC)"
    several = replace(draft, has_one_document=False)
    assert choose_reports([several], 6, 14, 1.0)[0].title == "BBC"


def test_a_report_leaves_out_what_other_documents_say_of_one_member() -> None:
    heir = said(1, "Hawthorne left a house in Wales to nurses.", 1)
    moved = said(2, "The BBC moved into a building of glass and steel.", 0)
    evidence = [ACTOR, heir, moved, RAID]
    names = Names(WEIGHT, TITLES, [0])
    shown = []
    for groups in ([frozenset({0, 1})], ()):
        _, chosen = choose_statements(evidence, names, [], 6, 14, groups=groups)
        shown.append({evidence[one.sentences[0]].document for one in chosen})
    assert shown == [{0, 1}, {0, 1, 2, 3}]


def test_a_report_of_one_document_has_few_findings_not_under_its_headline() -> None:
    texts = [
        "Hawthorne opened a theatre.",
        "Near Gaza, Hawthorne lost a suitcase.",
        "Omar painted walls.",
        "Omar sold carpets in Gaza for years.",
    ]
    members = [(1,), (1, 3), (2,), (2, 3)]
    evidence = [
        replace(said(7, text, *some), place=(at * 2_000, at * 2_000 + 50))
        for at, (text, some) in enumerate(zip(texts, members, strict=True))
    ]
    headlines = {7: "Life of an actor", 8: "Other"}
    draft = Draft(
        evidence, [*range(4)], [], "xx", Names(WEIGHT, TITLES, [1], headlines), [], "", True
    )
    [choice] = choose_reports([draft], 6, 14, 1.0)
    # Three members: one finding.
    assert len(choice.headings) == 1
    assert "Life of an actor" not in choice.headings[0]
    assert choice.title == "Life of an actor (Hawthorne)"


def test_a_newspaper_is_not_the_name_that_documents_share() -> None:
    assert find_shared_name([TALIBAN], WEIGHT, TALIBAN.entities) == []


def test_long_headlines_do_not_stand_for_documents() -> None:
    evidence = [replace(TALIBAN, document=0), replace(ACTOR, document=1)]
    headlines = {n: f"Measurements of the levels of cold rivers in valley {n}" for n in range(2)}
    draft = Draft(evidence, [0, 1], [], "xx", Names(WEIGHT, TITLES, [0], headlines), [], "")
    shown = choose_reports([draft], 6, 14, 1.0)[0].title
    assert shown == f"{headlines[0]}; {headlines[1]} (BBC)"
    longer = {n: f"{headline}, a new study" for n, headline in headlines.items()}
    draft = replace(draft, names=replace(draft.names, headlines=longer))
    assert choose_reports([draft], 6, 14, 1.0)[0].title == "BBC"


def test_a_name_in_the_genitive_is_not_named_again() -> None:
    assert contains("Ukraine's sanctions", "Ukraine")
    assert contains("The coach’s career", "Coach")
    assert not contains("Ukrainian sanctions", "Ukraine")


def test_a_term_that_documents_share_begins_with_a_capital() -> None:
    title = compose_mixed_title(["sea ice"], ["Ships", "Bears"], [["Ships."], ["Bears."]])
    assert title == "Sea ice: Ships; Bears"
