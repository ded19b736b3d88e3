"""What a person may write into resolutions.yaml, and what a command writes into it."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphrag_index.errors import ExitCode, SettingsError
from graphrag_index.resolution import decisions_file
from graphrag_index.resolution.decisions_file import Decisions, PartConditions, read_decisions
from graphrag_nlp.text.normalize import title_key
from tests.fixtures.cases import cases
from tests.fixtures.examples import examples

WHOLE = """\
# Ours.
merge:
  Oslo: [Kristiania, Christiania]  # until 1925
never:
  - [Apollo 11, Apollo 12]
rename:
  Terra Nova Expedition: British Antarctic Expedition 1910
split:
  John Smith:
    - {title: John Smith (banker)}
    - {title: John Smith (sailor), paths: ["letters/*"], types: person}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "resolutions.yaml"


def test_a_file_that_is_not_there_or_empty_decides_nothing(path: Path) -> None:
    assert read_decisions(path) == Decisions()
    path.write_text("# nothing yet\n", encoding="utf-8")
    assert read_decisions(path) == Decisions()
    path.write_text("merge:\nnever:\n", encoding="utf-8")
    assert read_decisions(path) == Decisions()


def test_a_whole_file_is_read(path: Path) -> None:
    path.write_text(WHOLE, encoding="utf-8")
    decisions = read_decisions(path)
    assert decisions.titles == {
        "oslo": "Oslo",
        "kristiania": "Oslo",
        "christiania": "Oslo",
        "terra nova expedition": "British Antarctic Expedition 1910",
        "british antarctic expedition 1910": "British Antarctic Expedition 1910",
    }
    assert list(decisions.forbidden_pairs()) == [("apollo 11", "apollo 12")]
    sailor = PartConditions("John Smith (sailor)", paths=("letters/*",), types=("person",))
    # The part without conditions is the last.
    assert decisions.split == {"john smith": (sailor, PartConditions("John Smith (banker)"))}


def test_comments_and_order_are_no_part_of_what_is_decided(path: Path) -> None:
    path.write_text("never:\n  - [A, B]\nmerge:\n  C: [D]\n", encoding="utf-8")
    first = read_decisions(path).fingerprint()
    path.write_text("# Changed\nmerge: {C: [D]}\nnever: [[B, A]]\n", encoding="utf-8")
    assert read_decisions(path).fingerprint() == first
    path.write_text("never: [[A, B]]\n", encoding="utf-8")
    assert read_decisions(path).fingerprint() != first


@cases("text, said")
def test_what_cannot_be_meant_is_one_sentence_with_its_line(
    text: str, said: str, path: Path
) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        read_decisions(path)
    message = str(caught.value)
    assert said in message
    assert str(path) in message
    assert len(message.splitlines()) == 1
    assert caught.value.exit_code == ExitCode.WRONG_USE


