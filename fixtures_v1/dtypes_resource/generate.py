"""A resource variable of every dtype but qint16 and quint16, each with a scalar, a vector and edge values."""

from fixtures_v1.dtypes_reference import generate as reference

CLAUSES = ("V1-03", "RP-03")
FEATURES = ("dtypes", "resource_variables", "string_variables", "quantized_variables")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.12"  # 1.8 cannot assign a quint16


def generate(tf, rec):
    reference.generate(tf, rec, resource=True, leave_out=("qint16", "quint16"))
