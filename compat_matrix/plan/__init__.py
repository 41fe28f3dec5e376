"""Plans: the cells for the chosen cases, fixtures, runtimes and consumers."""
