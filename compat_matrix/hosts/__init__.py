"""Hosts: the pool of worker processes, the models that they have loaded, and the servers that are
running.
"""
