"""The built-in steps. A workflow is an ordered list of names of steps."""

from collections.abc import Mapping
from importlib.resources import files

import yaml

# Name of a step → module of this package that defines the step; `steps.yaml` has the steps.
STEPS: Mapping[str, str] = yaml.load(
    files(__package__).joinpath("steps.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)
