"""What the RFC promised and TensorFlow never shipped: registered types, initial values, update rules, ``type(loaded)()``.

Everything here is additional. Its messages lie in one collection of the MetaGraph (`reference_impl.format.extension`), where
the shipped readers do not look.
"""
