"""Jupyter notebooks and subtitles."""

import json
from pathlib import Path

import pytest

from tests.fixtures.read_documents import read, read_one, reasons
from tests.fixtures.sample_files import SRT, VTT, make_cell


def test_cues_are_joined_to_sentences_with_their_times(tmp_path: Path) -> None:
    found = read_one(tmp_path / "a.srt", SRT.replace("\n", "\r\n"))
    assert found.text == (
        "[00:00:01] Anna Berg met Karl Ost in Riga.\n[00:00:03] When did Dr. Holm go?"
    )
    assert found.title == "a.srt"


def test_speakers_are_named_and_notes_and_repetitions_left_out(tmp_path: Path) -> None:
    assert read_one(tmp_path / "a.vtt", VTT).text == (
        "[00:00:01] Anna Berg: Hello, Karl.\n[00:00:01] Karl Ost: Hello,\n"
        "[01:00:02] Karl Ost: Anna <3"
    )


def test_speech_without_punctuation_is_cut_by_time(tmp_path: Path) -> None:
    cues = [f"00:{i // 60:02}:{i % 60:02}.000 --> 00:{i // 60:02}:{i % 60 + 4:02}.000\nword {i}\n"
            for i in range(0, 120, 5)]  # fmt: skip
    lines = read_one(tmp_path / "a.vtt", "WEBVTT\n\n" + "\n".join(cues)).text.splitlines()
    assert [line.split()[0] for line in lines] == [
        *("[00:00:00]", "[00:00:30]", "[00:01:00]", "[00:01:30]"),
    ]


def test_a_file_without_times_is_text(tmp_path: Path) -> None:
    assert read_one(tmp_path / "a.srt", "Just text.").text == "Just text."
    assert reasons(tmp_path / "b.vtt", "00:01.000 --> 00:02.000\n\n") == ["has no text"]


def test_a_notebook_is_its_texts_code_and_outputs(tmp_path: Path) -> None:
    table = "<table><tr><th>Ship<th>Year<tr><td>Terra Nova<td>1910</table>"
    cells = [
        make_cell("markdown", ["# The\n", "voyage"]),
        make_cell(
            "code",
            ["x = 1\n", "```"],
            {"output_type": "stream", "name": "stdout", "text": ["two\n", "lines\n"]},
            {"output_type": "execute_result", "data": {"text/html": table, "text/plain": "no"}},
            {
                "output_type": "display_data",
                "data": {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"},
            },
            {
                "output_type": "error",
                "ename": "KeyError",
                "evalue": "'a'",
                "traceback": ["\x1b[0m"],
            },
        ),
        make_cell("code", " "),
        make_cell("raw", "Raw."),
    ]
    info = {"language_info": {"name": "python"}}
    found = read_one(tmp_path / "a.ipynb", json.dumps({"cells": cells, "metadata": info}))
    assert found.text == (
        "# The\nvoyage\n\n```python\nx = 1\n ```\n```\n\n```\ntwo\nlines\n\n```\n\n"
        "Ship | Year\n--- | ---\nTerra Nova | 1910\n\n```\n<Figure>\n```\n\n"
        "```\nKeyError: 'a'\n```\n\nRaw."
    )
    assert found.title == "The"


def test_notebooks_of_version_3_are_read(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Log"]},
        {
            "cell_type": "code",
            "input": ["1 + 1"],
            "outputs": [{"text": ["2"], "output_type": "pyout"}],
        },
    ]
    content = json.dumps(
        {"nbformat": 3, "metadata": {"name": ""}, "worksheets": [{"cells": cells}]}
    )
    assert (
        read_one(tmp_path / "a.ipynb", content).text == "## Log\n\n```\n1 + 1\n```\n\n```\n2\n```"
    )


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"cells": [1]}', '{"cells": [{"a": 1}]}', "3"]
)
def test_what_is_no_notebook_says_so(tmp_path: Path, content: str) -> None:
    (reason,) = reasons(tmp_path / "a.ipynb", content)
    assert reason.startswith("is not a valid notebook: ")


def test_subtitles_made_to_be_searched_for_hours_are_read(tmp_path: Path) -> None:
    time = "00:00:01,000 --> 00:00:02,000\n"
    for body in (time + "<v a " * 20_000, time + "<v" + " " * 20_000, f"{time}Yes.\n\n" * 9_000):
        assert read_one(tmp_path / "a.srt", body).text


@pytest.mark.parametrize("level", ["1e400", "10" * 10, "-1"])
def test_a_heading_of_a_notebook_has_a_level_of_headings(tmp_path: Path, level: str) -> None:
    cell = f'{{"cell_type": "heading", "level": {level}, "source": "Riga"}}'
    content = f'{{"worksheets": [{{"cells": [{cell}]}}]}}'
    (found,) = read(tmp_path / "a.ipynb", content.encode())
    assert getattr(found, "text", "# Riga").endswith("# Riga")
