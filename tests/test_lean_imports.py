import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
LEAN = """
import sys
from graphrag_index.lean_imports import leave_out_unused
leave_out_unused()
"""


def run(code: str, *arguments: object) -> str:
    python = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
    )
    return python.stdout


def test_lancedb_works_without_what_is_left_out() -> None:
    code = (
        f"{LEAN}\nimport pytest\n"
        "failed = pytest.main(['-q', '-p', 'no:cacheprovider', *sys.argv[1:]])\n"
        "import lance_namespace_urllib3_client.models as models\n"
        "print(int(failed), 'pandas' in sys.modules, hasattr(models, '__file__'))"
    )
    tests = REPOSITORY / "tests" / "core" / "test_vector_store.py"
    assert run(code, tests).splitlines()[-1] == "0 False False"


def test_a_step_of_ones_own_finds_all_that_is_installed(tmp_path: Path) -> None:
    # As `pandas`, whether it is installed or not.
    (tmp_path / "pandas.py").write_text("read_csv = len\n", encoding="utf-8")
    (tmp_path / "own.py").write_text(
        "import pandas\n"
        "from graphrag_index.step import step\n"
        "@step(writes=['entities'])\n"
        "def shout(entities):\n"
        "    return entities\n",
        encoding="utf-8",
    )
    code = (
        f"{LEAN}\nfrom pathlib import Path\n"
        "from graphrag_index.pipeline.workflow import load_step\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "print(load_step('own:shout', Path(sys.argv[1]), 'w.yaml').name, 'pandas' in sys.modules)"
    )
    assert run(code, tmp_path) == "shout True\n"


def test_a_sheet_is_read_with_pandas_also_by_a_command(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("pandas")
    book = openpyxl.Workbook()
    book.active.append(["Tom Crean"])
    book.save(tmp_path / "a.xlsx")
    code = (
        f"{LEAN}\nfrom pathlib import Path\n"
        "from graphrag_index.schema.settings.settings import LoadDocuments\n"
        "from graphrag_index.readers import read_file\n"
        "print(next(read_file(Path(sys.argv[1]), 'a.xlsx', LoadDocuments())).text)"
    )
    assert "Tom Crean" in run(code, tmp_path / "a.xlsx")


def test_a_library_that_imports_us_keeps_its_pandas() -> None:
    count = "import sys; print(len(sys.meta_path))"
    assert run(f"import graphrag_query, graphrag_index.lean_imports\n{count}") == run(count)
