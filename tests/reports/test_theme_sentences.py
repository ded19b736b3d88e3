"""Sentences of reports on themes: the starts of central documents, each on another event."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from graphrag_index.reports.candidate_sentences import (
    choose_best_sentences,
    find_leads,
    find_theme_leads,
)
from graphrag_index.reports.chosen_statements import SUMMARY, Choice, Evidence
from graphrag_index.reports.extractive import choose_statements
from graphrag_index.reports.own_sentences import OwnSentences
from graphrag_index.reports.report_titles import Names
from graphrag_index.reports.theme_sentences import ThemeSentences
from graphrag_index.reports.theme_titles import ThemeName

TITLES = {0: "Harbour Council", 1: "Iceland"}
FLOODS = ThemeName("Floods", ["flood", "river", "Iceland"])


def said(document: int, text: str, start: int = 0, *entities: int) -> Evidence:
    return Evidence(text, entities, document, document, 1.0, None, (start, start + len(text)))


RIVER = said(0, "The flood of the river Skjern drove hundreds from their homes in Denmark.")
LATER = said(0, "Rescue teams from Aarhus brought blankets to the schools.", 80)
AGAIN = said(1, "Hundreds fled their homes as the river Skjern in Denmark rose to a flood.")
ICELAND = said(2, "A glacier in Iceland caused a flood that tore down two bridges near Vik.")
DAM = said(3, "Engineers in Portugal watch a river dam after weeks of rain.")
MUSIC = said(4, "The Harbour Council gave a prize to three violin makers from Ghent.", 0, 0)


def choose(
    sentences: Sequence[Evidence],
    theme: ThemeName = FLOODS,
    headlines: dict[int, str] | None = None,
    most: int = 14,
) -> tuple[list[str], dict[int, list[str]]]:
    """Return the headings, and the sentences of the summary and of each finding."""
    names = Names({0: 9.0, 1: 1.0}, TITLES, [], headlines or {})
    headings, chosen = choose_statements(
        sentences,
        names,
        (),
        6,
        most,
        choose=ThemeSentences(theme, sentences, headlines or {}).choose,
    )
    texts: dict[int, list[str]] = {}
    for one in chosen:
        texts.setdefault(one.finding, []).append(_text_of(one, sentences))
    return headings, texts


def _text_of(choice: Choice, sentences: Sequence[Evidence]) -> str:
    return sentences[choice.sentences[0]].text


def test_a_summary_has_the_beginnings_of_central_documents_on_different_events() -> None:
    _, texts = choose([MUSIC, LATER, DAM, AGAIN, ICELAND, RIVER])
    # The one event is told once, and the prize has no term of the theme.
    assert len(texts[SUMMARY]) == 3
    assert {ICELAND.text, DAM.text} < {*texts[SUMMARY]}
    assert len({RIVER.text, AGAIN.text} & {*texts[SUMMARY]}) == 1
    assert MUSIC.text not in texts[SUMMARY]


def test_a_finding_is_a_document_under_its_headline_with_what_follows() -> None:
    rhine = said(5, "A flood of the river Rhine closed ports in Iceland and Basel.")
    others = [ICELAND, DAM, rhine]
    headlines = {0: "Flood in Denmark", 2: "Bridges fall", 3: "A dam under watch"}
    headings, texts = choose([*others, replace(RIVER, wording=0.45), LATER], headlines=headlines)
    # The dam has one term only, which is too few for the summary.
    assert {*texts[SUMMARY]} == {ICELAND.text, rhine.text}
    found = {heading: texts[at] for at, heading in enumerate(headings)}
    assert found["Flood in Denmark"] == [RIVER.text, LATER.text]
    assert found["A dam under watch"] == [DAM.text]


def test_a_theme_without_a_title_has_no_summary_but_findings_on_all() -> None:
    headlines = {0: "Flood in Denmark", 2: "Bridges fall", 4: "Prize for violin makers"}
    headings, texts = choose([MUSIC, ICELAND, RIVER], ThemeName("", []), headlines)
    assert SUMMARY not in texts
    assert {*headings} == {*headlines.values()}


def test_a_sentence_that_needs_others_gives_way() -> None:
    clear = said(6, "Boats carried food through the flood of the river Elbe to Dresden.")
    unclear = replace(ICELAND, wording=0.35)
    _, texts = choose([unclear, clear], most=2)
    assert texts[SUMMARY] == [clear.text]


def test_a_theme_gets_the_first_sentences_of_its_documents() -> None:
    # Three documents with two sentences each; a theme has the first two of them.
    document = np.repeat([0, 1, 2], 2)
    fitness = np.ones(6, np.float32)
    leads = find_leads(document, fitness)
    own = OwnSentences(document, [(np.array([1]), np.array([1, 1, -1]))])
    of_theme = find_theme_leads(leads, own)
    assert of_theme.rows() == [(1, 0), (1, 1), (1, 2), (1, 3)]
    # Entity 7 is mentioned in the last sentence of each document.
    members = {"report": [0, 1], "entity": [7, 7], "weight": [2.0] * 2, "n_sentences": [3, 2]}
    rows = [1, 3, 5, 1, 3]
    sentences = {"sentence": rows, "fitness": fitness[rows], "document": document[rows]}
    shard = {"members": pl.DataFrame(members), "sentences": pl.DataFrame(sentences)}
    shard |= {"leads": leads.clear(), "theme_leads": of_theme}
    chosen = choose_best_sentences(shard, 0.5)["chosen"]
    assert chosen.filter(report=0)["sentence"].to_list() == [1, 3, 5]
    theme = chosen.filter(report=1)
    assert sorted(theme["sentence"]) == [0, 1, 2, 3]
    assert theme.filter(pl.col("entities").list.len() > 0)["sentence"].to_list() == [1, 3]
