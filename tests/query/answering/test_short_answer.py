"""Whole answers without a model: text and citations."""

from collections.abc import Sequence

import pytest

from graphrag_index.schema.settings.searches import LocalSearch
from graphrag_query.answer import Answer, Context
from graphrag_query.answering.short_answer import answer_from_sentences
from graphrag_query.index import Index
from graphrag_query.question.question import Question


def ask(index: Index, question: str, texts: Sequence[str]) -> Answer:
    """Answer a question from texts, each of which is a document."""
    units = {
        i: {
            "human_readable_id": i,
            "start_char": 0,
            "text": text,
            "title": f"{i}.txt",
            "document": i,
            "document_id": str(i),
            "path": f"{i}.txt",
            "prepended": "",
        }
        for i, text in enumerate(texts)
    }
    asked = Question(question, index.store)
    answer = answer_from_sentences(
        asked, units, dict.fromkeys(units, 1.0), LocalSearch(), Context({}, "", 0, {})
    )
    for citation in answer.citations:
        text = texts[int(citation.document_id)]
        assert text[citation.start_char : citation.end_char] == citation.quote
    return answer


@pytest.mark.parametrize(
    ("question", "above", "items"),
    [
        ("Which tools does the miller need?", "The miller needs these tools", "a saw|two files"),
        ("Welche Werkzeuge braucht der Müller?", "Werkzeuge für Müller", "eine Säge|zwei Feilen"),
        ("Quels outils faut-il au meunier ?", "Outils du meunier", "une scie|deux limes"),
        ("¿Qué herramientas usa el molinero?", "Herramientas del molinero", "una sierra|dos limas"),
    ],
)
def test_a_list_answers_as_a_list(index: Index, question: str, above: str, items: str) -> None:
    first, second = items.split("|")
    text = f"{above}:\n\n- {first}\n- {second}\n"
    expected = f"{above}:\n- {first} [1]\n- {second} [2]"
    assert ask(index, question, [text]).text == expected


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        (
            "Which parts does the mill have?",
            "The mill has three parts: the first is a wheel; the second, a stone; and a sieve.",
            "The mill has three parts|the first is a wheel|the second, a stone|a sieve",
        ),
        (
            "Which parts does the mill have?",
            "The mill has two parts. The first part is a wheel. It is red. The second is a stone.",
            "The mill has two parts|The first part is a wheel.|The second is a stone.",
        ),
        (
            "Which parts does the mill have?",
            "The mill has 2 components. First comes a wheel. Finally, there is a stone.",
            "The mill has 2 components|First comes a wheel.|Finally, there is a stone.",
        ),
        (
            "Welche Teile hat die Mühle?",
            "Die Mühle hat zwei Teile. Der erste ist ein Rad. Der zweite ist ein Stein.",
            "Die Mühle hat zwei Teile|Der erste ist ein Rad.|Der zweite ist ein Stein.",
        ),
        (
            "Quelles parties a le moulin ?",
            "Le moulin a deux parties : une roue en bois ; et une meule grise.",
            "Le moulin a deux parties|une roue en bois|une meule grise",
        ),
        (
            "¿Qué partes tiene el molino?",
            "El molino tiene dos partes. La primera es una rueda. La segunda es una piedra.",
            "El molino tiene dos partes|La primera es una rueda.|La segunda es una piedra.",
        ),
    ],
)
def test_a_list_in_running_text_answers_as_a_list(
    index: Index, question: str, text: str, expected: str
) -> None:
    above, *items = expected.split("|")
    lines = (f"- {item} [{number}]" for number, item in enumerate(items, 1))
    assert ask(index, question, [text]).text == "\n".join([f"{above}:", *lines])


