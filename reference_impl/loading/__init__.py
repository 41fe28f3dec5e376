"""Loading: a SavedModel directory becomes live objects."""
