"""The command of this package: ``prove``."""
