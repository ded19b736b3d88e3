from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_index.errors import ModelError
from graphrag_index.llm.request import Outcome as CallOutcome
from graphrag_index.llm.request import ReplyError
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from graphrag_query.question.question import Mentions, Question
from graphrag_query.searches.router import (
    METHODS,
    PURPOSES,
    choose_by_rules,
    choose_search,
    read_choice,
)
from graphrag_query.store.index_store import IndexStore
from tests.fixtures.cases import cases
from tests.fixtures.fake_llm import FakeLLM, index_behind, question_to
from tests.model_server import ChatRequest, Faults, Server

Labelled = list[tuple[str, str]]

SEEN: Labelled = [
    # the whole corpus
    ("What are the main themes?", "global"),
    ("What are the most important topics in these documents?", "global"),
    ("Summarise the whole collection.", "global"),
    ("Give me an overview of the corpus.", "global"),
    ("Who are the most important people?", "global"),
    ("Which organizations play the biggest role overall?", "global"),
    ("What is this data set about?", "global"),
    ("What patterns can be seen across all expeditions?", "global"),
    ("How did attitudes towards dogs change over time?", "global"),
    ("What lessons were drawn from the failures?", "global"),
    ("What are the key differences between the expeditions?", "global"),
    ("What were the most common causes of death?", "global"),
    ("Was sind die wichtigsten Themen?", "global"),
    ("Fasse die Dokumente zusammen.", "global"),
    ("Worum geht es in dieser Sammlung?", "global"),
    ("Jakie są główne tematy?", "global"),
    ("Streść wszystkie dokumenty.", "global"),
    ("Quels sont les thèmes principaux ?", "global"),
    ("Résume l'ensemble des documents.", "global"),
    ("¿Cuáles son los temas principales?", "global"),
    ("Haz un resumen general de la colección.", "global"),
    ("主要主题是什么？", "global"),
    ("总结所有文件的内容。", "global"),
    ("Quali sono i temi principali dei documenti?", "global"),
    ("How have the views on dogs changed over the years?", "global"),
    # one entity, or a fact
    ("Which ships are mentioned by Roald Amundsen?", "local"),
    ("What changed the law?", "local"),
    ("What changed in Norway?", "local"),
    ("Which ships did Ernest Shackleton command over the years?", "local"),
    ("What did Tom Crean do over the years?", "local"),
    ("Who was Tom Crean?", "local"),
    ("What happened to the Endurance?", "local"),
    ("When did Roald Amundsen reach the South Pole?", "local"),
    ("Who paid for the Southern Cross Expedition?", "local"),
    ("Which fossil plant was found in the rocks?", "local"),
    ("What did the men eat on Elephant Island?", "local"),
    ("Did Marie Curie travel to Antarctica?", "local"),
    ("What is Microsoft's position on open source?", "local"),
    ("Tell me about scurvy.", "local"),
    ("Why did Scott take ponies?", "local"),
    ("How many dogs did Amundsen bring?", "local"),
    ("Shackleton", "local"),
    ("What did Scott think of Amundsen?", "local"),
    ("Who stood at the South Pole with Roald Amundsen?", "local"),
    ("Wer war Tom Crean?", "local"),
    ("Wann erreichte Amundsen den Südpol?", "local"),
    ("Was geschah mit der Endurance?", "local"),
    ("Kim był Tom Crean?", "local"),
    ("Co się stało ze statkiem Endurance?", "local"),
    ("Qui était Ernest Shackleton ?", "local"),
    ("Pourquoi Scott est-il mort ?", "local"),
    ("¿Quién fue Tom Crean?", "local"),
    ("¿Cuándo llegó Amundsen al Polo Sur?", "local"),
    ("沙克尔顿是谁？", "local"),
    ("阿蒙森什么时候到达南极点？", "local"),
    ("Chi era Roald Amundsen?", "local"),
    ("Кто такой Амундсен?", "local"),
    # how things are connected
    ("How is Tom Crean connected to Fridtjof Nansen?", "path"),
    ("How are Crean and Nansen connected?", "path"),
    ("What is the connection between the Fram and Robert Falcon Scott?", "path"),
    ("What links Frank Wild to Douglas Mawson?", "path"),
    ("What do Scott and Shackleton have in common?", "path"),
    ("How do Apple and Foxconn relate to each other?", "path"),
    ("Find a path from Cape Adare to Fridtjof Nansen.", "path"),
    ("Relationship between Amundsen and Nansen?", "path"),
    ("Is there a link between Napoleon Bonaparte and Scott?", "path"),
    ("Wie hängen Crean und Nansen zusammen?", "path"),
    ("Welche Verbindung besteht zwischen Scott und Nansen?", "path"),
    ("In welcher Beziehung steht Wild zu Mawson?", "path"),
    ("Jaki jest związek między Scottem a Nansenem?", "path"),
    ("Co łączy Shackletona i Scotta?", "path"),
    ("Quel est le lien entre Scott et Nansen ?", "path"),
    ("Comment Tom Crean est-il lié à Nansen ?", "path"),
    ("¿Qué relación hay entre Scott y Nansen?", "path"),
    ("¿Cómo están conectados Amundsen y Nansen?", "path"),
    ("斯科特和南森有什么关系？", "path"),
    ("Qual è il legame tra Scott e Nansen?", "path"),
    # the wording of a passage
    ("Which passage mentions the fossil plant?", "basic"),
    ('Where does it say "the worst journey in the world"?', "basic"),
    ("Quote the sentence about the price of the ship.", "basic"),
    ("Find the paragraph that describes the hurricane.", "basic"),
    ("Show me the text about penguin eggs.", "basic"),
    ("What exactly is written about the hut at Cape Evans?", "basic"),
    ("In which document is the Yelcho mentioned?", "basic"),
    ("In welchem Absatz wird die Yelcho erwähnt?", "basic"),
    ("Zitiere die Stelle über die Ponys.", "basic"),
    ("W którym fragmencie jest mowa o pingwinach?", "basic"),
    ("Quel passage parle des chiens ?", "basic"),
    ("¿En qué párrafo se menciona el Yelcho?", "basic"),
    ("哪一段提到了企鹅蛋？", "basic"),
    ("search for: tins of pemmican", "basic"),
    # the surroundings of an entity
    ("What is the neighbourhood of Tom Crean?", "neighbourhood"),
    ("Show the neighborhood of the Fram.", "neighbourhood"),
    ("Who is connected with Tom Crean?", "neighbourhood"),
    ("List all relationships of Frank Wild.", "neighbourhood"),
    ("Show the graph around Roald Amundsen.", "neighbourhood"),
    ("Mit wem ist Tom Crean verbunden?", "neighbourhood"),
    ("Z kim jest powiązany Tom Crean?", "neighbourhood"),
    ("Montre le voisinage de Scott.", "neighbourhood"),
    ("Muestra las relaciones de Amundsen.", "neighbourhood"),
    ("显示阿蒙森的所有关系", "neighbourhood"),
]

