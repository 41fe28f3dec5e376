"""Reports: a verdict as text, HTML, Markdown, JUnit. Nothing is judged here."""
