"""Models nobody thought of, bytes nobody wrote, a writer under kill."""
