"""Third-party exporters and consumers: found, checked, and used beside ours
(docs/exporters/plugins.md, docs/exporters/protocol.md).
"""
