"""Requests to a model and its answers: given, made up, recorded; compared within a tolerance."""
