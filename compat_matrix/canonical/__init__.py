"""The canonical form of a SavedModel: equal for models that mean the same, whatever their bytes; and its differences."""
