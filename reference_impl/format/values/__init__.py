"""Values inside messages.

dtypes        TensorFlow's data types: number, name, width, NumPy counterpart
shapes        shapes of tensors as tuples, and as text
tensor_proto  TensorProto to NumPy arrays and back
structure     StructuredValue: the nests of arguments, results and specs of functions
"""
