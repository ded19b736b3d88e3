"""Sentences of reports: how central they are to their themes."""

from graphrag_query.answering.theme_answer import first_subject
from graphrag_query.searches.report_points import rate_centrality


def test_a_sentence_with_the_words_of_its_theme_is_central() -> None:
    health = [
        "A comedian made jokes on Wednesday evening.",
        "Several senators opposed the health insurance bill.",
        "The health insurance bill was pulled before the vote.",
    ]
    storm = ["The storm reached the coast.", "A senator visited the coast."]
    rated, of_storm = rate_centrality(["Health insurance", "Storm"], [health, storm])
    assert rated[0] == 0
    assert max(rated) == 1
    assert min(rated[1:]) > 0.5
    assert of_storm[0] == 1


def test_themes_without_sentences_have_no_central_ones() -> None:
    assert rate_centrality(["Storm", "Fire"], [[], ["Fire."]]) == [[], [0.0]]
    assert rate_centrality([], []) == []


def test_a_sentence_below_a_title_says_what_the_title_promises() -> None:
    ban = [
        "President Trump wrote a speech with the advisers of the White House.",
        "The advisers of President Trump met leaders in the White House.",
        "The travel ban was frozen by the courts.",
        "President Trump praised the advisers of the White House.",
    ]
    storm = ["The storm reached the coast.", "A senator visited the coast."]
    rated, _ = rate_centrality(["Donald Trump's travel ban", "Storm"], [ban, storm])
    assert rated.index(max(rated)) == 2
    assert first_subject("Pack ice: Belgica, Antarctica") == "Pack ice"
    assert first_subject("Different subjects: fires (Rome); race (Ann)") == "fires (Rome)"
