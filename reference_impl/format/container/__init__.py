"""The directory of a SavedModel.

layout         the members of the directory; reads saved_model.pb, .pbtxt or .cpb
writer         writes a directory: staged beside its destination (`staging`), then renamed
split          the split format `.cpb`, whose records lie in a Riegeli file (`riegeli`,
               `highwayhash`)
fingerprint    fingerprint.pb, whose hashes are FarmHash (`farmhash`)
files          every access to whole files, names and paths
"""
