"""The OpenAPI document: the committed file is that of the code, and the changelog knows it."""

import json
import re
import runpy
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "openapi.json"
METHODS = {"get", "post", "put", "patch", "delete"}


def test_the_committed_document_is_that_of_the_code() -> None:
    text = runpy.run_path(str(ROOT / "docs" / "generate.py"))["openapi_text"]()
    assert FILE.read_text(encoding="utf-8") == text, "run `python docs/generate.py openapi`"


def test_the_changelog_knows_the_committed_document() -> None:
    """Whoever changes the API must look at its line in the changelog."""
    server = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("### Server\n")[1]
    digest = sha256(FILE.read_bytes()).hexdigest()[:12]
    assert re.search(r"^- HTTP API `(\w+)`:", server.split("\n### ")[0], re.M)[1] == digest, (
        f"say in CHANGELOG.md, under Server, what changed, and write there: HTTP API `{digest}`"
    )


def test_each_operation_has_a_name_a_summary_and_the_shape_of_its_errors() -> None:
    document = json.loads(FILE.read_text(encoding="utf-8"))
    operations = [
        operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in METHODS and path.startswith("/v1/indexes")
    ]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    for operation in operations:
        assert operation["description"], operation["operationId"]
        assert list(operation["responses"]["default"]["content"]) == ["application/problem+json"]
