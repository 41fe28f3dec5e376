"""Objects to a SavedModel directory: object tree -> protos -> staged directory -> rename (FN-01..FN-17, FMT-01..FMT-14, API-04)."""
