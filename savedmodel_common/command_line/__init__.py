"""Parts that the commands of all packages share.

claims     what exit code 0 of a command means
examined   the lines of `doctor`: what was looked at, and what is missing
groups     groups of commands, and the advice after an interruption
lists      options with several values, choices that suggest the nearest value
"""
