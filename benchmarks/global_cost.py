"""Measure what a global search sends to a model, against map-reduce over the whole level.

    python benchmarks/global_cost.py

Two corpora are indexed by the workflow `standard`: the sample in `input/`, and a book's worth of
`planted.py`. A server of our own stands for the model (tests/model_server), in a process of its
own; the embeddings are those of the default. Each question is asked with the default settings, and
again with every report of the level that it chose. The prompt tokens are those of the
server's `usage`.
"""

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml
from index import REPOSITORY, describe_machine, markdown, working_folder
from models import run, server
from planted import make_corpus

sys.path.insert(0, str(REPOSITORY))

# Whole-corpus questions and such with a subject; the names of a planted corpus are invented.
QUESTIONS = {
    "sample": (
        "What are the main themes?",
        "How did the expeditions fight scurvy?",
        "Which expeditions failed, and why?",
        "What part did dogs and ponies play?",
        "How were the expeditions paid for?",
    ),
    "book": (
        "What are the main themes?",
        "Which quarrels were there, and how were they settled?",
        "Who took over debts, and whose?",
        "What did the long drought bring about?",
        "What do the letters tell of the guilds?",
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text-units", type=int, default=320, help="of the book")
    parser.add_argument("--folder", type=Path, help="keep corpora and indices in this folder")
    arguments = parser.parse_args()
    print(describe_machine())
    with working_folder(arguments.folder) as folder, server() as url:
        make_corpus(arguments.text_units, folder / "book")
        sample = folder / "sample" / "input"
        shutil.copytree(REPOSITORY / "input", sample, dirs_exist_ok=True)
        for name, questions in QUESTIONS.items():
            print()
            print(cost(folder / name, name, questions, url))


def cost(project: Path, name: str, questions: tuple[str, ...], url: str) -> str:
    """Index a corpus and ask it; a table with one row a question."""
    import graphrag_query
    from graphrag_index.schema.settings.project_settings import load_settings

    write_settings(project, url)
    run(project)
    rows = []
    total = total_whole = 0
    settings = load_settings(project)
    with graphrag_query.open(project / "output", settings, project) as index:
        for question in questions:
            chosen = index.global_(question)
            level = chosen.parameters["level"]
            whole = index.global_(question, selection="level", level=level)
            sent, sent_whole = chosen.usage.prompt_tokens, whole.usage.prompt_tokens
            total, total_whole = total + sent, total_whole + sent_whole
            read, of = chosen.looked_at["reports_read"], whole.looked_at["reports_read"]
            rows.append(
                [question, f"{level}", f"{read} of {of}", f"{chosen.usage.calls}", f"{sent:,}",
                 f"{whole.usage.calls}", f"{sent_whole:,}", f"{sent / sent_whole:.3f}"]
            )  # fmt: skip
    ratio = f"{total / total_whole:.3f}"
    rows.append(["together", "", "", "", f"{total:,}", "", f"{total_whole:,}", ratio])
    heading = [name, "level", "reports", "calls", "tokens", "calls, all", "tokens, all", "ratio"]
    return markdown(heading, rows)


def write_settings(project: Path, url: str) -> None:
    """Write the settings and workflow of a project whose chats go to the server."""
    settings: dict[str, Any] = {
        "workflow": "standard",
        "models": {
            "chat": {"model": "test-model", "base_url": url, "api_key": "none", "concurrency": 16}
        },
        "finalize_graph": {"layout": False},
    }
    shutil.copytree(REPOSITORY / "workflows", project / "workflows", dirs_exist_ok=True)
    (project / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")


if __name__ == "__main__":
    main()
