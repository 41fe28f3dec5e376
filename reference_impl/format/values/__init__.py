"""Values inside messages: dtypes, tensors as TensorProto, and nests of arguments as
StructuredValue.
"""
