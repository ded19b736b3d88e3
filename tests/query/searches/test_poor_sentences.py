from pathlib import Path

import polars as pl
import pytest

import graphrag_query
from graphrag_index.schema.settings.project_settings import init_project
from graphrag_query.answer import Outcome
from graphrag_query.answering.extractive import Candidate
from graphrag_query.searches.subject_sentences import (
    are_poor,
    have_unnamed_speaker,
    keep_statements,
)
from tests.conftest import run_project


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("For more information, see Section 4.", True),
        ("Weitere Informationen finden Sie in Kapitel 13.", True),
        ("Consulte la sección 2 para más detalles.", True),
        ("Cette section décrit les réseaux.", True),
        ("See also the appendix on nets.", True),
        ("Siehe auch Kapitel 3.", True),
        ("Siehe in der Tabelle 4.", True),
        ("Voir la section 3.", True),
        ("Véase la sección 2.", True),
        ("Vedi anche la sezione 2.", True),
        ("Zie het hoofdstuk 2.", True),
        ("Hi, Ann!", True),
        ("Hey Ann, how nice!", True),
        ("Good luck!", True),
        ("Dag Hammarskjöld was a Swedish diplomat.", False),
        ("Hi-Fi systems are sold here.", False),
        ("Good luck came to the town of Altdorf.", False),
        ("Thank you so much for the talk!", True),
        ("Vielen Dank für alles.", True),
        ("Hello, my sofa was due on Monday and nobody came.", False),
        ("The password protects the boot loader (see Chapter 4).", False),
        ("We had a good time at the lake and saw two bears.", False),
    ],
)
def test_references_and_thanks_say_nothing_on_a_subject(text: str, expected: bool) -> None:
    assert are_poor(pl.Series([text])).to_list() == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("If Oslo goes on, it risks much, he says.", True),
        ("Das sei zu viel, sagte sie.", True),
        ("The mayor said that the bridge is closed.", False),
        ("Ann Berg says the mill will open.", False),
    ],
)
def test_a_speaker_may_be_unnamed(text: str, expected: bool) -> None:
    assert have_unnamed_speaker(pl.Series([text])).to_list() == [expected]


@pytest.mark.parametrize(
    ("text", "label", "is_kept"),
    [
        ("Liebe Kolleginnen und Kollegen !", "", False),
        ("Sehr geehrter Herr Präsident!", "", False),
        ("Verehrte Kollegen, die Hälfte der Anträge kommt aus dem Ausland.", "", True),
        ("(Aplausos.-Varios señores diputados: ¡Muy bien!)", "", False),
        ("Efectuada la votación, dio el siguiente resultado: a favor, 269.", "", False),
        ("Quedan rechazadas las enmiendas.", "", False),
        ("READ MORE: Oslo at breaking point Berg warned that the town is too full.", "", False),
        ("They read more than books, letters and papers.", "", True),
        ("Dann ist so beschlossen .", "", False),
        ("I thank the Minister for that answer.", "", False),
        ("My hon. Friend is right to raise this issue.", "", False),
        (
            "We welcome the law because it makes many houses cheaper, and we will vote for it.",
            "",
            True,
        ),
        ("On Sun, 11 Aug 2002, Ann wrote:", "", False),
        ("Am 3. Mai 2004 um 12:30 schrieb Ann:", "", False),
        ("Sent: Monday, 3 May 2004", "Ann", False),
        ("[Applause, and the audience spoke.]", "", False),
        ("what do you think", "Ann", False),
        ("what do you think", "", True),
        ("Does it rain?", "", False),
        ("On Sunday, Ann wrote a letter to Bob.", "", True),
    ],
)
def test_questions_and_heads_of_quoted_letters_state_nothing(
    text: str, label: str, is_kept: bool
) -> None:
    candidate = Candidate(text, 0, 0, len(text), label=label)
    assert keep_statements([candidate]) == [candidate] * is_kept


def test_documents_of_questions_only_are_no_evidence(tmp_path: Path) -> None:
    init_project(tmp_path)
    questions = ("Who fears a warm climate?", "What is climate change?", "Where is Neustadt?")
    for number, text in enumerate(questions):
        (tmp_path / "input" / f"{number}.txt").write_text(text, encoding="utf-8")
    run_project(tmp_path, "workflow=embedded")
    with graphrag_query.open(tmp_path / "output") as index:
        answer = index.global_("What do the documents say about climate change?")
        assert answer.outcome is Outcome.NO_EVIDENCE
