"""Third-party exporters and consumers: found, checked, and used beside ours (docs/plugins.md,
docs/protocol.md).
"""
