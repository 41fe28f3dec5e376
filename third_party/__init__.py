"""Real third parties as plug-ins, each in an environment of its own (docs/evidence/index.md).

Nothing here is imported.
"""
