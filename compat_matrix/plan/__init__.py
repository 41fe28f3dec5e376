"""Plans: which cells there are, for the cases, the fixtures, the runtimes and the consumers that were chosen."""
