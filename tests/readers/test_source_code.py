"""Source code in Python."""

from pathlib import Path

from graphrag_index.readers import ReadFailure
from tests.fixtures.read_documents import read, read_one

SOURCE = '''#!/usr/bin/env python
"""Ships of the port.

They sail south.
"""
import sea

# Riga has two docks.
# Both are deep.
DOCKS = 2  # in 1994


@sea.ship
class Nova(sea.Ship):
    r"""A ship \\d of `Riga`."""

    #----
    def sail(self, to):
        # Anna Berg decides.
        def helper():
            """Stay inside."""
            return "```"
        return helper

async def load(): "Load it."
'''
TEXT = '''# ships

```python
#!/usr/bin/env python
```

Ships of the port.

They sail south.

```python
import sea
```

Riga has two docks.
Both are deep.

```python
DOCKS = 2  # in 1994
```

## Nova

```python
@sea.ship
class Nova(sea.Ship):
```

A ship \\d of `Riga`.

```python
#----
```

### Nova.sail

```python
def sail(self, to):
```

Anna Berg decides.

```python
def helper():
    """Stay inside."""
    return "` ` `"
return helper
```

## load

```python
async def load(): "Load it."
```

Load it.'''


def test_a_module_is_its_classes_and_functions_with_their_words(tmp_path: Path) -> None:
    found = read_one(tmp_path / "ships.py", SOURCE.replace("\n", "\r\n"))
    assert found.text == TEXT
    assert found.title == "ships.py"


def test_what_is_not_valid_is_text_and_an_empty_module_is_skipped(tmp_path: Path) -> None:
    old = 'print "Anna Berg"\n'
    assert read_one(tmp_path / "a.py", old).text == old
    # Warnings of the compiler are no concern of the reader.
    assert "'\\d'" in read_one(tmp_path / "b.py", "a = '\\d'").text
    assert read(tmp_path / "__init__.py", "\n") == [ReadFailure("has no text", is_skipped=True)]
