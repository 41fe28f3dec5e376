"""Exporters and consumers of other people: found, checked, and put beside ours (docs/plugins.md, docs/protocol.md)."""
