"""What a run prints of its steps."""

from graphrag_index.cli.terminal import describe
from graphrag_index.storage.versions import StepRecord, StoredTable


def test_a_step_is_described_by_what_it_wrote() -> None:
    tables = {
        "loaded_documents": StoredTable(2_100, "d", file="d"),
        "unread_files": StoredTable(9, "s", file="s"),
    }
    assert describe(StepRecord("load_documents", "key", tables)) == "2,100 documents"


def test_vectors_that_a_second_table_repeats_are_counted_once() -> None:
    tables = {
        "text_unit_text": StoredTable(5, "a", lance_version=1),
        "text_unit_vectors": StoredTable(5, "b", file="v.arrow"),
        "entity_description": StoredTable(3, "c", lance_version=2),
    }
    assert describe(StepRecord("generate_text_embeddings", "key", tables)) == "8 vectors"
