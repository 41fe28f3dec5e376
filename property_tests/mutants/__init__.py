"""Mutation testing: one change at a time, judged by the tests that execute the changed line."""
