"""Communities of the entity graph: detection, updates from version to version, table rows."""
