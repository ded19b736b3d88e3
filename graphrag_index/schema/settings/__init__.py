"""Classes for the settings in `settings.yaml`. Every default is defined here, and only here.

step_sections.py      a section for each step, and `check`
searches.py           a section for each search
models.py             an entry of the section `models`: address, limits, price
project_settings.py   the root class `Settings`, loading of settings, files of a new project
section.py            the base class of sections, and readable errors for invalid values and YAML

To add a setting, add a field with a description to the section of its step or search. To add a
section, also add a field to `Settings`. Then run `python docs/generate.py`.
"""
