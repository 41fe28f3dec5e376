"""The graph of default_attrs_kept with default attributes removed (strip_default_attrs=True)."""

from fixtures_v1.default_attrs_kept import generate as kept

CLAUSES = ("COMPAT-02",)
FEATURES = ("stripped_default_attrs", "ref_variables")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.6"  # strip_default_attrs


def generate(tf, rec):
    kept.generate(tf, rec, strip=True)
