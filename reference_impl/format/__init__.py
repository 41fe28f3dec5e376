"""Convert bytes on disk to messages and values, and back, without TensorFlow.

container/  the directory: saved_model.pb, .pbtxt or the split .cpb; variables/, assets/,
            fingerprint.pb; staged writing
bundle/     the tensor bundle in variables/: the index, the data shards, partitioned tensors,
            checksums
values/     dtypes, TensorProto and StructuredValue
schema/     the messages of the format: our `.proto` files and the classes made from them
wire        the untyped wire format of messages: variable-length integers and fields
names       names that the format reserves, and the parts of generated names
limits      every limit on what is read from a SavedModel
extension   the message that `reference_impl.extension` stores in a MetaGraph
"""
