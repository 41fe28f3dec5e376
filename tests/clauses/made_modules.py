"""Modules for the tests of signatures."""

from __future__ import annotations


def module(tf, **functions):
    root = tf.Module()
    for name, function in functions.items():
        setattr(root, name, function)
    return root
