"""Faster twins of plain code, as in `savedmodel_common.fast`, whose option turns these off too.

plain_outline    an outline for a file or a pipe, without importing rich
"""