HELD_OUT: Labelled = [
    ("What are the top five themes in this corpus?", "global"),
    ("What is the story told by these texts as a whole?", "global"),
    ("Which subjects come up again and again?", "global"),
    ("Summarize everything in three sentences.", "global"),
    ("What trends do the reports describe?", "global"),
    ("How do the sources differ in their view of leadership?", "global"),
    ("What kinds of scientific work were done, taken together?", "global"),
    ("Welche Trends zeigen die Berichte insgesamt?", "global"),
    ("Gib mir einen Überblick über alle Texte.", "global"),
    ("O czym są te teksty?", "global"),
    ("Podsumuj najważniejsze zagadnienia.", "global"),
    ("De quoi parlent ces documents ?", "global"),
    ("Donne-moi une vue d'ensemble.", "global"),
    ("¿De qué tratan estos textos en conjunto?", "global"),
    ("这些文档讲了什么？", "global"),
    ("请概述整个语料库。", "global"),
    ("この文書の主なテーマは何ですか。", "global"),
    ("Where was Frank Wild born?", "local"),
    ("What was the Nimrod used for after 1909?", "local"),
    ("How long did the march over South Georgia take?", "local"),
    ("Explain the role of Otto Nordenskjöld in the Swedish expedition.", "local"),
    ("Which ship brought the relief party?", "local"),
    ("Does Amundsen mention the Terra Nova in his diary?", "local"),
    ("Was Oates a cavalry officer?", "local"),
    ("Who won the Nobel Prize for physics in 1921?", "local"),
    ("When did Scott and Shackleton first meet?", "local"),
    ("Wo liegt Kap Adare?", "local"),
    ("Warum sank die Endurance im Weddellmeer?", "local"),
    ("Gdzie zimował Borchgrevink?", "local"),
    ("Où est mort Shackleton ?", "local"),
    ("¿Por qué fracasó la expedición del Gauss?", "local"),
    ("斯科特是怎么死的？", "local"),
    ("南極点に最初に到達したのは誰ですか。", "local"),
    ("In what way are the Fram and the Gauss related?", "path"),
    ("How does Louis Bernacchi lead to Roald Amundsen?", "path"),
    ("Connect Cape Evans with Hjalmar Johansen.", "path"),
    ("What ties Edgeworth David to Ernest Shackleton?", "path"),
    ("Through whom did Oates know Nansen?", "path"),
    ("Was haben Mawson und Wild miteinander zu tun?", "path"),
    ("Besteht ein Zusammenhang zwischen der Gauss und der Discovery?", "path"),
    ("Jak Crean jest powiązany z Nansenem?", "path"),
    ("Quelle relation existe entre Amundsen et la Belgica ?", "path"),
    ("¿Qué une a Mawson con Shackleton?", "path"),
    ("阿蒙森与南森之间有何联系？", "path"),
    ("Where in the texts are the motor sledges described?", "basic"),
    ('Find "I am just going outside".', "basic"),
    ("Give me the exact wording about the flag at the pole.", "basic"),
    ("Welche Textstelle handelt vom Skorbut?", "basic"),
    ("Zacytuj zdanie o psach.", "basic"),
    ("Cite la phrase sur les poneys.", "basic"),
    ("Busca el pasaje sobre los perros.", "basic"),
    ("引用关于狗的原文。", "basic"),
    ("What surrounds Cape Evans in the graph?", "neighbourhood"),
    ("Which entities are linked to the Discovery?", "neighbourhood"),
    ("Everything that Edward Wilson is related to", "neighbourhood"),
    ("Zeige die Nachbarschaft von Amundsen.", "neighbourhood"),
    ("Pokaż sąsiedztwo Shackletona.", "neighbourhood"),
    ("Avec qui Scott est-il en relation ?", "neighbourhood"),
    ("¿Con quién está relacionado Crean?", "neighbourhood"),
    ("列出与斯科特相关的实体", "neighbourhood"),
]


