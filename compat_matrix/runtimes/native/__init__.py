"""The C++ loader: a worker program of ours, compiled against an installed wheel's own headers and
libraries.
"""
