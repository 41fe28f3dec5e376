"""Compiles the templates of the reports when it is imported: the forks of a process that did need
not.
"""

from compat_matrix.report import html

for name in html.environment().list_templates():
    html.environment().get_template(name)
