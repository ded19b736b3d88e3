from pathlib import Path

import pytest

from graphrag_index.errors import SettingsError
from graphrag_index.llm.prompts import Prompts


def write(root: Path, name: str, text: str) -> Prompts:
    (root / "prompts").mkdir(exist_ok=True)
    (root / "prompts" / f"{name}.txt").write_text(text, encoding="utf-8")
    return Prompts(root)


def test_values_are_inserted_verbatim(tmp_path: Path) -> None:
    prompts = write(tmp_path, "mine", "Read {{text}} {and} {0} %s $x.")
    text = "{{other}} {text} <|endoftext|> \\1 \\g<0>"
    assert prompts.fill("mine", {"text": text}) == f"Read {text} {{and}} {{0}} %s $x."


def test_an_unfilled_placeholder_is_named(tmp_path: Path) -> None:
    prompts = write(tmp_path, "mine", "Read {{texts}}.")
    with pytest.raises(SettingsError, match=r"placeholder \{\{texts\}\}; known: \{\{text\}\}"):
        prompts.fill("mine", {"text": ""})


def test_a_prompt_of_the_project_overrides_the_default(tmp_path: Path) -> None:
    shipped = Prompts(tmp_path).read_prompt("extract_graph")
    assert shipped
    assert Prompts(tmp_path).project_prompts() == {}
    prompts = write(tmp_path, "extract_graph", "Mine.")
    assert prompts.read_prompt("extract_graph") == "Mine."
    assert prompts.project_prompts() == {"extract_graph": "Mine."}


@pytest.mark.parametrize("prompt", ["extract_graph", "continue_extraction"])
def test_prompts_of_the_users_own_are_taken(prompt: str, tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / f"{prompt}.txt").write_text("Mine {", encoding="utf-8")
    assert Prompts(tmp_path).fill(prompt, {}) == "Mine {"
