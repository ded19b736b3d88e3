import re
from pathlib import Path

from graphrag_index import nlp


def test_map_of_nlp_lists_each_module_once() -> None:
    listed = re.findall(r"^(\w+)\.py  ", nlp.__doc__ or "", re.MULTILINE)
    modules = {path.stem for path in Path(nlp.__file__).parent.glob("*.py")} - {"__init__"}
    assert sorted(listed) == sorted(modules)