@pytest.mark.parametrize(
    ("question", "text"),
    [
        # The number says something else.
        (
            "Which parts did the mill sell?",
            "The mill sold parts in two years. The first was hard. The second was good.",
        ),
        # One item is missing.
        (
            "Which parts has the mill?",
            "The mill has three parts. The first is red. The second too.",
        ),
        # One item answers.
        ("What is the last part of the mill?", "The mill has two parts: a red wheel; and a stone."),
        ("Which part of the mill is red?", "The mill has two parts: a red wheel; and a stone."),
    ],
)
def test_other_sentences_are_no_list(index: Index, question: str, text: str) -> None:
    assert "- " not in ask(index, question, [text]).text


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


@pytest.mark.parametrize(
    ("question", "texts", "expected"),
    [
        (
            "Which ships did Olga Nowak use?",
            [
                "Olga Nowak sailed in the ship Alpha. The Alpha was a small ship.",
                "The Beta was a ship of oak. In 1912 Olga Nowak led a voyage in the Beta.",
                "The Gamma was a ship. Jan Blum followed Olga Nowak and sailed in the Gamma.",
            ],
            ["Alpha", "Beta"],
        ),
        (
            "Which ships were burnt by pirates?",
            [
                "The ship Alpha was burnt by pirates.",
                "The Beta was a ship of oak. The Beta was burnt by pirates in May.",
                "The Gamma was a ship. The Gamma was not burnt by pirates.",
                "Pirates burnt the Old Mill.",
            ],
            ["Alpha", "Beta"],
        ),
        (
            "Quels navires furent coulés par des pirates ?",
            [
                "Le navire Alpha fut coulé par des pirates.",
                "Le navire Beta fut coulé par des pirates en mai.",
            ],
            ["Alpha", "Beta"],
        ),
        (
            "¿Qué barcos hundieron los piratas?",
            [
                "Los piratas hundieron el barco Alpha.",
                "En mayo los piratas hundieron el barco Beta.",
            ],
            ["Alpha", "Beta"],
        ),
        (
            "Welche Schiffe wurden von Piraten versenkt?",
            [
                "Das Schiff Alpha wurde von Piraten versenkt.",
                "Das Schiff Beta wurde im Mai von Piraten versenkt.",
            ],
            ["Alpha", "Beta"],
        ),
        (
            "Welche Schiffe benutzte Otto Nordenskjöld?",
            [
                "Otto Nordenskjöld benutzte das Schiff Alpha.",
                "Otto Nordenskjöld benutzte im Mai das Schiff Beta.",
            ],
            ["Alpha", "Beta"],
        ),
    ],
)
def test_a_list_is_gathered_from_several_documents(
    index: Index, question: str, texts: Sequence[str], expected: Sequence[str]
) -> None:
    answer = ask(index, question, texts)
    assert answer.text.startswith(f"{', '.join(expected)} — ")
    assert all(
        name in citation.quote for name, citation in zip(expected, answer.citations, strict=True)
    )


def test_a_long_list_has_a_line_for_each_member(index: Index) -> None:
    names = ["Alpha", "Beta", "Gamma", "Delta"]
    texts = [f"The ship {name} was burnt by pirates." for name in names]
    expected = "\n".join(f"- {name} [{number}]" for number, name in enumerate(names, 1))
    assert ask(index, "Which ships were burnt by pirates?", texts).text == expected


def test_a_name_that_a_line_break_splits_is_listed_on_one_line(index: Index) -> None:
    names = ["Old\nAlpha", "Beta", "Gamma", "Delta"]
    texts = [f"The ship {name} was burnt by pirates." for name in names]
    answer = ask(index, "Which ships were burnt by pirates?", texts)
    assert answer.text.startswith("- Old Alpha [1]\n- Beta [2]\n")


@pytest.mark.parametrize(
    "question", ["Which ship was burnt by pirates?", "Where did pirates burn the ships?"]
)
def test_a_question_for_one_thing_gathers_no_list(index: Index, question: str) -> None:
    texts = ["The ship Alpha was burnt by pirates.", "The ship Beta was burnt by pirates."]
    assert not ask(index, question, texts).text.startswith(("Alpha, Beta", "- "))


