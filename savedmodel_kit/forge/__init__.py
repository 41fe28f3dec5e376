"""Files of the format made by hand: every part can be replaced by what a damaged file holds.

tables      the index of a checkpoint (table, blocks, entries), and its shards
records     split files (saved_model.cpb): chunks, records, chunk metadata
"""
