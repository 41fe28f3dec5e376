"""The canonical form of a SavedModel, which is equal for models with the same meaning, and the
differences between two forms.
"""
