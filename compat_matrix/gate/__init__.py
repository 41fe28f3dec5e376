"""The gate: a baseline TensorFlow and a candidate, cell by cell.

``pairs`` says which cells are compared, ``drift`` by how much two passing answers differ, ``compare`` what became of every pair
and of the whole; ``run`` fills a folder with both. The reports are pure functions of what ``compare`` returns.
"""
