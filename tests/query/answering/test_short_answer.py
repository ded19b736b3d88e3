"""Whole answers without a model: text and citations."""

import pytest

from graphrag_query.index import Index
from tests.fixtures.sentence_answers import ask

NEAR_MISSES = [
    f"{person} of Altdorf met Olga Nowak in the {place} and asked the smith for help."
    for person, place in zip(
        ("Ann Bell", "Ben Ney", "Jan Blum", "Otto Lenz", "Rosa Klein", "Tom Ames"),
        ("garden", "church", "harbour", "market", "forest", "station"),
        strict=True,
    )
]


def test_an_answer_in_a_few_words_stands_before_the_sentence(index: Index) -> None:
    answer = ask(index, "When was the mill built?", ["The mill was built in 1801. It is red."])
    assert answer.text.startswith("1801 — The mill was built in 1801. [1]")


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How did the ship get free?", "The crew spread ash on the ice. Then the ship got free."),
        ("Wie kam das Schiff frei?", "Sie streuten Asche auf das Eis. Dann kam das Schiff frei."),
        ("Why did the ship sink?", "The ice broke the hull. Then the ship did sink."),
    ],
)
def test_what_happened_is_quoted_with_what_came_before(
    index: Index, question: str, text: str
) -> None:
    assert ask(index, question, [text]).text == f"{text} [1]"


def test_a_sentence_that_says_who_did_it_is_quoted_alone(index: Index) -> None:
    text = "The bakers left in May. The bakery was closed by the town."
    assert ask(index, "How was the bakery closed?", [text]).text.startswith("The bakery was")


def test_a_sentence_that_refers_to_nothing_is_quoted_alone(index: Index) -> None:
    text = "A cook came aboard. The men of Elephant Island sailed to a port."
    answer = ask(index, "How did the men of Elephant Island sail to a port?", [text])
    assert answer.text.startswith("The men")


def test_a_heading_is_not_quoted_beside_sentences(index: Index) -> None:
    text = "The old mill and the red school\n\nThe red school stands by the old mill."
    answer = ask(index, "Where is the red school of the mill?", [text])
    assert [c.quote for c in answer.citations] == ["The red school stands by the old mill."]


def test_a_number_counts_the_asked_noun_of_the_asked_subject(index: Index) -> None:
    texts = [
        "Four ponies started with Jan Blum.",
        "Olga Nowak followed the example of Jan Blum and brought nineteen ponies.",
    ]
    answer = ask(index, "How many ponies did Olga Nowak take?", texts)
    assert answer.citations[0].quote == texts[1]


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        (
            "When did Olga Nowak marry?",
            "Olga Nowak was born in 1950 in Altdorf. She sold the mill in 1990.",
            'No sentence that was read on this says "marry". Nearest: Olga Nowak was born',
        ),
        (
            "When was the mill of Altdorf sold?",
            "The mill of Altdorf was sold to Olga Nowak. She lives in Altdorf.",
            "No sentence that was read on this says when. Nearest: ",
        ),
        (
            "How old is Olga Nowak?",
            "Olga Nowak was praised by 312 visitors of the mill.",
            'No sentence that was read on this says "old". Nearest: ',
        ),
    ],
)
def test_an_answer_begins_with_what_no_sentence_says(
    index: Index, question: str, text: str, expected: str
) -> None:
    assert ask(index, question, [text]).text.startswith(expected)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("When did Olga Nowak relocate to Bern?", "Olga Nowak moved to Bern in 1985."),
        ("How far is Altdorf from Bern?", "Altdorf lies 90 km from Bern."),
        # No document has the word, so that they may say it in another one.
        ("When did Olga Nowak matriculate?", "Olga Nowak entered the school in 1968."),
        ("When did Olga Nowak leave Bern?", "Olga Nowak left Bern three years after the war."),
        ("When did Olga Nowak sell the mill?", "Olga Nowak sold the mill at Whitsun."),
        ("When was the mill of Altdorf built?", "The mill of Altdorf was built in the nineties."),
        (
            "How many children does Olga Nowak have?",
            "Olga Nowak has children: the twins Ann and Ben.",
        ),
        (
            "When did Olga Nowak marry Ben?",
            "Olga Nowak wed Ben in the spring. The Ney sisters marry.",
        ),
        (
            "In what year did the husband of Olga Nowak die?",
            "Olga Nowak married Ben Ney in Bern. Ben Ney passed away in 1960.",
        ),
        ("When is the mill of Altdorf open?", "The mill of Altdorf is open on weekends."),
        ("How many boats does Jan Kerner own?", "Jan Kerner owns several boats."),
        ("How many children does Olga Nowak have?", "Olga Nowak has no children."),
        (
            "Where did Tobias leave the sledge?",
            "Mara (09:12): Where did you leave the sledge after the talk on Monday? I need it.\n"
            "Tobias (09:15): Oh right, sorry about that. I had to run. It's in the cupboard next "
            "to the copy room. The key is with Ines.\n"
            "Mara (09:16): Great, thanks! Ines, can you bring the key at ten?\n"
            "Ines (09:20): Sure thing. I'm in the lab until then anyway.",
        ),
    ],
)
def test_what_is_said_in_other_words_is_not_called_unsaid(
    index: Index, question: str, text: str
) -> None:
    assert "No sentence that was read" not in ask(index, question, [text]).text