def test_a_number_counts_the_asked_noun_of_the_asked_subject(index: Index) -> None:
    texts = [
        "Four ponies started with Jan Blum.",
        "Olga Nowak followed the example of Jan Blum and brought nineteen ponies.",
    ]
    answer = ask(index, "How many ponies did Olga Nowak take?", texts)
    assert answer.citations[0].quote == texts[1]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_purpose_is_a_reason(index: Index, *, reverse: bool) -> None:
    texts = ["Olga Nowak went to Altdorf to find work.", "Olga Nowak went to Altdorf in May."]
    question = "Why did Olga Nowak go to Altdorf?"
    answer = ask(index, question, texts[::-1] if reverse else texts)
    assert answer.citations[0].quote == texts[0]


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


NEAR_MISSES = [
    f"{person} of Altdorf met Olga Nowak in the {place} and asked the smith for help."
    for person, place in zip(
        ("Ann Bell", "Ben Ney", "Jan Blum", "Otto Lenz", "Rosa Klein", "Tom Ames"),
        ("garden", "church", "harbour", "market", "forest", "station"),
        strict=True,
    )
]


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


def test_what_is_asked_is_quoted_with_the_sentence_behind_it(index: Index) -> None:
    text = "The mill of Altdorf is not safe. Its beams are rotten. The miller lives in Graz."
    answer = ask(index, "Why is the mill of Altdorf not safe?", [text])
    assert answer.text.startswith("The mill of Altdorf is not safe. Its beams are rotten. [1]")


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        (
            "Why did the Bank of Altdorf raise its rate?",
            "The Bank of Altdorf raised its rate in June 2020, since prices had risen.",
            "Its president Paul Stern resigned on 4 July 2020.",
        ),
        (
            "Why was the hall of Altdorf closed?",
            "The hall of Altdorf was closed in June, as the roof leaked.",
            "It was built in 1950.",
        ),
        (
            "Why did the mill of Altdorf close?",
            "Hoping for a sale, the owner had the mill of Altdorf closed.",
            "It was built in 1950.",
        ),
        (
            "Why did the mill of Altdorf close?",
            "Since the oven broke, the mill of Altdorf closed.",
            "They drank tea with the miller of Graz.",
        ),
        (
            "Why was the pool of Altdorf closed?",
            "The pool of Altdorf was closed.",
            "A new gym was opened in the town.",
        ),
        (
            "Pourquoi le moulin d'Altdorf a-t-il fermé ?",
            "Comme le toit fuyait, le moulin d'Altdorf a fermé.",
            "Il est rouge et assez grand.",
        ),
        (
            "¿Por qué cerró el molino de Altdorf?",
            "Como llovía, cerró el molino de Altdorf.",
            "Su puerta es roja y muy grande.",
        ),
        (
            "Warum schloss die Mühle von Altdorf?",
            "Durch ein Hochwasser schloss die Mühle von Altdorf.",
            "Sie ist rot und sehr groß.",
        ),
    ],
)
def test_what_follows_a_reason_or_another_subject_is_not_quoted_with_it(
    index: Index, question: str, first: str, second: str
) -> None:
    answer = ask(index, question, [f"{first} {second}"])
    assert answer.citations[0].quote == first


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (
            "Why is the mill of Altdorf closed?",
            "The mill of Altdorf is closed. It lost its old roof.",
        ),
        (
            "Why is the mill of Altdorf closed?",
            "The mill of Altdorf has been closed since May. This is due to a flood.",
        ),
        (
            "Why is the mill of Altdorf closed?",
            "The mill of Altdorf is closed. The reason is a flood.",
        ),
        (
            "Warum ist die Mühle von Altdorf zu?",
            "Die Mühle von Altdorf ist zu. Ihr Dach ist kaputt.",
        ),
    ],
)
def test_a_reason_behind_what_is_asked_is_quoted_with_it(
    index: Index, question: str, text: str
) -> None:
    assert ask(index, question, [text]).citations[0].quote == text
