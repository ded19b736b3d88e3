"""No question is answered with a yes or a no: passages are quoted, and the reader decides.

Rules that decide without understanding did harm: "Was Tom Crean at the South Pole?" was answered
"Yes" with a passage about a public house called the South Pole Inn.
"""

import re
from pathlib import Path

import pytest

import graphrag_query

# Each says something of the sample that is false.
FALSE_PREMISES = """
Was Tom Crean at the South Pole?
Did Amundsen die at the South Pole?
Did Ernest Shackleton reach the South Pole?
Did Scott come back from the South Pole alive?
Was the Endurance sunk by a torpedo?
Did Frank Wild die on Elephant Island?
Was Edward Wilson a member of the crew of the Fram?
Did Mawson die in Commonwealth Bay?
Did Xavier Mertz survive the Far Eastern Party?
Did Belgrave Ninnis return to the hut?
Was the Belgica built in Dundee?
Did Frederick Cook command the Belgica?
Was Roald Amundsen a Swede?
Did Tom Crean sail in the Fram?
Was Frank Hurley the surgeon of the Aurora?
Did Douglas Mawson accept a place in the Terra Nova Expedition?
Did the aeroplane of Mawson fly in Antarctica?
Did the Nimrod sail with Amundsen to the South Pole?
Was Carl August Wiencke the captain of the Belgica?
Did Ernest Solvay spend the winter in the Antarctic?
Did Scott win the race to the South Pole?
Was Lawrence Oates buried in London?
Did Edgar Evans reach Cape Evans on the return from the pole?
Was Shackleton the leader of the Discovery Expedition?
Did Amundsen use ponies on his way to the South Pole?
Did Scott reach the South Pole before Amundsen?
Did all men of the Ross Sea party survive?
Did the Endurance return to England?
Was Frank Worsley the photographer of the Endurance?
Did Otto Nordenskjöld lead the Gauss expedition?
Did Carsten Borchgrevink die on the Southern Cross expedition?
Was William Speirs Bruce the captain of the Terra Nova?
Did Erich von Drygalski reach the South Pole?
Did Apsley Cherry-Garrard die in the Winter Journey?
Was South Georgia discovered by Tom Crean?
Did the Fram sink in the Antarctic?
Was the first meteorite of Antarctica found by Robert Falcon Scott?
War Tom Crean am Südpol?
Amundsen est-il mort au pôle Sud ?
¿Llegó Ernest Shackleton al Polo Sur?
"""
QUESTIONS = [line for line in FALSE_PREMISES.splitlines() if line]
DECIDED = re.compile(r"\W*(?:yes|no|ja|nein|oui|non|sí|no)\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def index(sample_project: Path) -> "graphrag_query.Index":
    return graphrag_query.open(sample_project / "output")


def test_there_are_forty_questions() -> None:
    assert len(set(QUESTIONS)) == 40


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_false_premise_is_not_affirmed(index: "graphrag_query.Index", question: str) -> None:
    said = index.local(question).text
    # "No sentence found answers this clearly" is no decision.
    assert not DECIDED.match(said) or said.startswith("No sentence"), said
