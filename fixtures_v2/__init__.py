"""SavedModels that every TensorFlow 2 release wrote, each with requests, answers and provenance.

``<case>/case.py`` is a case (docs/exporters/artifacts.md, section 4). ``<case>/<release>/`` is the
artifact (section 1) that this release made from it, and is never changed afterwards:
``tf2_tuples/2.4/``.

collection   the artifacts that there must be, and whether they are as recorded
making       artifacts made in the runtime of a release, and compared with the committed ones
__main__     ``python -m fixtures_v2``: add a release, check, verify

``absent.toml`` lists the cases that a release cannot write, with reason and error.
"""
