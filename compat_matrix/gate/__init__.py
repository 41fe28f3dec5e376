"""The gate: a baseline TensorFlow and a candidate, cell by cell.

``pairs`` lists the cells that are compared, ``drift`` measures by how much two passing answers
differ, ``compare`` classifies every pair and gives the verdict; ``run`` executes both sides in a
folder. The reports are pure functions of the result of ``compare``.
"""
