"""An index of Microsoft GraphRAG, or one that was exported in its form, made one of ours.

`../importing.py` makes it a version of the index: start reading there.

source.py     what is imported, with all of our columns
folder.py     where it is kept beside `settings.yaml`, as `imported/`
joining.py    what is found in new documents, put behind it
reports.py    on what evidence its reports rest
continuing.py a workflow that goes on from it
"""
