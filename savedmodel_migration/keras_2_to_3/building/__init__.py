"""Keras 3 models made of translated configurations. Imports Keras: for workers only."""
