import pytest

from tests.fixtures.commands import Call, ask


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("run", "project"),
            "Unexpected argument 'project'. A project is given by its folder: --root project\n",
        ),
        (("init", "project", "other"), "Unexpected argument 'other'.\n"),
        (("schema", "project"), "Unexpected argument 'project'.\n"),
    ],
)
def test_an_argument_too_many_is_refused_with_what_to_do(
    graphrag_index: Call, arguments: tuple[str, ...], said: str
) -> None:
    result = graphrag_index(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"Usage: graphrag-index {arguments[0]} ")
    assert result.err.endswith(f"\n\nError: {said}")


def test_a_question_of_several_words_needs_quotes() -> None:
    result = ask("global", "What", "are", "the", "themes?")
    assert result.returncode == 2
    assert result.stderr.endswith(
        "\n\nError: Unexpected argument 'are'. Put a question of several words in quotes.\n"
    )
