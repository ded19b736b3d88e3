"""What the reports must speak of that answer a question."""

import pytest

from graphrag_query.index import Index
from graphrag_query.retrieval.report_selection import subject_words
from tests.fixtures.fake_llm import question_to


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("What are the main themes and who matters most?", []),
        ("Quels sont les thèmes principaux ?", []),
        ("What do the documents say about blockchain?", ["blockchain"]),
        # The stem of the Italian function word "questi" is the name of a ship.
        ("What do the documents tell about Quest?", ["quest"]),
        ("What patterns can be seen across all expeditions?", ["expedit"]),
        # Without a word about the whole corpus, a word such as "main" may belong to the subject.
        ("Where is the central hut?", ["central", "hut"]),
        # In scripts without spaces, the cues are parts of longer runs of letters.
        ("这些文档的主要主题是什么？", []),
        ("请概括所有文档的内容", []),
        ("北京大学的主要主题是什么？", ["北京大学的"]),
        ("これらの文書の主なテーマは何ですか？", []),
        ("ธีมหลักของเอกสารเหล่านี้คืออะไร", []),
        # Words for the corpus itself, and for kinds and differences.
        ("What do people fear in these conversations?", ["peopl", "fear"]),
        ("Welche Rolle spielt Eis in diesem Handbuch?", ["roll", "spielt", "ei"]),
        ("Which books did the explorers write?", ["book", "explor", "write"]),
        ("What different kinds of huts are described?", ["hut"]),
        # Verbs for what texts say, and who talks.
        ("What are the main topics people chat about?", []),
        ("Worüber unterhalten sich die Leute in diesen Chats?", []),
        ("¿De qué tratan las noticias?", []),
        # Debates and speeches are documents, and their time is that of the corpus.
        ("What are the main topics of these debates?", []),
        ("Welche Themen kommen in den Reden am häufigsten vor?", []),
        ("What changed during the time covered by the articles?", []),
        ("Was sagen die Texte über Eis?", ["ei"]),
        ("Welche Schiffe werden genannt?", ["schiff"]),
        ("How did the ships change over time?", ["ship"]),
        ("Wie haben sich die Schiffe verändert?", ["schiff"]),
        ("How did the attack change the law?", ["attack", "chang", "law"]),
        ("What do the documents say about climate change?", ["climat", "chang"]),
        # The main ones of several.
        ("Quels sont les principaux problèmes ?", ["problèm"]),
        ("What are the most common problems?", ["problem"]),
        # The words between the parts of a typical phrase are kept.
        ("Compare all ship documents.", ["ship"]),
    ],
)
def test_words_that_ask_for_the_kind_of_answer_are_no_subject(
    index: Index, question: str, subject: list[str]
) -> None:
    assert subject_words(question_to(index, question)) == subject


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("Which organizations are criticised?", ["organiz"]),
        ("Which diseases do readers complain about?", ["diseas"]),
        # Problems alone would be those of anybody.
        ("What problems do patients report?", ["problem", "patient"]),
    ],
)
def test_who_speaks_is_left_out_of_the_subject(
    index: Index, question: str, subject: list[str]
) -> None:
    assert subject_words(question_to(index, question)) == subject
