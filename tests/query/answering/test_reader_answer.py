"""What is quoted with the span that a reader has found, and what stays as it is."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.searches import LocalSearch, Search
from graphrag_query.answer import Answer, Context
from graphrag_query.answering.quoted_answer import quote_answer
from graphrag_query.answering.reader_answer import MAX_TEXT_UNITS
from graphrag_query.index import Index
from graphrag_query.question.question import Question
from tests.fixtures.own_readers import write_reader

SPANS = {
    "who": "Li Hua",
    "many": "sieben Räder",
    "did": "a wheel",
    "when": "On 3 May the mill burned down",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_reader(tmp_path_factory.mktemp("reader"), SPANS)


def ask(
    index: Index,
    folder: Path | None,
    question: str,
    *texts: str,
    places: Mapping[int, int] | None = None,
) -> Answer:
    """Answer a question from text units, the best first.

    Each is a document, except those in `places`: number → start in the document of the first one.
    """
    places = places or {}
    units = {
        i: {
            "human_readable_id": i,
            "start_char": places.get(i, 0),
            "text": text,
            "title": f"{i}.txt",
            "document": 0,
            "document_id": "0" if i in places else str(i),
            "path": f"{i}.txt",
            "prepended": "",
            "source": text,
        }
        for i, text in enumerate(texts)
    }
    reader = str(folder) if folder else None
    asked = Question(question, index.store, search=Search(reader_model=reader))
    priors = {i: 1 - i / 100 for i in units}
    answer = quote_answer(asked, units, priors, LocalSearch(), Context({}, "", 0, {}))
    for citation in answer.citations:
        unit = units[citation.text_unit]
        start, end = (
            place - unit["start_char"] for place in (citation.start_char, citation.end_char)
        )
        assert unit["text"][start:end] == citation.quote
    return answer


def test_a_long_text_in_another_script_is_cited_to_the_character(
    index: Index, folder: Path
) -> None:
    filler = "Über die Mühle weiß man 🧭 sonst wenig. " * 200
    text = f"{filler}Die Mühle hat, wie alle sagen, sieben Räder. {filler}"
    answer = ask(index, folder, "How many Räder hat die Mühle?", "Ein Rad.", text)
    sentence = "Die Mühle hat, wie alle sagen, sieben Räder."
    assert answer.text.startswith(f"sieben Räder — {sentence} [1]")
    assert answer.citations[0].start_char == len(filler)


def test_a_speaker_is_quoted_with_what_the_speaker_says(index: Index, folder: Path) -> None:
    text = (
        "Wolfgang: Shall we paint the mill together on Sunday?\n\n"
        "Li Hua: I will gladly paint the mill with you on Sunday.\n\n"
        "Wolfgang: Then bring the brushes and a ladder for the mill, please."
    )
    answer = ask(index, folder, "Who will paint the mill?", text)
    assert answer.citations[0].quote.startswith("Li Hua: I will gladly paint the mill")
    assert answer.text.startswith("Li Hua — Li Hua: I will gladly paint the mill")


def test_a_sentence_that_is_the_span_stands_once(index: Index, folder: Path) -> None:
    text = "The mill was old. On 3 May the mill burned down. The miller built a new one."
    answer = ask(index, folder, "When did the mill burn down?", text)
    assert answer.text.startswith("On 3 May the mill burned down. [1]")
    assert answer.text.count("On 3 May") == 1


def test_text_units_that_overlap_are_quoted_once(index: Index, folder: Path) -> None:
    first = "The mill is old. Li Hua painted the mill in 1990."
    second = "Li Hua painted the mill in 1990. Then it burned."
    places = {0: 0, 1: first.index("Li Hua")}
    answer = ask(index, folder, "Who painted the mill?", first, second, places=places)
    assert answer.text.startswith("Li Hua — Li Hua painted the mill in 1990. [1]")
    assert answer.text.count("painted the mill") == 1


def test_a_turn_is_quoted_whole_and_once(index: Index, folder: Path) -> None:
    text = (
        "Wolfgang: The mill has sieben Räder. We counted them all on Sunday.\n\n"
        "Li Hua: I thought that the mill has fewer of them."
    )
    question = "How many Räder has the mill?"
    answer = ask(index, folder, question, text)
    assert answer.text.startswith("sieben Räder — Wolfgang: The mill has sieben Räder. We counted")
    assert answer.text.count("The mill has sieben") == 1


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        # Yes or no is no span.
        ("Did the mill have a wheel?", ["The mill had a wheel of old oak."]),
        # No span is an answer.
        ("Who painted the mill?", ["Wolfgang painted the mill."]),
        # Nothing is evidence.
        ("Who repairs violins in Ulan Bator?", ["Li Hua eats an apple."]),
        # The reader sees a limited number of text units.
        (
            "Who painted the mill?",
            ["Eva saw the mill."] * MAX_TEXT_UNITS + ["Li Hua saw the mill."],
        ),
    ],
)
def test_the_answer_without_a_reader_stays(
    index: Index, folder: Path, question: str, texts: list[str]
) -> None:
    plain, answer = ask(index, None, question, *texts), ask(index, folder, question, *texts)
    assert (answer.text, answer.citations) == (plain.text, plain.citations)


def test_a_folder_that_does_not_exist_is_an_error_of_the_settings(
    index: Index, tmp_path: Path
) -> None:
    with pytest.raises(
        SettingsError, match=r"^There is no folder .*/none: search\.reader_model is"
    ):
        ask(index, tmp_path / "none", "Who painted the mill?", "Li Hua painted the mill.")
