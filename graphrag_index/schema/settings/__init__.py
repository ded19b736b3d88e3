"""Settings of a project, mirrored from `settings.yaml`; every default is written here, once.

settings.py        the root `Settings`, and loading: environment variables, `--set`
embedded_steps.py  a section for each step that needs no language model, and for `check`
llm_steps.py       a section for each step that asks a language model
searches.py        a section for each search
models.py          one entry of `models`: address, limits, price
section.py         the base class of sections, and messages for invalid values
project_files.py   the files of a new project

A new setting is a field of the section of its step or search, with a description. A new section
is also a field of `Settings`. Then run `python docs/generate.py`.
"""
