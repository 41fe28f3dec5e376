"""Features that the RFC promised and TensorFlow never shipped, stored beside the shipped format.

Reading and writing TensorFlow's own files needs none of this, and a reader that does not know these
messages loses nothing. The messages are stored in one collection of the MetaGraph
(`reference_impl.format.extension`) that the shipped readers ignore.

    registration, registered_objects    classes that a program registers: their objects come back
                                        with their Python methods
    initial_values                      functions that give variables their first values
    update_rules                        optimizers that apply gradients
    new_objects                         ``type(loaded)()``: another object of the structure of a
                                        loaded one

A load of a file that has these messages gets one hook,
`reference_impl.extension.hooks.ExtensionHook`. Any other load does not enter this room.

A save writes the registered name and state of an object with `registered_objects.write`. The other
messages need the captures of the export, so `reference_impl.saving` has their modules:
`initial_value_writer` (how variables got their first values) and `optimizer_writer` (slots that are
children, update rules).

RFC: INIT-02, OPT-04, REV-04
"""
