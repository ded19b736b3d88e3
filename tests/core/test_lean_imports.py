import subprocess
import sys
from pathlib import Path

CODE = """
import sys
from graphrag_index.core.lean_imports import leave_out_unused
leave_out_unused(pandas=True)
import lancedb, pyarrow as pa
table = lancedb.connect(sys.argv[1]).create_table("t", pa.table({"id": ["a", "b"]}))
print(table.count_rows(), table.search().where("id = 'b'").to_arrow()["id"].to_pylist())
client = [name for name in sys.modules if name.startswith("lance_namespace_urllib3_client")]
print("pandas" in sys.modules, any(hasattr(sys.modules[name], "__file__") for name in client))
print(len(client) > 1)
"""


def test_lancedb_works_without_what_is_left_out(tmp_path: Path) -> None:
    python = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert python.stdout.split("\n") == ["2 ['b']", "False False", "True", ""]


def test_a_library_that_imports_us_keeps_its_pandas() -> None:
    code = "import graphrag_query, graphrag_index.core.lean_imports, sys; print(len(sys.meta_path))"
    with_us = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    without = subprocess.run(
        [sys.executable, "-c", "import sys; print(len(sys.meta_path))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert with_us.stdout == without.stdout
