"""A reader finds the tests of a module by its path: ``graph/order.py`` has its tests in
``tests/graph``, in ``test_order.py`` or in a file that the table below names.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE, TESTS = ROOT / "reference_impl", ROOT / "tests"

# Room -> folders of its tests, if not the one of its name.
FOLDERS = {
    "extension": "beyond_tensorflow",
    "inspection": "views",  # a former name
    "tensorflow_api": "structure",  # which symbols may be used; what they do is tested by the users
}

# Module or folder -> the test files of its room, for names that differ.
FILES = {
    "format/bundle": "test_format_bundle*.py",
    "format/bundle/table": "test_format_sstable.py",
    "format/container": "test_format_layout*.py",
    "format/container/farmhash": "test_farmhash.py",
    "format/container/fingerprint": "test_farmhash.py",
    "format/container/highwayhash": "test_format_split.py",
    "format/container/riegeli": "test_format_split.py",
    "format/container/split": "test_format_split.py",
    "format/errors": "test_format_errors.py",
    "format/extension": "test_format_alone.py",
    "format/limits": "test_rank.py",
    "format/names": "test_format_structure.py",
    "format/schema": "test_format_schema.py",
    "format/values": "test_format_structure.py",
    "format/values/shapes": "test_rank.py",
    "format/wire": "test_format_schema.py",
    "graph/argument_names": "test_free_names.py",
    "graph/called_children": "test_object_roles.py",
    "graph/called_names": "test_object_roles.py",
    "graph/closure": "test_graphs.py",
    "graph/damage": "test_function_edges.py",
    "graph/device_names": "test_saved_variables.py",
    "graph/edges": "test_graphs.py",
    "graph/function_builder": "test_node_builder.py",
    "graph/graph_view": "test_object_roles.py",
    "graph/node_attributes": "test_damaged_constants.py",
    "graph/node_defs": "test_node_builder.py",
    "graph/node_index": "test_node_builder.py",
    "graph/object_references": "test_object_roles.py",
    "graph/op_rules": "test_damaged_constants.py",
    "graph/op_table": "test_node_builder.py",
    "graph/order": "test_graphs.py",
    "graph/references": "test_object_roles.py",
    "graph/signature_tensors": "test_object_roles.py",
    "graph/unique_names": "test_free_names.py",
    "graph/variable_defs": "test_restore_plan.py",
    "safety/effect": "test_machine_ops.py",
    "safety/effects": "test_machine_ops.py",
    "safety/folded_sizes": "test_import_folding.py",
    "safety/folding_tables": "test_import_folding.py",
    "safety/known_tensors": "test_known_tensors_tf.py",
    "safety/op_effects": "test_machine_ops.py",
    "safety/path_origins": "test_paths_of_ops.py",
    "safety/size_operands": "test_size_operands_tf.py",
    "v1": "test_v1_load*.py",
    "v1/init_op": "test_v1_unknown_init_ops.py",
    "v1/initialization": "test_v1_graph_mode.py",
    "v1/live_signatures": "test_v1_false_statements.py",
    "v1/pruning": "test_v1_prune.py",
    "v1/reading": "test_v1_program.py",
    "v1/reading/control_flow": "test_v1_control_flow.py",
    "v1/reading/feed_check": "test_v1_prune.py",
    "v1/reading/init_nodes": "test_v1_init_nodes.py",
    "v1/reading/inlining": "test_v1_tables_in_functions.py",
    "v1/reading/named_tensors": "test_v1_prune.py",
    "v1/reading/plain_restore": "test_v1_plain_restore.py",
    "v1/reading/session_ops": "test_v1_iterators.py",
    "v1/reading/shared_handles": "test_v1_shared_handles.py",
    "v1/reading/signatures": "test_v1_false_statements.py",
    "v1/restore": "test_v1_plain_restore.py",
    "v1/tables": "test_v1_tables_in_functions.py",
    "views": "test_inspect*.py",
}
# Rooms whose modules are found by this table; the others have tests per task, not per module.
COMPLETE = ("format", "graph", "safety", "v1", "views")
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def modules() -> list[str]:
    found = []
    for room in COMPLETE:
        paths = sorted((PACKAGE / room).rglob("*.py"))
        public = [path for path in paths if not path.stem.startswith("_")]
        found += [path.relative_to(PACKAGE).with_suffix("").as_posix() for path in public]
    return found


def files_for(module: str) -> list[Path]:
    """Return the test files of a module: named after it, or those of its entry, or of its
    folder's.
    """
    folder = TESTS / module.partition("/")[0]
    own = folder / f"test_{module.rpartition('/')[2]}.py"
    if own.exists():
        return [own]
    place = module
    while place not in FILES:
        if "/" not in place:
            return []
        place = place.rpartition("/")[0]
    return sorted(folder.glob(FILES[place]))


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_has_a_folder_of_tests(room):
    assert list((TESTS / FOLDERS.get(room, room)).glob("test_*.py"))


@pytest.mark.parametrize("module", modules())
def test_each_module_has_tests_that_its_path_leads_to(module):
    assert files_for(module)


def test_the_table_names_modules_that_exist():
    places = [PACKAGE / place for place in FILES]
    gone = [place for place in places if not (place.is_dir() or place.with_suffix(".py").exists())]
    assert gone == []


def test_a_module_without_tests_is_found():
    assert files_for("nowhere/module") == []
