"""The plan of an export: what is written, after all checks have passed.

RFC: FN-14, FMT-09, PRIM-06, RES-05, V1-17
"""

from __future__ import annotations

from dataclasses import dataclass

from reference_impl.saving.assets import AssetFiles, asset_files
from reference_impl.saving.checks import functions as checks
from reference_impl.saving.checks import hidden_state, unsaved_attributes
from reference_impl.saving.contents import Contents
from reference_impl.saving.options import SaveOptions


@dataclass(frozen=True)
class SavePlan:
    """A checked export, and the files beside its messages."""

    contents: Contents
    assets: AssetFiles


def plan_save(contents: Contents, options: SaveOptions) -> SavePlan:
    """Return the plan of an export.

    Raises SaveError if data would be lost (with ``strict``) or the export is too large.
    """
    tree, functions = contents.tree, contents.functions
    checks.check_size(tree, functions)
    unsaved_attributes.check(tree, functions)
    hidden_state.check(tree, functions)
    checks.check_python_calls(tree, functions)
    return SavePlan(contents, asset_files(tree, options))