def test_only_the_nearest_sentences_follow_if_none_answers_clearly(index: Index) -> None:
    answer = ask(index, "Who sutured the elbow of Olga Nowak in Altdorf?", NEAR_MISSES)
    before = 'No sentence found answers this clearly. Nearest, without "sutured", "elbow": '
    assert answer.text == f"{before}{answer.citations[0].quote} [1]"


def test_what_says_another_word_of_the_question_is_near_too(index: Index) -> None:
    texts = [*NEAR_MISSES, "Olga Nowak later had an operation on her elbow."]
    answer = ask(index, "Which surgeon sutured the wrist or elbow of Olga Nowak?", texts)
    assert answer.text.startswith("No sentence found answers this clearly. Nearest, without ")
    assert texts[-1] in [citation.quote for citation in answer.citations]
    assert len(answer.citations) <= 2


def test_what_many_sentences_say_is_no_unclear_answer(index: Index) -> None:
    texts = [f"Otto Lenz sutured the elbow of Olga Nowak in {year}." for year in range(1960, 1972)]
    answer = ask(index, "Which surgeon sutured the elbow of Olga Nowak?", texts)
    assert answer.text.startswith("Otto Lenz")


def test_words_of_another_language_than_the_documents_prove_nothing(index: Index) -> None:
    answer = ask(index, "Welcher Chirurg nähte den Ellbogen von Olga Nowak?", NEAR_MISSES)
    assert "Satz" not in answer.text


def test_sentences_about_another_name_do_not_answer_a_question_with_one_relation(
    index: Index,
) -> None:
    texts = [
        "Thirty-year-old Jan Blum sits in the corner of an old office of 1,000 square metres.",
        "Olga Nowak leads the laboratory. She says that talent is what matters.",
    ]
    answer = ask(index, "How old is Olga Nowak?", texts)
    assert answer.text.startswith("No sentence found answers this clearly.")
    assert [citation.document_id for citation in answer.citations] == ["1"]


def test_a_short_sentence_answers_among_others(index: Index) -> None:
    text = (
        "In July 2021 the river left its banks near the old houses. Four houses collapsed. "
        "The mayor said that houses near a river collapsed more often than others."
    )
    answer = ask(index, "How many houses collapsed?", [text])
    assert answer.text.startswith("Four houses — Four houses collapsed. [1]")


def test_a_cell_leads_to_a_sentence_of_another_document(index: Index) -> None:
    table = (
        "| id | name | manufacturer | price |\n| --- | --- | --- | --- |\n"
        "| M-1 | Lathe Alpha | Altdorf Steel | 500 |\n| M-2 | Drill Beta | Graz Mills | 900 |\n"
    )
    texts = [
        table,
        "Altdorf Steel is a maker of tools. The firm employs 410 people.",
        "Graz Mills is a maker of tools. The firm employs 230 people.",
    ]
    question = "How many people work for the manufacturer of the drill Beta?"
    answer = ask(index, question, texts)
    assert answer.text == "The firm employs 230 people. [1] M-2, manufacturer: Graz Mills [2]"
