"""The documentation site: its generated pages, and the folder that it is built from."""
