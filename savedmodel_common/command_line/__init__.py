"""Parts that the commands of all packages share.

claims     what exit code 0 of a command means
errors     the exit code and the message of an error that ends a command
examined   the lines of `doctor`: what was looked at, and what is missing
groups     groups of commands, and the advice after an interruption
lists      options with several values, choices that suggest the nearest value
programs   programs for people who work on this project: ``python -m ...``
"""
