"""Refusals of saves that would lose something, or that nobody could load.

functions      all functions of an export: their size, Python calls, ops
dropped        attributes that the format cannot keep; `authorship`: who set them
hidden_state   state that functions change and that is in no variable
traced_code    whether traced Python code may have read an array; `byte_code`, `trace_frames`
"""
