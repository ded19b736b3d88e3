"""Sentences of reports, and the passages that they quote."""

from graphrag_query.answering.report_sentences import (
    cited_sentences,
    locate_sentence,
    longest_turns,
)


def test_sentences_are_cut_from_reports_with_what_they_cite() -> None:
    text = (
        "Scott sailed. [Data: Entities (1, 2); Relationships (3); Sources (4)] "
        "Ice came [early]. [Data: Entities (1); Sources (7)]"
    )
    assert cited_sentences(text) == [("Scott sailed.", 4), ("Ice came [early].", 7)]


def test_a_sentence_is_found_where_lines_break_it() -> None:
    unit = {"text": "Before.\nIce  came\nearly. After.", "start_char": 100, "human_readable_id": 3}
    found = locate_sentence("Ice came early.", unit)
    assert found is not None
    assert (found.text, found.start_char, found.end_char) == ("Ice  came\nearly.", 108, 124)
    assert locate_sentence("Never said.", unit) is None


def test_of_several_turns_of_a_chat_the_longest_is_quoted() -> None:
    text = "Ann: Hello!\nBob: The boat leaves at noon from the old pier.\nAnn: Fine.\n"
    unit = {"text": text, "start_char": 0, "human_readable_id": 3}
    said = "Hello! Bob: The boat leaves at noon from the old pier. Ann: Fine."
    found, *others = longest_turns([(said, 3), ("Never said.", 3), (said, 4)], {3: unit})
    assert found is not None
    assert others == [None, None]
    assert (found.label, found.text) == ("Bob", "The boat leaves at noon from the old pier.")
