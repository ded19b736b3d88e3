"""Titles of themes: terms and names of many of their documents, and of few others."""

import numpy as np
import polars as pl

from graphrag_index.reports.own_sentences import OwnSentences
from graphrag_index.reports.report_drafts import choose_reports, make_draft
from graphrag_index.reports.report_titles import Names, share_word
from graphrag_index.reports.theme_counts import find_sections
from graphrag_index.reports.theme_titles import ThemeName, add_theme_names, find_titles
from graphrag_index.schema.tables import content_id

HEALTH = [
    "Ministers spoke about the costs of health care in the capital, and Ann asked for patience.",
    "Nobody knows who will pay for health care and for the insurance of older people.",
    "A clinic said that health care was late. The insurance paid nothing, in spite of Ann.",
    "Voters want health care for all, and they ask about the insurance of children.",
    "The budget of health care is short, and an insurance for all is far away.",
]
SPORT = [
    "Fans saw the goals of the match in Rome, and the goalkeeper was hurt.",
    "Rain stopped the match in Rome after the goalkeeper had left the field.",
    "Tickets for the match were sold out in Rome before the goalkeeper came.",
    "After the match, people in Rome praised the goalkeeper of the guests.",
    "Nobody won the match, and the goalkeeper went back to Rome in the evening.",
]
OTHERS = [
    "Bakers sell bread with olives since the summer.",
    "Engineers built bridges over the rivers of Norway.",
    "Painters showed pictures of horses in a small gallery.",
    "Farmers planted trees beside the road to the lake.",
    "Astronomers found a comet behind the clouds of dust.",
]


def names_of(
    texts: list[str], owners: list[int], names: dict[str, str], language: str = "en"
) -> dict[int, ThemeName]:
    """Return the names of themes that have a title.

    Each text is a document, and `owners` has its theme.
    """
    n = len(texts)
    entities = pl.DataFrame({"title": [*names], "type": [*names.values()]})
    mentions = pl.DataFrame(
        [
            (entity, unit)
            for entity, name in enumerate(names)
            for unit, text in enumerate(texts)
            if name in text
        ],
        {"entity": pl.Int32, "text_unit": pl.Int32},
        orient="row",
    )
    units = pl.DataFrame({"number": range(n), "document": range(n), "start_char": [0] * n})
    found = find_titles(
        pl.LazyFrame({"id": [content_id(text) for text in texts], "text": texts}),
        pl.LazyFrame({"language": [language] * n}),
        units,
        OwnSentences(np.zeros(0, np.int64), [(np.unique(owners), np.array(owners))]),
        mentions.lazy(),
        entities,
        lambda rows, _: (rows["type"] != "noun phrase").to_numpy(),
    )
    return {at: name for at, name in found.items() if name.title}


def titles_of(
    texts: list[str], owners: list[int], names: dict[str, str], language: str = "en"
) -> dict[int, str]:
    """Return the titles of themes that have one."""
    return {at: name.title for at, name in names_of(texts, owners, names, language).items()}


OWNERS = [0] * 5 + [1] * 5 + [2] * 5
NAMES = {"Ann": "person", "Rome": "geo", "goals": "noun phrase"}


def test_a_title_has_terms_of_many_documents_and_of_few_others() -> None:
    titles = titles_of([*HEALTH, *SPORT, *OTHERS], OWNERS, NAMES)
    # Ann is in two documents, and nothing joins the other texts.
    assert titles == {0: "Health care and insurance", 1: "Match and goalkeeper: Rome"}


def test_the_terms_of_a_theme_are_its_words_and_names_without_media() -> None:
    names = {**NAMES, "BBC": "organization"}
    texts = [*HEALTH, *(f"{text} The BBC was there." for text in SPORT), *OTHERS]
    [health, sport] = names_of(texts, OWNERS, names).values()
    assert set(health.terms) >= {"insurance", "health"}
    assert set(sport.terms) >= {"Rome", "match", "goalkeeper"}
    assert "BBC" not in sport.terms


def test_titles_do_not_depend_on_the_order_of_documents() -> None:
    texts = [*HEALTH, *SPORT, *OTHERS]
    expected = titles_of(texts, OWNERS, NAMES)
    assert titles_of(texts[::-1], OWNERS[::-1], NAMES) == expected


def test_a_word_of_all_themes_is_in_no_title() -> None:
    texts = [f"{text} That is in the newspaper of today." for text in (*HEALTH, *SPORT, *OTHERS)]
    assert "newspaper" not in str(titles_of(texts, OWNERS, NAMES))


def test_a_formula_of_readers_is_in_no_title() -> None:
    texts = [*HEALTH, *SPORT, *(f"{text} Share this slide: Read on." for text in OTHERS)]
    assert 2 not in titles_of(texts, OWNERS, NAMES)


def test_no_name_begins_with_another() -> None:
    names = {"Rom": "geo", **NAMES, "Rain": "person"}
    assert titles_of([*HEALTH, *SPORT, *OTHERS], OWNERS, names)[1] == "Match and goalkeeper: Rom"


def test_a_theme_of_few_documents_has_no_such_title() -> None:
    assert titles_of([*HEALTH[:3], *OTHERS], [0] * 3 + [1] * 5, NAMES) == {}


