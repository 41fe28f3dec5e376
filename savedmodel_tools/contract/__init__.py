"""Serving contracts: what clients of a model rely on, frozen in a small file beside it, and checked
(SIG-01).
"""
