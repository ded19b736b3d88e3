"""The built file of the explorer is that of its sources, and loads nothing from elsewhere."""

import re
import runpy
from importlib.resources import files

from tests.conftest import REPOSITORY

PAGE = files("graphrag_index.export").joinpath("explorer.html").read_text(encoding="utf-8")


def test_the_built_file_is_that_of_the_sources() -> None:
    digest = runpy.run_path(str(REPOSITORY / "explorer" / "digest.py"))["digest_sources"]()
    assert f'<meta name="source-digest" content="{digest}">' in PAGE, "run explorer/build"


def test_the_page_is_small_and_loads_nothing() -> None:
    assert len(PAGE.encode()) < 500_000
    assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(?!data:)', PAGE)
