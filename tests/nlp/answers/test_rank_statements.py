"""The choice of statements that answer a question, and how clear the answer is."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_nlp.answers.features import COLUMN, FEATURES, Asked, Candidates
from graphrag_nlp.answers.rank_statements import (
    CLEARNESS,
    MAX_ROWS,
    MAX_WORDS,
    SentenceAnswer,
    answer_from_sentences,
    read_weights,
)
from graphrag_nlp.answers.statements import Passage, find_stems
from graphrag_nlp.text.languages import language_of

ENGLISH = language_of("en")


def embed(texts: Sequence[str]) -> "np.ndarray[Any, np.dtype[np.float32]]":
    """Return vectors of length 1 whose directions are the initials of the words."""
    vectors = np.zeros((len(texts), 128), np.float32)
    for row, text in zip(vectors, texts, strict=True):
        for word in text.lower().split():
            row[ord(word[0]) % 128] += 1
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)


def read(question: str, *names: str) -> Asked:
    words = tuple(w for w in find_stems(question) if w not in ENGLISH.function_words and len(w) > 2)
    return Asked(question, ENGLISH, tuple(sorted(words)), names, embed([question])[0])


def passages(*texts: str, titles: Sequence[str] = ()) -> list[Passage]:
    return [
        Passage(i, text, titles[i] if titles else f"{i}.txt", score=1 / (i + 1))
        for i, text in enumerate(texts)
    ]


def ask(question: Asked, found: Sequence[Passage], **more: Any) -> SentenceAnswer:
    settings = {"max_statements": 6, "min_similarity": 0.25, **more}
    return answer_from_sentences(question, found, embed, **settings)


def test_there_is_a_weight_for_each_feature() -> None:
    weights = read_weights()
    assert set(weights["features"]) == set(FEATURES)
    assert set(weights["clearness"]) == set(CLEARNESS)
    values = [value for part in weights.values() for value in part.values()]
    assert all(math.isfinite(value) for value in values)


@pytest.mark.parametrize(
    "feature", ["words", "context", "reply", "bridge", "near_words", "similarity"]
)
def test_what_shows_an_answer_has_a_positive_weight(feature: str) -> None:
    assert read_weights()["features"][feature] > 0


def test_the_statement_with_the_words_of_the_question_comes_first() -> None:
    found = ask(
        read("Who repaired the old bridge?"),
        passages("The mill is red. Jan Blum repaired the old bridge in May.", "Bern is a town."),
    )
    assert found.chosen[0].statement.text == "Jan Blum repaired the old bridge in May."
    assert found.chosen[0].coverage == pytest.approx(1)


def test_a_reply_is_found_by_the_question_before_it() -> None:
    chat = "Time: 5 May\nAnn: Which snack do you like best?\nBob: Pizza, of course!\nAnn: I see."
    found = Candidates(read("Which snack does Bob like best?", "Bob"), passages(chat))
    replies = found.values[:, COLUMN["reply"]]
    assert replies.argmax() == 1
    assert replies[1] > 0


def test_a_statement_leads_to_the_document_that_it_names() -> None:
    asked = read("When was the director of Blue Harbour born?", "Blue Harbour")
    found = Candidates(
        asked,
        passages(
            "The film Blue Harbour has the director Ann Bell.",
            "She was born in 1950.",
            "He was born in 1960.",
            titles=("Blue Harbour", "Ann Bell", "Otto Lenz"),
        ),
    )
    assert (found.values[:, COLUMN["bridge"]] > 0).tolist() == [False, True, False]


def test_words_of_another_language_are_found_by_their_patterns() -> None:
    import re

    asked = Asked("bridge", ENGLISH, ("bridg",), translations={"bridg": re.compile("brücke")})
    [german] = [Passage(0, "Die Brücke ist alt und rot.", language="de")]
    assert Candidates(asked, [german]).coverage.tolist() == [1.0]
    assert Candidates(asked, [Passage(0, german.text)]).coverage.tolist() == [0.0]


def test_a_certain_value_stands_before_the_statement() -> None:
    found = ask(
        read("When was the old mill of Altdorf built?", "Altdorf"),
        passages("The old mill of Altdorf was built in 1801.", "Bern is a town.", "It is red."),
    )
    assert (found.opening, found.is_clear) == ("1801", True)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("When was the old mill of Altdorf built?", "The old mill of Altdorf was built by Jan."),
        (
            "When was the old mill of Altdorf built?",
            "The old mill of Altdorf was built in 1801, not in 1802.",
        ),
        ("Who built the old mill of Altdorf?", "Jan Blum built the old mill of Altdorf in 1801."),
        ("Was Tom Crean at the South Pole?", "Tom Crean opened the South Pole Inn in 1927."),
    ],
    ids=("none", "two", "a name", "yes or no"),
)
def test_nothing_uncertain_stands_before_a_statement(question: str, text: str) -> None:
    found = ask(read(question, "Altdorf", "Tom Crean", "South Pole"), passages(text))
    assert found.opening == ""


def test_an_answer_that_is_as_likely_as_others_and_lacks_the_words_is_unclear() -> None:
    names = ("Ann", "Ben", "Jan", "Tom", "Eva", "Max", "Lea", "Udo")
    texts = [f"{name} met Olga in the garden of the mill." for name in names]
    asked = read("Which surgeon sutured the elbow of Olga?", "Olga")
    assert not ask(asked, passages(*texts)).is_clear
    texts.append("The surgeon Rosa Klein sutured the elbow of Olga in May.")
    assert ask(asked, passages(*texts)).is_clear


def test_near_duplicates_are_quoted_once() -> None:
    text = "Jan Blum repaired the old bridge in May."
    found = ask(read("Who repaired the old bridge?"), passages(text, f"{text} It is red."))
    assert [c.statement.text for c in found.chosen].count(text) == 1


def test_names_of_speakers_are_written_as_in_the_question() -> None:
    chat = "Time: 5 May\nLiHua: I like pizza very much.\nAnnLee: I like soup very much."
    found = ask(read("What does Li Hua like?", "Li Hua"), passages(chat))
    assert {c.statement.label for c in found.chosen} <= {"Li Hua", "Ann Lee"}
    found = ask(read("What does LiHua like?", "LiHua"), passages(chat))
    assert {c.statement.label for c in found.chosen} <= {"LiHua", "AnnLee"}


def test_without_passages_there_is_no_answer() -> None:
    assert ask(read("Who repaired the bridge?"), []) == SentenceAnswer()
    assert ask(read("Who repaired the bridge?"), passages("#", "")) == SentenceAnswer()


SENTENCES = st.lists(
    st.sampled_from("the old mill bridge Jan Blum built sold in 1801 red Bern town".split()),
    min_size=2,
    max_size=30,
).map(lambda words: " ".join(words).capitalize() + ".")


@given(texts=st.lists(SENTENCES, max_size=8), most=st.integers(1, 6))
def test_an_answer_stays_within_its_limits(texts: list[str], most: int) -> None:
    found = ask(read("When was the old mill built?"), passages(*texts), max_statements=most)
    words = [len(c.statement.said.split()) for c in found.chosen]
    assert len(words) <= most
    # The first statement is quoted as a whole.
    assert sum(words) <= max(MAX_WORDS, words[0] if words else 0)
    scores = [c.score for c in found.chosen]
    assert scores == sorted(scores, reverse=True)
    assert bool(found.chosen) == bool(found.ranked)


def test_all_that_is_said_of_a_name_answers_a_question_of_the_name_alone() -> None:
    found = passages(
        "A storm came in May. Two boats sank.",
        "Frank Wild was a sailor from Yorkshire. Frank Wild led the party on the island.",
        "The Quest sank off Labrador.",
    )
    answer = ask(read("Who was Frank Wild?", "Frank Wild"), found)
    assert answer.is_clear
    assert answer.chosen[0].statement.text == "Frank Wild was a sailor from Yorkshire."
    assert not ask(read("Who was Anna Wild?", "Anna Wild"), found).is_clear


STATIONS = """| Station | Town | Depth | Status |
| --- | --- | --- | --- |
| ST-1 | Oakford | 120 | open |
| ST-2 | Oakford | 80 | closed |
| ST-3 | Glenhaven | 45 | closed |
| ST-4 | Glenhaven | 46 | open |
"""


@pytest.mark.parametrize(
    ("question", "rows", "is_clear"),
    [
        ("Which stations are closed?", [2, 3], True),
        ("Which stations in Glenhaven are closed?", [3], True),
        ("Which station has the depth 80?", [2], True),
        ("Which is deeper, ST-1 or ST-3?", [1, 3], False),
        ("What is the depth of ST-1 and ST-3?", [1, 3], True),
        ("Is ST-1 closed?", [1], False),
        ("Who is the mayor of Glenhaven?", [], False),
    ],
)
def test_a_question_that_names_cells_is_answered_with_their_rows(
    question: str, rows: list[int], is_clear: bool
) -> None:
    names = [name for name in ("Glenhaven", "ST-1", "ST-3") if name in question]
    found = ask(read(question, *names), passages(STATIONS, "Towns have a council and a river."))
    said = [one.statement.cells[0] for one in found.chosen if one.statement.cells]
    assert said == [f"ST-{number}" for number in rows]
    assert (found.n_rows, found.is_clear) == (len(rows), is_clear)


def test_a_list_of_rows_says_how_many_there_are() -> None:
    table = "".join(f"| P-{number} | idle |\n" for number in range(2 * MAX_ROWS))
    found = ask(read("Which pumps are idle?"), passages(f"| Pumps | Status |\n|---|---|\n{table}"))
    assert (len(found.chosen), found.n_rows) == (MAX_ROWS, 2 * MAX_ROWS)
