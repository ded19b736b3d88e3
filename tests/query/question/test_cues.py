import pytest

from graphrag_query.question.cues import (
    asks_for_change,
    asks_what_all_tell,
    asks_what_is_told,
    remove_change,
    remove_corpus_references,
    remove_telling,
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How did the ships change over time?", True),
        ("How have attitudes evolved?", True),
        ("Has the law changed?", True),
        ("Wie haben sich die Schiffe verändert?", True),
        ("Comment les navires ont-ils évolué ?", True),
        ("¿Cómo es que la vida ha cambiado?", True),
        ("Come la città è cambiata?", True),
        ("Hoe is de stad veranderd?", True),
        ("What do the documents say about climate change?", False),
        ("What is climate change?", False),
        ("Who made the rules change?", False),
        ("Quel est le change ?", False),
        ("How did the attack change the law?", False),
        ("How did people react to climate change?", False),
        ("How did people react to the climate change?", False),
        ("How did people think of the change?", False),
        ("How have people reacted to the climate change?", False),
        ("How did that country adapt to the climate change?", False),
        ("How do people cope with change?", False),
        ("How will farmers adapt to drought change?", False),
        ("How did the way people think of Oslo change?", True),
        ("How did the way farmers adapt to drought change?", True),
        ("How did views of how to cope with grief change?", True),
        ("How did the ability to cope with grief change?", True),
        ("How did the lives of farmers that adapt to drought change?", True),
        ("How did views on the climate change?", True),
        ("How did the climate change?", True),
        ("How did the climate of Bern change?", True),
        ("How did the temperature of the sea change?", True),
        ("How did life in the Arctic climate change?", True),
        ("How has the trust of people in the regime changed?", True),
        ("How have the views of people on climate changed?", True),
        ("How did the readers see regime change?", False),
        ("How did the readers see the political change?", False),
        ("What changed?", True),
        ("What has changed since 1990?", True),
        ("Was hat sich in Bern verändert?", True),
        ("Qu'est-ce qui a changé ?", True),
        ("What changed the law?", False),
    ],
)
def test_a_verb_at_the_end_asks_for_change_after_how_or_an_auxiliary(
    question: str, expected: bool
) -> None:
    assert asks_for_change(question) == expected


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("How did opinions on climate change change?", "How did opinions on climate change"),
        ("How did the ships change over time?", "How did the ships"),
        ("How did attitudes evolve over time in Bern?", "How did attitudes in Bern"),
        ("How has the development of Bern changed?", "How has the development of Bern"),
        ("What is climate change?", "What is climate change"),
        ("What changed?", ""),
        ("What changed over the years?", ""),
        ("What changed in Bern?", "in Bern"),
        ("Was hat sich in Thun verändert?", "Was hat sich in Thun"),
        ("Was hat sich seit 1990 geändert?", "Was hat sich seit 1990"),
        ("Was hat sich verändert in Thun?", "in Thun"),
        ("Was hat sich verändert?", ""),
    ],
)
def test_only_the_words_that_ask_for_change_are_removed(question: str, rest: str) -> None:
    assert remove_change(question) == rest


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("What are the main themes of these editorials?", "What are the main themes of these"),
        ("What is said in these reviews?", "What is said in these"),
        ("Worum geht es in diesen Bewertungen?", "Worum geht es in diesen"),
        ("What do reviews by dentists say?", "What do reviews by dentists say?"),
    ],
)
def test_kinds_of_documents_mean_the_corpus_after_words_such_as_these(
    question: str, rest: str
) -> None:
    assert remove_corpus_references(question) == rest


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("What problems do customers report?", "What problems do"),
        ("Which organizations are criticised?", "Which organizations are"),
        ("Which tools are mentioned for moving music?", "Which tools are for moving music"),
        ("Which accessories do the reviewers mention?", "Which accessories do the"),
        (
            "What problems do customers report in the annual report?",
            "What problems do in the annual report",
        ),
        ("Welche Probleme melden die Kunden?", "Welche Probleme die"),
        ("Welche Firmen werden kritisiert?", "Welche Firmen werden"),
        ("Quelles marques sont mentionnées ?", "Quelles marques sont"),
        ("¿Qué problemas mencionan los usuarios?", "Qué problemas los"),
        ("How did people react to the storm?", "How did the storm"),
        ("How did the readers feel about Bern?", "How did the Bern"),
        ("What do most of the customers think of Java?", "What do most of the Java"),
        ("What are the opinions on Java?", "What are the Java"),
        ("What opinions about Java are expressed?", "What Java are"),
        ("Wie reagierten die Kunden auf Preise?", "Wie reagierten die Kunden auf Preise?"),
        # Asked for, or doing something else.
        ("Who thought of the idea first?", "Who thought of the idea first?"),
        ("Who made people think of the sea?", "Who made people think of the sea?"),
        ("How did the engine respond to the brake?", "How did the engine respond to the brake?"),
        (
            "What views on the lake does the hotel have?",
            "What views on the lake does the hotel have?",
        ),
        ("Which customers are named?", "Which customers are"),
        ("What do customers buy?", "What do customers buy?"),
        ("Which firms criticised the law?", "Which firms criticised the law?"),
        ("Which towns were named after people?", "Which towns were named after people?"),
        ("Who criticised the authors?", "Who criticised the authors?"),
        ("How did patients report pain?", "How did patients report pain?"),
        ("What are the main problems of patients?", "What are the main problems of patients?"),
        ("What is the name of the issue?", "What is the name of the issue?"),
        ("What is the problem with user names?", "What is the problem with user names?"),
        ("Which problems are cited in note 5?", "Which problems are in note 5"),
    ],
)
def test_who_says_something_is_no_subject_of_a_question_for_things(
    question: str, rest: str
) -> None:
    assert remove_telling(question) == rest


@pytest.mark.parametrize(
    ("question", "tells", "all_tell"),
    [
        ("What is discussed?", True, True),
        ("Worüber wird im Landtag gesprochen?", True, True),
        ("Worüber wird mit den Ministern in Bern gesprochen?", False, False),
        ("Which storms are reported?", True, False),
        ("Which storms are reported by Olga Nowak?", False, False),
    ],
)
def test_what_documents_tell_ends_a_question(question: str, *, tells: bool, all_tell: bool) -> None:
    assert asks_what_is_told(question) == tells
    assert asks_what_all_tell(question) == all_tell
