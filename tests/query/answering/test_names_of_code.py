"""Questions with names of code: options, functions and settings."""

import pytest

from graphrag_query.answering.answer_ranking import rank_answers
from graphrag_query.answering.asked_words import find_exact_words
from graphrag_query.answering.extractive import split_into_candidates
from graphrag_query.answering.statements import find_statements
from graphrag_query.index import Index
from graphrag_query.question.question import Question


def best_sentence(index: Index, question: str, text: str) -> str:
    unit = {"human_readable_id": 0, "start_char": 0, "text": text, "title": ""}
    ranked = rank_answers(
        Question(question, index.store), split_into_candidates([unit], {0: 1}), {}
    )
    return ranked[0].candidate.text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("What does process.exit() do?", ["process.exit"]),
        ("What is `--dry-run` for, and -n?", ["--dry-run", "-n"]),
        ("What does max_retries default to?", ["max_retries"]),
        ("What does ignoreInitial do in version 2.0?", ["2.0", "ignoreinitial"]),
        ("Does std::sort call it?", ["std::sort"]),
        ("What does ThreadPoolExecutor do?", ["threadpoolexecutor"]),
        ("Who is WolfgangSchulz, born in the U.S. at 8 a.m. - or Mr. McDonald?", ["8"]),
    ],
)
def test_names_of_code_are_wholes(text: str, found: list[str]) -> None:
    assert list(find_exact_words(text)) == found


@pytest.mark.parametrize(
    ("question", "text", "best"),
    [
        (
            "What does ignoreInitial do?",
            "Files that match are ignored from the initial scan on. "
            "Setting `ignoreInitial` hides the first events.",
            "Setting `ignoreInitial` hides the first events.",
        ),
        (
            "What does max_retries default to?",
            "The max number of retries has no limit by default. It was ten once. "
            "By default, max_retries has the value 3.",
            "By default, max_retries has the value 3.",
        ),
        (
            "What does ThreadPoolExecutor do?",
            "A thread of the pool is what the executor does hand out. "
            "With ThreadPoolExecutor, calls run at the same time.",
            "With ThreadPoolExecutor, calls run at the same time.",
        ),
        (
            "What is --dry-run for?",
            "A dry place to run is for people. With --dry-run, nothing is written to disk.",
            "With --dry-run, nothing is written to disk.",
        ),
        (
            "What does process.exit do?",
            "The process does its work and does exit at the end. "
            "Call process.exit to end at once, without any cleaning.",
            "Call process.exit to end at once, without any cleaning.",
        ),
        (
            "What does maxRetryTime do?",
            "##### maxRetries\n\nThe retry has a max number.\n\n##### maxRetryTime\n\n"
            "The longest period that the operation may run.\n",
            "The longest period that the operation may run.",
        ),
    ],
)
def test_a_sentence_with_the_whole_name_is_the_best(
    index: Index, question: str, text: str, best: str
) -> None:
    assert best_sentence(index, question, text) == best


@pytest.mark.parametrize(
    ("heading", "label"),
    [
        ("maxRetryTime", "maxRetryTime"),
        ("`unref()`", "unref"),
        ("retry(input, options?)", "retry"),
        ("--dry-run", "--dry-run"),
        ("History", ""),
        ("How it works", ""),
        ("HTTP", ""),
        ("MAX_RETRIES", "MAX_RETRIES"),
    ],
)
def test_a_heading_that_is_a_name_of_code_labels_its_sentences(heading: str, label: str) -> None:
    text = f"# Manual\n\nThis is a very short manual.\n\n## {heading}\n\nThe work ends at once.\n"
    labels = [s.label for s in find_statements(text) if s.prose]
    assert labels == ["", label]


@pytest.mark.parametrize(
    "text",
    [
        'watch(".", {\n  ignoreInitial: false,\n});\n```\n\nIt is quick on all systems.',
        "f(a);\n```\n\nIt is quick on all systems.\n\n```js\ng(b);\n```\n",
        "It is quick on all systems.\n\n```js\nf({\n  ignoreInitial: false,\n  interval: 100,\n",
    ],
)
def test_a_block_of_code_that_is_cut_states_nothing(text: str) -> None:
    assert [text[s.start : s.end] for s in find_statements(text) if s.prose] == [
        "It is quick on all systems."
    ]