def test_a_file_that_cannot_be_read_is_told(path: Path) -> None:
    path.write_bytes(b"merge:\n  \xff: [B]\n")
    with pytest.raises(SettingsError, match="is not UTF-8"):
        read_decisions(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(SettingsError, match="cannot be read"):
        read_decisions(path)


def test_a_decision_is_added_where_it_belongs_and_all_else_stays(path: Path) -> None:
    path.write_text(WHOLE, encoding="utf-8")
    assert decisions_file.add_merge(path, "Oslo", ["Ánslo"])
    assert decisions_file.add_merge(path, "Bern", ["Berne: city"])
    assert decisions_file.forbid_merge(path, ["North Korea", "South Korea"])
    assert path.read_text(encoding="utf-8") == WHOLE.replace(
        "Christiania]  # until 1925\n",
        "Christiania, Ánslo]  # until 1925\n  Bern: ['Berne: city']\n",
    ).replace(
        "[Apollo 11, Apollo 12]\n", "[Apollo 11, Apollo 12]\n  - [North Korea, South Korea]\n"
    )


def test_what_is_decided_already_is_not_written_again(path: Path) -> None:
    path.write_text(WHOLE, encoding="utf-8")
    assert not decisions_file.add_merge(path, "OSLO", ["kristiania"])
    assert not decisions_file.forbid_merge(path, ["Apollo 12", "Apollo 11"])
    assert path.read_text(encoding="utf-8") == WHOLE


def test_what_contradicts_the_file_is_refused(path: Path) -> None:
    path.write_text(WHOLE, encoding="utf-8")
    with pytest.raises(SettingsError, match="forbids to merge"):
        decisions_file.add_merge(path, "Apollo 11", ["Apollo 12"])
    with pytest.raises(SettingsError, match=r'merges .*--undo "Oslo" "Kristiania"'):
        decisions_file.forbid_merge(path, ["Oslo", "Kristiania"])
    with pytest.raises(SettingsError, match="has 'Oslo' as the title of other names: give this"):
        decisions_file.add_merge(path, "Bern", ["Oslo"])
    with pytest.raises(SettingsError, match="A name is empty"):
        decisions_file.add_merge(path, "Bern", [" "])
    with pytest.raises(SettingsError, match="merges 'Kristiania' into 'Oslo'"):
        decisions_file.add_merge(path, "Bern", ["Kristiania"])
    assert path.read_text(encoding="utf-8") == WHOLE


def test_undoing_takes_out_what_was_decided(path: Path) -> None:
    path.write_text(WHOLE, encoding="utf-8")
    assert decisions_file.undo_decisions(path, "Oslo", "Kristiania")
    assert decisions_file.undo_decisions(path, "christiania", "oslo")
    assert decisions_file.undo_decisions(path, "Apollo 11", "Apollo 12")
    renamed = "British Antarctic Expedition 1910"
    assert decisions_file.undo_decisions(path, renamed, "Terra Nova Expedition")
    assert not decisions_file.undo_decisions(path, "Oslo", "Kristiania")
    decisions = read_decisions(path)
    assert (decisions.titles, decisions.never) == ({}, ())
    assert "# Ours." in path.read_text(encoding="utf-8")


def test_undoing_takes_back_what_is_said_of_the_two_alone(path: Path) -> None:
    path.write_text(
        "merge:\n  'A [old]': [B, C]  # see [1]\nnever:\n  - [X, Y, Z]  # all three\n",
        encoding="utf-8",
    )
    assert decisions_file.undo_decisions(path, "X", "Y")
    assert set(read_decisions(path).forbidden_pairs()) == {("x", "z"), ("y", "z")}
    assert decisions_file.undo_decisions(path, "A [old]", "B")
    assert decisions_file.add_merge(path, "a [old]", ["X"])
    assert path.read_text(encoding="utf-8") == (
        "merge:\n  'A [old]': [C, X]  # see [1]\n"
        "never:\n  - [X, Z]  # all three\n  - [Y, Z]  # all three\n"
    )


def test_renames_and_splits_are_added_and_undone(path: Path) -> None:
    path.write_text(WHOLE, encoding="utf-8")
    parts = (
        PartConditions("Mercury, the planet", paths=("space/*",), types=("planet",)),
        PartConditions("Mercury: element"),
    )
    assert decisions_file.add_rename(path, "RGS", "Royal  Geographical Society")
    assert decisions_file.add_split(path, "Mercury", parts)
    decisions = read_decisions(path)
    assert decisions.titles["rgs"] == "Royal Geographical Society"
    assert decisions.split["mercury"] == parts
    assert not decisions_file.add_rename(path, "rgs", "Royal Geographical Society")
    assert not decisions_file.add_split(path, "MERCURY", parts[::-1])
    with pytest.raises(SettingsError, match="gives 'RGS' the title"):
        decisions_file.add_rename(path, "RGS", "Other")
    with pytest.raises(SettingsError, match="splits 'Mercury' in another way"):
        decisions_file.add_split(path, "Mercury", parts[:1])
    with pytest.raises(SettingsError, match="two parts with the same title"):
        decisions_file.add_split(path, "Venus", (parts[0], parts[0]))
    assert decisions_file.undo_split(path, "mercury")
    assert not decisions_file.undo_split(path, "mercury")
    assert decisions_file.undo_decisions(path, "RGS", "Royal Geographical Society")
    assert path.read_text(encoding="utf-8") == WHOLE
    assert decisions_file.undo_split(path, "John Smith")
    assert path.read_text(encoding="utf-8") == WHOLE[: WHOLE.index("  John")]


def test_titles_have_single_spaces(path: Path) -> None:
    path.write_text("merge:\n  New  Oslo: [Oslo]\nrename:\n  A: 'B  C'\n", encoding="utf-8")
    assert set(read_decisions(path).titles.values()) == {"New Oslo", "B C"}


def test_a_form_that_is_not_edited_by_lines_stays_as_it_was(path: Path) -> None:
    text = "merge: {A: [B]}\nnever: [[C, D]]\n"
    path.write_text(text, encoding="utf-8")
    for edit in (
        lambda: decisions_file.add_merge(path, "E", ["F"]),
        lambda: decisions_file.forbid_merge(path, ["E", "F"]),
        lambda: decisions_file.undo_decisions(path, "A", "B"),
        lambda: decisions_file.undo_decisions(path, "C", "D"),
    ):
        with pytest.raises(SettingsError, match="by hand"):
            edit()
    assert path.read_text(encoding="utf-8") == text
    assert [file.name for file in path.parent.iterdir()] == [path.name]


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12).filter(
    title_key
)


@examples(40)
@example(decided=[("\xa01", "000", True), ("0", "00", True)])
@example(decided=[("00", "000", True), ("\xa0>", "0", True)])
@given(decided=st.lists(st.tuples(NAMES, NAMES, st.booleans()), max_size=5))
def test_what_is_written_is_read_and_can_be_undone(
    tmp_path_factory: pytest.TempPathFactory, decided: list[tuple[str, str, bool]]
) -> None:
    path = tmp_path_factory.mktemp("edit") / "resolutions.yaml"
    taken: set[str] = set()
    done = []
    for one, other, is_merge in decided:
        keys = {title_key(one), title_key(other)}
        if len(keys) < 2 or keys & taken:
            continue
        taken |= keys
        if is_merge:
            assert decisions_file.add_merge(path, one, [other])
        else:
            assert decisions_file.forbid_merge(path, [one, other])
        done.append((one, other, is_merge))
    decisions = read_decisions(path)
    for one, other, is_merge in done:
        a, b = title_key(one), title_key(other)
        if is_merge:
            assert title_key(decisions.titles[b]) == title_key(decisions.titles[a]) == a
        else:
            assert (a, b) in decisions.forbidden_pairs()
        assert decisions_file.undo_decisions(path, one, other)
    decisions = read_decisions(path)
    assert (decisions.titles, decisions.never) == ({}, ())
