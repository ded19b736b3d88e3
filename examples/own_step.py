"""Add a step of your own to a workflow: it removes e-mail addresses before indexing.

    python examples/own_step.py

The step is the function `redact_emails`. A workflow names it by its import path,
`own_step:redact_emails`; the module lies beside `settings.yaml` or is installed.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

import graphrag_query
from graphrag_index.step import step

WORKFLOW = """\
- load_documents
- own_step:redact_emails
- create_text_units
- extract_graph_nlp
- resolve_entities
- finalize_graph
- create_communities
- link_text_units
- create_search_tables
"""
LETTER = (
    "Ada Lovelace asked Charles Babbage to write to ada@example.org about the Analytical Engine."
)


@step(writes=["loaded_documents"])
def redact_emails(loaded_documents: pl.LazyFrame) -> pl.DataFrame:
    """Replace e-mail addresses in the texts of the documents."""
    redacted = pl.col("text").str.replace_all(r"[\w.+-]+@[\w-]+\.[\w.]+", "[e-mail]")
    return loaded_documents.with_columns(redacted).collect()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("input", "workflows"):
            (root / name).mkdir()
        shutil.copy(__file__, root / "own_step.py")
        (root / "input" / "letter.txt").write_text(LETTER, encoding="utf-8")
        (root / "workflows" / "redacted.yaml").write_text(WORKFLOW, encoding="utf-8")
        (root / "settings.yaml").write_text("workflow: redacted\n", encoding="utf-8")
        command = [sys.executable, "-m", "graphrag_index", "run", "--root", folder]
        subprocess.run(command, check=True)
        with graphrag_query.open(root / "output") as index:
            print(index.sql("SELECT text FROM text_units").rows[0][0])


if __name__ == "__main__":
    main()
