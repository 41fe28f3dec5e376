"""``plugin-check``: check that a program follows the worker protocol.

Every message, capability and failure path is tried.
"""
