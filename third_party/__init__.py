"""Real third parties as plug-ins, each in an environment of its own (docs/third_party.md).

Nothing here is imported.
"""
