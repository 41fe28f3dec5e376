"""Ops that act on the machine, and when."""
