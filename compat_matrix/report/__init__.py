"""Reports: a verdict as text, HTML, Markdown and JUnit. This package does not judge."""
