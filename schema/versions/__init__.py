"""The versions of the schema, a folder each."""
