"""``plugin-check``: does a program keep the rules of the worker protocol? Every message, capability and failure path is tried."""
