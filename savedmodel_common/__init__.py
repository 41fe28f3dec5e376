"""Helpers for every package: strict JSON, files written by rename, locks, interruptions, text that
is safe for a terminal.
"""
