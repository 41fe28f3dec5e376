"""The engine runs a plan: it prepares the output folder, executes the cells, judges each and has the reports written."""
