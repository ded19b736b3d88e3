"""The program stays as small as `budgets.yaml` says."""

from collections import Counter
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).parents[1]


def measure(root: Path, packages: list[str]) -> dict[str, list[int]]:
    """Return the lines and the files of Python of each folder below some packages, and of all.

    The files of a package outside its folders count under the name of the package.
    """
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for package in packages:
        for path in (root / package).rglob("*.py"):
            inner = path.relative_to(root / package).parts[:-1]
            is_split = package != "tests" and inner
            folder = f"{package}/{inner[0]}" if is_split else package
            for name in (folder, *(["packages"] if package != "tests" else [])):
                lines[name] += len(path.read_text(encoding="utf-8").splitlines())
                files[name] += 1
    return {name: [lines[name], files[name]] for name in sorted(lines)}


def test_no_folder_exceeds_its_budget() -> None:
    budgets = yaml.safe_load((REPOSITORY / "tests/budgets.yaml").read_text(encoding="utf-8"))
    packages = sorted(path.parent.name for path in REPOSITORY.glob("graphrag_*/__init__.py"))
    over = [
        f"{name}: {held} lines and files, {budgets.get(name, [0, 0])} are its budget"
        for name, held in measure(REPOSITORY, [*packages, "tests"]).items()
        if any(n > limit for n, limit in zip(held, budgets.get(name, [0, 0]), strict=True))
    ]
    assert not over, "\n".join(over)


def test_lines_and_files_are_counted_by_folder(tmp_path: Path) -> None:
    for name, text in (("a.py", "1\n2\n"), ("b/c.py", "1\n"), ("b/d/e.py", "1\n2\n3\n")):
        path = tmp_path / "graphrag_x" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text("1\n", encoding="utf-8")
    assert measure(tmp_path, ["graphrag_x", "tests"]) == {
        "graphrag_x": [2, 1],
        "graphrag_x/b": [4, 2],
        "packages": [6, 3],
        "tests": [1, 1],
    }
