"""The tensor bundle (checkpoint format V2), which holds the values of a SavedModel's variables.

    variables.index                a sorted table of blocks (`table`): checkpoint key ->
                                   BundleEntryProto (`entry`)
    variables.data-00000-of-00001  the bytes of the tensors (`tensor_data`), each with a CRC-32C
                                   (`checksum`)

`reader` and `writer` read and write both files. `slices` describes the parts of a partitioned
variable.
"""
