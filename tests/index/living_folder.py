"""A folder of documents that change, and its index, for tests of updates."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from graphrag_index.llm.ledger import FILE
from graphrag_index.pipeline.run import RunResult, run_workflow
from graphrag_index.pipeline.services import models_of, services_of
from graphrag_index.pipeline.workflow import load_workflow
from graphrag_index.schema.settings.settings import load_settings
from graphrag_index.storage.table_store import TableStore
from tests.index.commands import REPOSITORY

# Those that are the same after an update as after a build from nothing, whatever came between.
SAME = (
    *("documents", "text_units", "entities", "relationships", "covariates"),
    *("text_unit_text", "text_unit_vectors", "entity_description"),
)
SAME_WITH_REBUILD = (*SAME, "communities", "community_reports", "community_full_content")


class LivingFolder:
    """A project behind a server of models; `update` does what `graphrag-index run` does."""

    def __init__(self, root: Path, url: str, **sections: Any) -> None:
        self.root = root
        (root / "input").mkdir(parents=True)
        shutil.copytree(REPOSITORY / "workflows", root / "workflows")
        server = {"base_url": url, "api_key": "none", "concurrency": 8, "timeout": 5}
        settings = {
            "workflow": "standard",
            "models": {
                "chat": {"model": "test-model", **server},
                "embedding": {"model": "test-embedding", **server},
            },
            "generate_text_embeddings": {"model": "embedding"},
            "finalize_graph": {"layout": False},
            **sections,
        }
        (root / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")

    @property
    def output(self) -> Path:
        return self.root / "output"

    def write(self, name: str, text: str) -> None:
        path = self.root / "input" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def rename(self, old: str, new: str) -> None:
        target = self.root / "input" / new
        target.parent.mkdir(parents=True, exist_ok=True)
        (self.root / "input" / old).rename(target)

    def delete(self, name: str) -> None:
        (self.root / "input" / name).unlink()

    def update(self) -> RunResult:
        settings = load_settings(self.root)
        workflow = load_workflow(self.root, settings.workflow)
        with closing(models_of(workflow, settings, self.root)) as models:
            services = services_of(settings, models, self.root)
            result = run_workflow(
                workflow,
                settings,
                self.root,
                services,
                quarantined=lambda step: len(models.quarantined([step])),
            )
            models.finished()
        return result

    def rebuilt(self, root: Path) -> "LivingFolder":
        """Build an index from nothing out of the same folder and the same replies."""
        other = object.__new__(LivingFolder)
        other.root = root
        root.mkdir()
        shutil.copy(self.root / "settings.yaml", root)
        for name in ("input", "workflows"):
            shutil.copytree(self.root / name, root / name)
        other.output.mkdir()
        shutil.copy(self.output / FILE, other.output / FILE)
        other.update()
        return other

    def digests(self, names: tuple[str, ...]) -> dict[str, str]:
        """The digest of the bytes of each table that the pointer names."""
        version = TableStore(self.output).read_pointer()
        assert version is not None
        return {name: table.digest for name, table in version.tables.items() if name in names}

    def texts(self) -> str:
        """All that stands in the tables of the index."""
        store = TableStore(self.output)
        version = store.read_pointer()
        assert version is not None
        found = []
        for name, table in version.tables.items():
            frame = store.scan(name, table).collect()
            found += [
                frame.select(column).write_ndjson()
                for column, dtype in frame.schema.items()
                if dtype in (pl.String, pl.List, pl.Struct)
            ]
        return "\n".join(found)
