"""Write the JSON Schema of the messages from the grammar: ``python -m
savedmodel_plugin_kit``.
"""

from __future__ import annotations

import json
from pathlib import Path

from savedmodel_common.writing import write_text
from savedmodel_plugin_kit.grammar import as_json_schema

SCHEMA = Path(__file__).resolve().parents[1] / "compat_matrix" / "schemas" / "protocol.schema.json"

if __name__ == "__main__":
    write_text(SCHEMA, json.dumps(as_json_schema(), indent=1) + "\n")
