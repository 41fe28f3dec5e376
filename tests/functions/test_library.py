"""The live names of a loaded model: recorded when they are made, and gone with the model."""

from __future__ import annotations

import gc

import pytest

from reference_impl.errors import CycleError, MissingKeyError
from reference_impl.format import schema

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def make(tf):
    from reference_impl.functions.library import FunctionLibrary

    def library(**calls):
        """A library with functions that call others: ``library(f="g", g="")``."""
        message = schema.FunctionDefLibrary()
        for name, called in calls.items():
            function = message.function.add()
            function.signature.name = name
            if called:
                node = function.node_def.add(name="call", op="PartitionedCall")
                node.attr["f"].func.name = called
        return FunctionLibrary(message, "m.pb")

    return library


def test_two_libraries_give_one_name_different_live_names(make):
    from reference_impl.functions.library import registered_name

    one, other = make(f=""), make(f="")
    names = one.live_name("f"), other.live_name("f")
    assert names[0] != names[1] and one.live_name("f") == names[0]
    assert [registered_name(name) for name in names] == [(one, "f"), (other, "f")]


def test_a_name_that_only_looks_live_belongs_to_nobody(make):
    """Such as that of a function which another process, or the author, named so."""
    from reference_impl.functions.library import original_name, registered_name

    library = make(f="", g="")
    mark = library.live_name("f").removeprefix("f")
    assert registered_name(f"g{mark}") is None and original_name(f"g{mark}") is None
    library.live_name("g")
    assert registered_name(f"g{mark}") == (library, "g")


def test_a_shared_name_has_an_original_name_and_is_no_function(make):
    from reference_impl.functions.library import original_name, registered_name

    library = make(f="")
    live = library.live_name("table")
    assert original_name(live) == (library, "table")
    assert registered_name(live) is None


def test_a_name_for_shapes_is_another_name_of_the_function(make):
    from reference_impl.functions.library import registered_name

    library = make(f="")
    special = library.live_name_for_shapes("f")
    assert special != library.live_name("f")
    assert registered_name(special) == registered_name(library.live_name("f")) == (library, "f")


def test_the_names_of_a_library_that_is_gone_are_nobodys(make):
    from reference_impl.functions.library import original_name

    library = make(f="")
    live = library.live_name("f")
    del library
    gc.collect()
    assert original_name(live) is None


def test_the_closure_has_callers_before_callees(make):
    assert make(h="", g="h", f="g").closure("f") == ["f", "g", "h"]


def test_a_function_that_calls_itself_and_one_that_is_missing_are_named(make):
    library = make(f="g", g="f")
    with pytest.raises(CycleError, match=r"the function [fg] calls itself"):
        library.check("f")
    with pytest.raises(MissingKeyError, match="no such function") as raised:
        library.get("x")
    assert (raised.value.file, raised.value.node) == ("m.pb", "x")


def test_an_added_function_gets_a_free_name(make):
    library, new = make(f=""), schema.FunctionDef()
    new.signature.name = "f"
    assert library.add(new) == "f_1" == library.get("f_1").signature.name
