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

A load of a file that has these messages gets one hook, `hooks.ExtensionHook`. A save of objects
that need them gets one hook, `save_hook.ExtensionSaveHook`. Any other load or save does not enter
this room. The save's side:

    save_hook               the hook: the extension message, the registered names of objects
    save_context            what a hook may read of the export, and add to it
    initial_value_writer    finds how variables got their first values
    optimizer_writer        slots that are children, and update rules
    update_rule_tracing     traces the update rule of an optimizer

RFC: INIT-02, OPT-04, REV-04
"""