def wrong(store: IndexStore, labelled: Labelled) -> list[tuple[str, str, str]]:
    """The questions for which the rules choose another search than the labelled one."""
    found = []
    for question, search in labelled:
        mentions = Mentions(store, question)
        n_names = len(mentions.likeliest_mentions) + len(mentions.unknown_names)
        chosen = choose_by_rules(question, n_names).method
        if chosen != search:
            found.append((question, search, chosen))
    return found


def test_the_rules_choose_as_labelled(index: Index) -> None:
    assert len(SEEN) >= 80
    missed = wrong(index.store, SEEN)
    assert len(missed) <= 0.02 * len(SEEN), missed


def test_the_rules_choose_questions_that_were_held_out(index: Index) -> None:
    missed = wrong(index.store, HELD_OUT)
    assert len(missed) <= 0.05 * len(HELD_OUT), missed


@cases("question, method")
def test_a_question_is_answered_by_the_search_that_is_chosen(
    index: Index, question: str, method: str
) -> None:
    answer = index.ask(question)
    assert answer.outcome is Outcome.ANSWERED
    assert answer.method == method
    assert answer.notes[0].startswith(f"Answered by {method} search: it ")
    assert answer.question == question


def test_an_unknown_name_is_left_to_the_search_to_say(index: Index) -> None:
    answer = index.ask("How is Albert Einstein connected to Scott?")
    assert answer.method == "path"
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert "no entity named Albert Einstein" in answer.text


