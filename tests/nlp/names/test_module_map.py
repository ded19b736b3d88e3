import re
from pathlib import Path

from graphrag_nlp import names


def test_map_of_names_lists_each_module_once() -> None:
    listed = re.findall(r"^(\w+)\.py  ", names.__doc__ or "", re.MULTILINE)
    modules = {path.stem for path in Path(names.__file__).parent.glob("*.py")} - {"__init__"}
    assert sorted(listed) == sorted(modules)
