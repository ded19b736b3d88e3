"""Candidate sentences, which are chosen before their texts are read."""

import numpy as np
import polars as pl

from graphrag_nlp.reports.candidates import (
    choose_candidates,
    choose_theme_leads,
    drop_repeats_of_siblings,
    find_leads,
    rate_quality,
)

NO_LEADS = pl.DataFrame(schema={"report": pl.Int32, "sentence": pl.Int32})


def choose(
    members: dict[str, list[object]],
    rows: list[int],
    document: np.ndarray,
    quality: np.ndarray,
    theme_leads: pl.DataFrame = NO_LEADS,
) -> pl.DataFrame:
    """Choose among the sentences `rows` of the members; `document` is that of all sentences."""
    shard = {
        "members": pl.DataFrame(members),
        "sentences": pl.DataFrame(
            {
                "sentence": rows,
                "quality": quality[rows],
                "early": [False] * len(rows),
                "document": document[rows],
            }
        ),
        "leads": find_leads(document, quality),
        "theme_leads": theme_leads,
    }
    return choose_candidates(shard, 0.5)["candidates"]


def test_a_document_with_many_sentences_leaves_candidates_to_other_documents() -> None:
    n, others = 200, 15
    document = np.array([0] * n + [*range(1, others + 1)])
    quality = np.array([1.0] * n + [0.1] * others, np.float32)
    members = {"report": [0], "entity": [5], "weight": [1.0], "n_sentences": [n + others]}
    chosen = choose(members, [*range(n + others)], document, quality)["sentence"]
    # Half of the 22 candidates; the lead of the main document is one of them.
    assert (chosen < n).sum() == 11
    assert len(chosen) == 22


def test_a_report_gets_the_lead_of_its_main_document() -> None:
    document = np.array([0, 0, 0, 0, 1, 1])
    members = {"report": [0], "entity": [5], "weight": [2.0], "n_sentences": [4]}
    chosen = choose(members, [1, 2, 3, 5], document, np.ones(6, np.float32))
    assert sorted(chosen["sentence"]) == [0, 1, 2, 3, 5]
    assert chosen.filter(sentence=0).select("entities", "centrality").rows() == [([], 0.0)]


def test_a_report_with_one_sentence_gets_the_first_fit_sentences_of_its_document() -> None:
    document = np.array([0, 0, 0, 0, 0])
    quality = np.array([0.01, 1.0, 0.8, 0.9, 1.0], np.float32)
    assert find_leads(document, quality)["sentence"].to_list() == [1, 2, 3]
    members = {"report": [0], "entity": [5], "weight": [2.0], "n_sentences": [1]}
    chosen = choose(members, [4], document, quality)
    assert chosen.select("sentence", "place").rows() == [(4, 0), (1, 1), (2, 2)]


def test_sentences_of_heavy_members_come_first_and_lists_of_names_do_not() -> None:
    document, quality = np.array([0, 1, 2, 3]), np.array([1.0, 1.0, 1.0, 1.0], np.float32)
    # Members 1 to 9 stand in sentence 2, member 1 in sentence 0, and members 1 and 2 in 3.
    members = {
        "report": [0] * 9,
        "entity": [*range(1, 10)],
        "weight": [3.0, 2.0] + [0.1] * 7,
        "n_sentences": [3, 2] + [1] * 7,
    }
    chosen = choose(members, [0, 2, 3, 2, 3] + [2] * 7, document, quality)
    assert chosen["sentence"].to_list() == [3, 0, 2]
    assert chosen["centrality"][0] == 1.0
    assert chosen["entities"].to_list() == [[1, 2], [1], [*range(1, 10)]]


def test_the_first_sentences_of_the_documents_of_a_theme_are_candidates() -> None:
    document = np.array([0, 0, 0, 1, 1, 1])
    leads = find_leads(document, np.ones(6, np.float32))
    # Document 0 belongs to the theme of report 4, and document 1 to none.
    chosen = choose_theme_leads(leads, np.where(leads["document"] == 0, 4, -1))
    assert chosen.rows() == [(4, 0), (4, 1)]


def test_siblings_share_no_sentence() -> None:
    chosen = pl.DataFrame({"report": [0, 1, 2, 1], "sentence": [7, 7, 7, 8], "place": [1, 0, 0, 1]})
    kept = drop_repeats_of_siblings(chosen, np.array([5, 5, 6]), np.array([3, 9, 2]))
    assert set(kept.select("report", "sentence").rows()) == {(1, 7), (2, 7), (1, 8)}


def test_whole_sentences_of_a_normal_length_are_best() -> None:
    length = [100, 30, 400, 100, 10, 300]
    sentences = pl.DataFrame(
        {
            "document": [0] * 6,
            "start_char": [0] * 6,
            "end_char": length,
            "quotable": [True, True, True, False, False, False],
            "line": [0] * 6,
        }
    )
    expected = [1.0, 0.5, 0.5, 0.01, 0.0, 0.0]
    assert np.allclose(rate_quality(sentences), expected)
