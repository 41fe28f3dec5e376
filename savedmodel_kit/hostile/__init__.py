"""Files that a reader must refuse, each with the constraint that it breaks. All are made by code
from small sound models, and differ from them in one place.

kind        a hostile file, and the sound models they are made from
table       the index of a checkpoint as a table: blocks, footer, checksums
bundle      the entries, values and slices of a checkpoint
container   the files of the directory, and the SavedModel message
split       split files (saved_model.cpb)
objects     object graphs that contradict themselves, the checkpoint or the functions
catalogue   all of them
"""
