"""Refusals of saves that would lose something, or that nobody could load.

functions           all functions of an export: their size, Python calls, ops
unsaved_attributes  attributes that the format cannot keep; `unsaved_values` searches inside one,
                    `own_attributes` lists those of a user, `authorship` tells who set them
exported_code       whether a function of the export has the numbers of an array
traced_code         whether traced Python code may have read an array; `byte_code`, `trace_frames`
hidden_state        state that functions change and that is in no variable; `resource_flow`
"""