def test_without_known_names_no_path_is_looked_for(index: Index) -> None:
    choice = choose_search(question_to(index, "斯科特和南森有什么关系？"))
    assert choice.method == "local"
    assert "too few of its names for path search" in choice.why


class NoReports:
    """A model whose index has no reports."""

    def __init__(self, store: IndexStore) -> None:
        self._model = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def has_table(self, table: str) -> bool:
        return table != "community_reports"


def test_an_index_without_reports_is_asked_lazily_about_the_whole(index: Index) -> None:
    store: Any = NoReports(index.store)
    choice = choose_search(Question("What are the main themes?", store))
    assert choice.method == "lazy"
    assert choice.why.endswith("and the index has no reports")


def test_a_model_chooses_in_one_call(index: Index) -> None:
    llm = FakeLLM(lambda _: {"why": "it asks for a place", "search": "basic"})
    choice = choose_search(question_to(index, "Who was Tom Crean?", llm))
    assert (choice.method, choice.why, choice.notes) == ("basic", "it asks for a place", ())
    [prompt] = llm.prompts_sent
    assert set(PURPOSES) < set(METHODS)
    assert all(f"- {search}: " in prompt for search in PURPOSES)
    assert prompt.endswith("Who was Tom Crean?")


@pytest.mark.parametrize("reply", [None, {}, {"search": "nothing"}, [], 7, {"search": None}])
def test_a_bad_reply_leaves_it_to_the_rules(index: Index, reply: Any) -> None:
    choice = choose_search(question_to(index, "Who was Tom Crean?", FakeLLM(lambda _: reply)))
    assert choice.method == "local"
    [note] = choice.notes
    assert note.startswith("The search was chosen by rules, because the model failed: ")


class DeadChat(FakeLLM):
    """A chat whose model does not answer at all."""

    def replies(self, requests: Any, rating: bool = False) -> list[CallOutcome]:
        raise ModelError("The model does not answer.")


def test_an_outage_leaves_it_to_the_rules(index: Index) -> None:
    choice = choose_search(question_to(index, "What are the themes?", DeadChat(lambda _: None)))
    assert choice.method == "global"
    assert "does not answer" in choice.notes[0]


@cases("reply, method")
def test_replies_are_read_with_patience(reply: Any, method: str) -> None:
    assert read_choice(reply).value.method == method


def test_a_reply_with_two_searches_is_none() -> None:
    with pytest.raises(ReplyError, match="names no search"):
        read_choice({"search": "local or global"})


# Over HTTP.


def answered(llm: ChatRequest) -> str:
    return '{"why": "it asks who", "search": "local"}'


@pytest.fixture
def asked(sample_project: Path) -> Iterator[tuple[Server, Index]]:
    with Server(answer=answered) as server, index_behind(server, sample_project) as index:
        yield server, index


def test_the_call_that_chooses_is_counted(asked: tuple[Server, Index]) -> None:
    _, index = asked
    answer = index.ask("Who was Tom Crean?")
    assert answer.notes[0] == "Answered by local search: it asks who."
    assert answer.usage.calls == 2


def test_an_outage_is_an_error_and_not_missing_evidence(asked: tuple[Server, Index]) -> None:
    server, index = asked
    server.faults = Faults(rate=1.0, kinds=["500"])
    answer = index.ask("How are Crean and Nansen connected?")
    assert answer.outcome is Outcome.PROVIDER_ERROR
    assert answer.method == "path"
    assert any("chosen by rules" in note for note in answer.notes)
