from collections.abc import Sequence

import pytest

from graphrag_nlp.text.languages import language_of
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from graphrag_query.question.question import Mentions
from graphrag_query.question.question_words import TextWords, language_in, name_spans
from graphrag_query.question.refusals import format_not_mentioned
from graphrag_query.question.unmentioned_names import has_full_name
from graphrag_query.store.index_store import IndexStore
from tests.fixtures.fake_llm import question_to

TEXTS = [
    "Captain Scott and Douglas Mawson met Emil Racoviță at Cape Evans.",
    "Roald Amundsen stood at the South Pole. Marie Byrd Land was not yet named.",
]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Did Marie Curie meet Ernest Shackleton?", ["Marie Curie", "Ernest Shackleton"]),
        ("Where was Mawson's hut?", ["Mawson"]),
        ("What became of Bay of Whales and the U.S. Navy?", ["Bay of Whales", "U.S. Navy"]),
        (
            "Was Dr. J. R. Smith with Erich von Drygalski?",
            ["Dr. J. R. Smith", "Erich von Drygalski"],
        ),
        # The first word of a sentence may be any word.
        ("Compare dogs and ponies. Then go on.", []),
        ("who was tom crean?", []),
        # In a title, and in capitals only, a capital tells nothing.
        ("What Did the Captain Write In His Diary?", []),
        ("WHO WAS TOM CREAN?", []),
        ("", []),
        ("爱因斯坦是谁？", []),
    ],
)
def test_runs_of_capitals_are_names(question: str, names: list[str]) -> None:
    assert [name.text for name in name_spans(question, language_in(question))] == names


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("What did Albert Einstein say about the South Pole?", ["Albert Einstein"]),
        # That there is another Marie does not make her known.
        ("Did Marie Curie meet Scott?", ["Marie Curie"]),
        ("When was Elon Musk or Jules Verne at Cape Evans?", ["Elon Musk", "Jules Verne"]),
        # Forms, accents and titles of names that the texts hold.
        ("Where are Mawson's papers, and the Mawsons?", []),
        ("Was Racovita or Professor Mawson there?", []),
        ("Co zrobił Scott z Amundsenem i Mawsonowi?", []),
        # German writes every noun with a capital.
        ("Was geschah mit Amundsens Schiff und dem Zelt?", []),
        ("Was sagte der Physiker Albert Einstein über den Südpol?", ["Physiker Albert Einstein"]),
    ],
)
def test_a_name_is_missing_if_no_text_holds_it_in_any_form(
    question: str, missing: list[str]
) -> None:
    language = language_in(question)
    held = TextWords(TEXTS, language)
    assert held.missing_names(name_spans(question, language)) == missing


def test_names_are_looked_for_beyond_what_was_read(store: IndexStore) -> None:
    question = "Did Albert Einstein or Emil Racovita know Drygalski and Lashly?"
    assert Mentions(store, question).unmentioned_names() == ["Albert Einstein"]


def test_a_full_name_of_two_persons_is_not_mentioned(store: IndexStore) -> None:
    # The texts have a Douglas Mawson and an Edgar Evans.
    question = "When did Douglas Evans or Edgar Evans die in Adelaide?"
    assert Mentions(store, question).unmentioned_names() == ["Douglas Evans"]
    # The texts have him with a middle name.
    assert Mentions(store, "Who was Robert Scott?").unmentioned_names() == []
    # A name that is no person's, and one that the question writes beside a nationality.
    for text in ("Where is the Nimrod Expedition?", "Who was Norwegian Amundsen?"):
        assert Mentions(store, text).unmentioned_names() == []


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("Then Ernest Evans came.", True),
        ("Ernest Henry Evans came.", True),
        ("The brothers Ernest and Edgar Evans came.", True),
        ("Évans, Ernest: a life.", True),
        ("Ernest de la Evans came.", True),
        ("Ernest Joyce and Evans came.", False),
        ("Ernest Joyce, Evans and Wild came.", False),
        ("Ernest came, and much later at the hut so did Evans.", False),
        ("Evans came.", False),
        ("", False),
    ],
)
def test_a_text_has_a_full_name(text: str, has: bool) -> None:
    assert has_full_name(text, "ernest", "evans") == has


@pytest.mark.parametrize("method", ["local", "basic", "global", "lazy", "drift", "ask"])
def test_every_search_refuses_a_full_name_that_no_text_has(index: Index, method: str) -> None:
    answer = index.search(method, "When did Douglas Evans die in Adelaide?")
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text == "The documents do not mention Douglas Evans."
    assert any("Edgar Evans" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("names", "said"), [(["A"], "A"), (["A", "B"], "A or B"), (["A", "B", "C"], "A, B or C")]
)
def test_the_names_are_said(names: list[str], said: str) -> None:
    language = language_of("en")
    assert format_not_mentioned(names, language) == f"The documents do not mention {said}."
    german = said.replace(" or ", " oder ")
    assert (
        format_not_mentioned(names, language_of("de")) == f"Die Dokumente erwähnen {german} nicht."
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "¿Cuándo murió Xaver Hinterhuber en Adelaida?",
            "Los documentos no mencionan Xaver Hinterhuber.",
        ),
        (
            "Quand est-ce que Xaver Hinterhuber est mort ?",
            "Les documents ne mentionnent pas Xaver Hinterhuber.",
        ),
    ],
)
@pytest.mark.parametrize("method", ["local", "global"])
def test_a_name_is_refused_in_the_language_of_the_question(
    index: Index, text: str, said: str, method: str
) -> None:
    answer = index.search(method, text)
    assert (answer.outcome, answer.text) == (Outcome.NO_EVIDENCE, said)


def test_a_name_spelt_otherwise_is_known(store: IndexStore) -> None:
    assert Mentions(store, "Who was Ernest Shakleton?").unmentioned_names() == []
    # Half of a name is not the name.
    assert Mentions(store, "Who was Xavier Shakleton?").unmentioned_names() == ["Xavier Shakleton"]


@pytest.mark.parametrize("method", ["local", "drift"])
def test_a_question_with_a_name_spelt_otherwise_is_answered(index: Index, method: str) -> None:
    answer = index.search(method, "What did Ernest Shakleton do?")
    assert answer.outcome == "answered"
    assert "Shackleton" in answer.text
    assert answer.notes[0] == "“ernest shakleton” is taken for Ernest Shackleton."


@pytest.mark.parametrize(
    ("question", "unseen"),
    [
        ("How do I bake sourdough bread?", ["sourdough"]),
        ("Which ships sailed, and which bicycles?", ["bicycles"]),
        ("What did the men eat?", []),
        ("What did Ernest Shakleton do?", []),
        # The stems of other languages are not in the full-text index.
        ("Wie backt man Sauerteigbrot?", []),
    ],
)
def test_words_that_no_document_contains(
    index: Index, question: str, unseen: Sequence[str]
) -> None:
    assert question_to(index, question).unseen_words == unseen
