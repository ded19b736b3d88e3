"""Microsoft GraphRAG: read its indexes, import them, migrate its projects, export to it.

read_*     an index of version 0 to 3, read in place as our tables; `read_tables.MicrosoftIndex`
           (`microsoft_store.MicrosoftStore` for searches)
import_*   an index copied into a project, and new documents merged with it
migrate*   a project: settings, keys, prompts and the cache of paid replies; `migrate.init_from`
export_*   an index of ours in the layout of version 3; `export_index.export`
"""
