import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_nlp import names


def test_map_of_names_lists_each_module_once() -> None:
    listed = re.findall(r"^(\w+)\.py  ", names.__doc__ or "", re.MULTILINE)
    modules = {path.stem for path in Path(names.__file__).parent.glob("*.py")} - {"__init__"}
    assert sorted(listed) == sorted(modules)


@pytest.mark.parametrize(
    ("step", "imports_names"), [("resolve_entities", False), ("extract_graph_nlp", True)]
)
def test_names_are_imported_only_without_a_model(step: str, imports_names: bool) -> None:
    code = f"import sys, graphrag_index.steps.{step}; print('graphrag_nlp.names' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == str(imports_names)
