"""TensorFlow Serving as a consumer: its messages, clients of both its transports, and what starts a
server.
"""
