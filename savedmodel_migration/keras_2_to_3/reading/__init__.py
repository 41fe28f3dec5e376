"""The layers of a Keras 2 SavedModel, read without Keras and TensorFlow."""
