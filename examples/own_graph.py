"""Make a graph that you already have searchable: two CSV files in, cited answers out.

python examples/own_graph.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import graphrag_query

PEOPLE = """\
id,name,type,description
p1,Ada Lovelace,person,"An English mathematician, daughter of Lord Byron."
p2,Charles Babbage,person,He designed the first mechanical computers.
p3,Analytical Engine,machine,
p4,Luigi Menabrea,person,
"""
LINKS = """\
source,target,weight,type,description
p1,p2,3,worked with,They met in 1833.
p2,p3,2,designed,
p4,p3,1,described,He published an account of it in French in 1842.
"""
SETTINGS = """\
workflow: from_graph
read_graph:
  entities: people.csv
  relationships: links.csv
"""


def graphrag_index(*arguments: str | Path) -> None:
    """Call the command line, which prints its own errors."""
    command = [sys.executable, "-m", "graphrag_index", *map(str, arguments)]
    if code := subprocess.run(command, check=False).returncode:
        sys.exit(code)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        graphrag_index("init", root)  # writes the workflows
        for name, text in [
            ("people.csv", PEOPLE),
            ("links.csv", LINKS),
            ("settings.yaml", SETTINGS),
        ]:
            (root / name).write_text(text, encoding="utf-8")
        graphrag_index("run", "--root", root)
        with graphrag_query.open(root / "output") as index:
            answer = index.path("How is Charles Babbage connected to Luigi Menabrea?")
            print(answer.text)


if __name__ == "__main__":
    main()