def test_german_nouns_and_names() -> None:
    texts = [
        "Der Ausbau der Windkraft kommt voran, sagte Schmidt in der Debatte.",
        "Heute geht es um die Windkraft und das Stromnetz, auch wenn Schmidt fehlt.",
        "Ohne das Stromnetz hilft die Windkraft wenig, meinte Schmidt gestern.",
        "Gegen die Windkraft klagen viele, und das Stromnetz ist alt.",
        "Für die Windkraft und das Stromnetz fehlt oft das Geld, sagt Schmidt.",
        "Am Abend sangen die Kinder in der Kirche.",
        "Wir kauften Brot und Butter auf dem Markt.",
        "Im Winter fror der See bis zum Ufer zu.",
        "Der Zug nach Süden hatte wieder eine Stunde Verspätung.",
        "Die Malerin zeigte ihre Bilder im Garten.",
        "Vor dem Rathaus stand ein alter Brunnen.",
        "Die Schule beginnt im August mit einem Fest.",
        "Auf dem Berg liegt noch immer Schnee.",
        "Das Schiff fuhr langsam aus dem Hafen.",
        "Unter der Brücke schliefen zwei Hunde.",
    ]
    titles = titles_of(texts, [0] * 5 + [1] * 5 + [2] * 5, {"Schmidt": "person"}, "de")
    assert titles == {0: "Stromnetz und Windkraft: Schmidt"}


def test_a_part_of_a_name_stands_beside_it_in_no_title() -> None:
    texts = [
        "Der Ausbau der Bahn in Alt-Württemberg und in Württemberg kommt voran.",
        "Heute geht es um Alt-Württemberg, um Württemberg und um die Bahn.",
        "Ohne die Bahn hätte Alt-Württemberg wenig, und Württemberg auch.",
        "Gegen die Bahn klagen in Alt-Württemberg viele, in Württemberg wenige.",
        "Für Alt-Württemberg und Württemberg fehlt oft das Geld.",
        *(f"Am Abend sangen die Kinder von Dorf {n} in der Kirche." for n in range(10)),
    ]
    titles = titles_of(texts, [0] * 5 + [1] * 10, {"Alt-Württemberg": "geo"}, "de")
    assert titles[0] == "Bahn: Alt-Württemberg"


def test_words_that_differ_by_an_accent_are_forms_of_one() -> None:
    assert share_word("inversión", "inversiones")
    assert not share_word("inversión", "invierno")


def test_a_theme_without_words_has_its_names() -> None:
    texts = [f"罗马和米兰的新闻 {n}" for n in range(5)] + [f"别的新闻 {n}" for n in range(5)]
    titles = titles_of(texts, [0] * 5 + [1] * 5, {"罗马": "geo", "米兰": "geo"}, "zh")
    assert titles == {0: "罗马 and 米兰"}


def test_a_long_document_has_several_sections() -> None:
    units = pl.DataFrame(
        {"number": range(20), "document": [0] * 18 + [1] * 2, "start_char": range(20)}
    )
    owner = np.array([0] * 10 + [1] * 9 + [-1])
    sections = find_sections(owner, units)
    assert sections.report.tolist() == [0, 0, 1, 1, 1]
    assert sections.of_text_unit.tolist() == [0] * 8 + [1] * 2 + [2] * 6 + [3] * 2 + [4, -1]


def test_a_document_on_another_subject_changes_no_title() -> None:
    texts = [*HEALTH, *SPORT, *OTHERS]
    more = [*texts, "Sailors mended the nets beside the harbour wall."]
    assert titles_of(more, [*OWNERS, 2], NAMES) == titles_of(texts, OWNERS, NAMES)


def test_a_report_has_the_title_of_its_theme_and_sentences_with_its_terms() -> None:
    names = Names({0: 1.0}, {0: "Ann"}, [0])
    sentences = [
        ("en", 2, text, [0], at, at, 1.0, None, None, 0, len(text), ["cost"], 1.0)
        for at, text in enumerate(HEALTH)
    ]
    name = ThemeName("Health care and insurance", ["budget"])
    titled = make_draft(sentences, (), names, True, "", name)
    untitled = make_draft(sentences, (), names, True, "")
    choices = choose_reports([titled, untitled], 3, 3, 1.0)
    assert choices[0].title == "Health care and insurance"
    assert choices[1].title == "Ann"
    [first, *_] = choices[0].statements
    assert "budget" in HEALTH[first.sentences[0]]


def test_a_theme_without_a_title_lists_the_themes_within_it() -> None:
    rows = pl.DataFrame(
        {"community": [5, 6, 7, 8, 9], "parent": [-1, 5, 5, 5, 8], "size": [90, 20, 30, 25, 9]}
    )
    found = {0: "", 1: "Music", 2: "Football and fans: Rome", 3: ""}
    named = add_theme_names(rows, {at: ThemeName(title, ["x"]) for at, title in found.items()})
    subjects = ["Football and fans: Rome", "Music"]
    assert named["theme_subjects"].to_list() == [subjects, None, None, None, None]
    assert named["community"].to_list() == rows["community"].to_list()
    names = Names({0: 1.0, 1: 1.0}, {0: "Ann", 1: "Bob"}, [0, 1])
    sentences = [
        ("en", 2, text, [at], at, at, 1.0, None, None, 0, len(text), ["cost"], 1.0)
        for at, text in enumerate([HEALTH[0], SPORT[0]])
    ]
    draft = make_draft(sentences, (), names, True, "", ThemeName("", ["budget"], subjects))
    [choice] = choose_reports([draft], 3, 3, 1.0)
    assert choice.title == "Different subjects: Football and fans (Rome); Music"
