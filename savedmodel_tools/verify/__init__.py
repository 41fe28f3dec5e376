"""``verify`` finds the defects of a SavedModel by rules with stable ids, without TensorFlow and
without running anything.

findings   severities, findings, rules and their registry
model      what the rules look at: one SavedModel, read once
rules      the rules, a module for each concern, and which of them a user asks for
run        the rules on a model: `verify`
sarif, junit, text   findings for programs and for people
"""
