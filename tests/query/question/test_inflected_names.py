"""Names that a question writes with the endings of its language."""

import pytest

from graphrag_query.question.mentions import Mentions
from graphrag_query.retrieval.index_store import IndexStore
from tests.fixtures.linking_index import index_of

TITLES = [
    "Иван Петров",
    "Мария Иванова",
    "Анна Каренина",
    "Москва",
    "Санкт-Петербург",
    "Kraków",
    "Warszawa",
    "Jan Kowalski",
    "Maria Nowak",
    "Adam Mickiewicz",
    "Łódź",
    "Poznań",
    "Gdańsk",
    "Piotr Wilk",
    "Karel Čapek",
    "Brno",
    "Martin Luther",
    "Martina Navratilova",
    "Rom",
    "Roman Polański",
    "Петр Первый",
    "Петрова Анна",
    "Wiedeń",
    "Frank Wild",
    "Павел Чехов",
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> IndexStore:
    return index_of([(title, 1, []) for title in TITLES], tmp_path_factory.mktemp("names"))


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Что известно о жизни Ивана Петрова?", ["Иван Петров"]),
        ("Кому писал Иван Петров письма?", ["Иван Петров"]),
        ("Что рассказал Ивану Петрову его друг?", ["Иван Петров"]),
        ("Кто был вместе с Иваном Петровым?", ["Иван Петров"]),
        ("Что произошло в Москве?", ["Москва"]),
        ("Когда он уехал из Москвы?", ["Москва"]),
        ("Что случилось с Анной Карениной?", ["Анна Каренина"]),
        ("Кто знал Марию Иванову?", ["Мария Иванова"]),
        ("Что было в Санкт-Петербурге?", ["Санкт-Петербург"]),
        ("Кто встретил Павла Чехова?", ["Павел Чехов"]),
        ("Co się stało w Krakowie?", ["Kraków"]),
        ("Kto pochodził z Krakowa?", ["Kraków"]),
        ("Kto mieszkał w Warszawie?", ["Warszawa"]),
        ("Kto wyjechał z Warszawy?", ["Warszawa"]),
        ("Kto znał Jana Kowalskiego?", ["Jan Kowalski"]),
        ("Co powiedział Janowi Kowalskiemu jego brat?", ["Jan Kowalski"]),
        ("Kto pisał o Adamie Mickiewiczu?", ["Adam Mickiewicz"]),
        ("Co było w Łodzi?", ["Łódź"]),
        ("Co było w Poznaniu?", ["Poznań"]),
        ("Co było w Gdańsku?", ["Gdańsk"]),
        ("Kto znał Piotra Wilka?", ["Piotr Wilk"]),
        ("Kto mieszkał w Wiedniu?", ["Wiedeń"]),
        ("Co se stalo v Brně?", ["Brno"]),
        ("Kdo znal Karla Čapka?", ["Karel Čapek"]),
        ("Кто знал Сергея Иванова?", []),
        ("Кто знал Марию Петренко?", []),
        ("Kto znał Jana Wilkowskiego?", []),
        ("Kto znał Marię Kowalczyk?", []),
        ("Who was Martine Lutheran?", []),
        ("Kto był w Rzymie?", []),
        ("Кто знал Петра Второго?", []),
        ("Was geschah in Romanshorn?", []),
        ("Who was Frank Wilder?", []),
        ("Kto mieszkał w Krasnymstawie?", []),
        ("Кто такая Анна Петрова?", ["Петрова Анна"]),
        ("Was ist Romantik?", []),
    ],
)
def test_names_are_found_in_their_case_and_others_are_not(
    store: IndexStore, question: str, names: list[str]
) -> None:
    found = [TITLES[mention.entity] for mention in Mentions(store, question).entities]
    assert sorted(found) == sorted(names)
