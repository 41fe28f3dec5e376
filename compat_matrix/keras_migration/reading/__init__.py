"""What a Keras 2 SavedModel says of its layers, read without Keras and TensorFlow."""
