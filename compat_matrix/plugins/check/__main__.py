"""Write the JSON Schema of the messages from the grammar: ``python -m
compat_matrix.plugins.check``.
"""

from __future__ import annotations

import json
from pathlib import Path

from compat_matrix.plugins.check.grammar import as_json_schema
from savedmodel_common.writing import write_text

SCHEMA = Path(__file__).resolve().parents[2] / "schemas" / "protocol.schema.json"

if __name__ == "__main__":
    write_text(SCHEMA, json.dumps(as_json_schema(), indent=1) + "\n")
