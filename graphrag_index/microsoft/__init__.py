"""Reading, import, migration and export of Microsoft GraphRAG indexes and projects.

read_*     Read an index of version 2 or 3 in place as our tables (`read_tables.MicrosoftIndex`;
           searches use `microsoft_store.MicrosoftStore`).
import_*   Copy an index into a project, and merge new documents with it.
migrate*   Convert settings, API keys and prompts (`migrate.convert_project`).
export_*   Write our index in the layout of version 3 (`export_index.export`).
"""
