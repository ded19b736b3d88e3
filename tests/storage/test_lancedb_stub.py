"""The stub leaves out the remote catalogue client, and local tables work with it."""

import subprocess
import sys
from pathlib import Path

CODE = """
import sys
from graphrag_index.storage.lancedb_stub import stub_unused_imports
stub_unused_imports()
import lancedb
table = lancedb.connect(sys.argv[1]).create_table("t", [{"vector": [1.0, 0.0], "id": "a"}])
print(table.search([1.0, 0.0]).limit(1).to_list()[0]["id"])
print(any(name.startswith("lance_namespace_urllib3_client.api") for name in sys.modules))
"""


def test_local_tables_need_no_remote_catalogue(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path)],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert result.stdout.split() == ["a", "False"]
