"""Settings of a project, mirrored from `settings.yaml`; every default is written here, once.

settings.py        the root `Settings`, loading it, and the files of a new project
step_sections.py   a section for each step, and for `check`
searches.py        a section for each search
models.py          one entry of `models`: address, limits, price
section.py         the base class of sections, and readable errors for invalid values and YAML

A new setting is a field of the section of its step or search, with a description. A new section
is also a field of `Settings`. Then run `python docs/generate.py`.
"""
