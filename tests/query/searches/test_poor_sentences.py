from pathlib import Path

import polars as pl
import pytest

import graphrag_query
from graphrag_index.schema.settings.project_settings import init_project
from graphrag_query.answer import Outcome
from graphrag_query.answering.extractive import Candidate
from graphrag_query.searches.subject_sentences import (
    are_poor,
    are_procedure,
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


@pytest.mark.parametrize(
    "text",
    [
        "Gracias a la reforma, el paro bajó en 2015.",
        "Votamos en contra del presupuesto porque recorta la sanidad.",
        "Nada más llegar a Madrid, Rajoy dimitió.",
        "Merci à la pluie, la récolte de 2016 a doublé.",
        "Monsieur Dupont a été élu maire de Lyon en 2014.",
        "Señora Moro ganó las elecciones en Valencia.",
        "Meine Fraktion stimmt dem Gesetz zu.",
        "Liebe macht blind.",
        "Damit ist die Brücke über den Rhein gesperrt.",
        "Dear petrol hits farmers in Wales.",
        "Das Wort hat seinen Ursprung im Lateinischen.",
        "Wir kommen zu dem Ergebnis, dass die Brücke gesperrt wird.",
        "Wir danken den Feuerwehrleuten, die 2015 die Mühle retteten.",
        "Danke der Reform sank die Arbeitslosigkeit.",
        "Gibt es Regen, bleibt die Mühle zu.",
        "Das ist der Fall, wenn die Brücke gesperrt ist.",
        "Pasamos hambre en la guerra de 1936.",
        "Queda rechazada su demanda contra el banco.",
        "(The bridge was closed in 2015 after a flood.)",
        "We congratulate Oslo on cutting emissions by half.",
        "The hon. Member is right that 5,000 jobs were lost.",
        "Tiene la palabra en la plaza cada domingo.",
        "Passons l'hiver à Nice avec ma mère.",
        "Je remercie les pompiers qui ont sauvé le moulin en 2015.",
        "Gracias al turismo, Madrid creció.",
        "Señorías, el paro bajó un dos por ciento.",
        "Ich schließe mich der Kritik der Stadt an.",
        "Ich eröffne morgen eine Bäckerei in Ulm.",
        "Messieurs Dupont et Durand ont vendu le moulin.",
        "Estimada en dos millones, la casa fue vendida.",
        "Meine Kollegen stimmen dem Gesetz zu.",
        "Meine Damen und Herren, die Brücke ist gesperrt.",
        "Dear colleagues have left the party.",
        "Mr President signed the bill in 2015.",
        "Gracias, señor presidente, el paro bajó en 2015.",
        "Quedan rechazadas las enmiendas que pedían subir las pensiones.",
        "Related: prices rose by 5 percent in 2015.",
    ],
)
def test_statements_that_begin_like_procedure_are_kept(text: str) -> None:
    assert are_procedure([text]) == [False]


@pytest.mark.parametrize(
    "text",
    [
        "Meine Damen und Herren!",
        "Sehr geehrte Frau Kollegin Dr. Müller!",
        "Meine sehr verehrten Damen und Herren von der Opposition!",
        "Señorías.",
        "Señor presidente, señoras y señores diputados.",
        "Monsieur le Président, chers collègues,",
        "Mr President,",
        "Dear colleagues,",
        "Dear Ann Berg,",
        "(Beifall bei der CDU/CSU)",
        "(Laughter.)",
        "(Dr. Gregor Gysi [DIE LINKE]: Das ist falsch!)",
        "I am grateful to my hon. Friend for that intervention.",
        "My hon. Friend is absolutely right.",
        "Ich danke Ihnen für die Aufmerksamkeit.",
        "Danke, Herr Minister.",
        "Das Wort hat der Kollege Hans Meier von der SPD-Fraktion.",
        "Ich rufe den Tagesordnungspunkt 3 auf.",
        "Wir kommen nun zur Abstimmung über den Antrag der Fraktion.",
        "Damit ist der Gesetzentwurf angenommen.",
        "Muchas gracias, señor presidente.",
        "Gracias, señora Moro.",
        "Nada más y muchas gracias.",
        "Tiene la palabra el señor ministro.",
        "Pasamos a la votación de las enmiendas.",
        "Votamos ahora la enmienda número 5 del Grupo Popular.",
        "La parole est à M. Dupont.",
        "Je vous remercie, monsieur le président.",
        "Merci, monsieur le Ministre.",
        "Passons au vote.",
    ],
)
def test_salutations_and_formulas_of_debates_are_procedure(text: str) -> None:
    assert are_procedure([text]) == [True]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (
            "READ MORE: Oslo closes mill The affected airlines had until Saturday to comply.",
            "The affected airlines had until Saturday to comply.",
        ),
        (
            "READ MORE: Seoul tested missiles near Oslo “The two sides are like two trains.”",
            "“The two sides are like two trains.”",
        ),
        (
            "Leer más: El paro baja en Madrid La ministra dijo que sigue alto.",
            "La ministra dijo que sigue alto.",
        ),
    ],
)
def test_a_link_before_a_sentence_is_cut_off(text: str, rest: str) -> None:
    kept = keep_statements([Candidate(text, 0, 10, 10 + len(text))])
    assert kept == [Candidate(rest, 0, 10 + len(text) - len(rest), 10 + len(text))]


@pytest.mark.parametrize("text", ["READ MORE: How Ann Berg Beat The Odds", "Watch: The mill opens"])
def test_a_link_alone_states_nothing(text: str) -> None:
    assert keep_statements([Candidate(text, 0, 0, len(text))]) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We congratulate Oslo on cutting emissions by half.", True),
        ("(The bridge was closed in 2015 after a flood.)", True),
        ("Gracias a la reforma, el paro bajó en 2015.", False),
        ("Votamos en contra del presupuesto porque recorta la sanidad.", False),
        ("Liebe macht blind.", False),
    ],
)
def test_thanks_that_may_state_something_are_quoted_last(text: str, expected: bool) -> None:
    assert are_poor(pl.Series([text])).to_list() == [expected]


def test_documents_of_questions_only_are_no_evidence(tmp_path: Path) -> None:
    init_project(tmp_path)
    questions = ("Who fears a warm climate?", "What is climate change?", "Where is Neustadt?")
    for number, text in enumerate(questions):
        (tmp_path / "input" / f"{number}.txt").write_text(text, encoding="utf-8")
    run_project(tmp_path, "workflow=embedded")
    with graphrag_query.open(tmp_path / "output") as index:
        answer = index.global_("What do the documents say about climate change?")
        assert answer.outcome is Outcome.NO_EVIDENCE
