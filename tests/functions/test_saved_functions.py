"""`function_aliases` of functions that are not attributes: behind a signature, or called by another
function.
"""

import pytest

import reference_impl
from reference_impl.errors import AliasError
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


@pytest.fixture
def model(tf):
    root = tf.Module()
    root.v = tf.Variable(3.0)
    inner = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([], name="x")])
    serve = tf.function(
        lambda x: {"y": inner(x) * root.v}, input_signature=[tf.TensorSpec([], name="x")]
    )
    serve.get_concrete_function()
    return root, serve, inner


def asked(tf):
    """Return the LoadOptions that ask for aliases, which TensorFlow has had since 2.15."""
    name = "experimental_load_function_aliases"
    if name not in tf.saved_model.LoadOptions.__slots__:
        pytest.skip(f"LoadOptions of TensorFlow {tf.__version__} has no {name}")
    return tf.saved_model.LoadOptions(**{name: True})


def aliases(folder):
    (meta_graph,) = layout.read(folder).saved_model.meta_graphs
    written = dict(meta_graph.meta_info_def.function_aliases)
    assert written.keys() <= {
        function.signature.name for function in meta_graph.graph_def.library.function
    }
    return sorted(written.values())


@pytest.mark.parametrize("form", ["function", "concrete", "list"])
def test_a_function_behind_a_signature_and_one_that_it_calls_have_aliases(
    tf, tmp_path, model, form
):
    root, serve, inner = model
    take = {
        "function": lambda f: f,
        "concrete": lambda f: f.get_concrete_function(),
        "list": lambda f: [f.get_concrete_function()],
    }
    given = {"behind": take[form](serve), "inside": take[form](inner)}
    options = tf.saved_model.SaveOptions(function_aliases=given)
    reference_impl.save(root, tmp_path / "0", signatures=serve, options=options)
    assert aliases(tmp_path / "0") == ["behind", "inside"]

    loaded = reference_impl.load(tmp_path / "0", options=asked(tf))
    (found,) = loaded.function_aliases["inside"]
    assert [float(y) for y in found(tf.constant(1.0))] == [2.0]
    assert len(loaded.function_aliases["behind"]) == 1

    again = tf.saved_model.SaveOptions(function_aliases=loaded.function_aliases)
    reference_impl.save(loaded, tmp_path / "1", options=again)
    assert aliases(tmp_path / "1") == ["behind", "inside"]
    theirs = tf.saved_model.load(str(tmp_path / "1"), options=asked(tf))
    assert sorted(theirs.function_aliases) == ["behind", "inside"]


def test_aliases_that_tensorflow_wrote_for_a_signature_are_found(tf, tmp_path, model):
    root, serve, _ = model
    options = tf.saved_model.SaveOptions(function_aliases={"behind": serve})
    tf.saved_model.save(root, str(tmp_path / "m"), signatures=serve, options=options)
    readers = tf.saved_model, reference_impl
    ours, theirs = (
        list(module.load(str(tmp_path / "m"), options=asked(tf)).function_aliases)
        for module in readers
    )
    assert ours == theirs == ["behind"]


def test_a_function_that_the_export_does_not_have_is_refused(tf, tmp_path, model):
    root, serve, _ = model
    other = tf.function(lambda x: x, input_signature=[tf.TensorSpec([])])
    other.get_concrete_function()
    with pytest.raises(AliasError, match="other"):
        options = tf.saved_model.SaveOptions(function_aliases={"other": other})
        reference_impl.save(root, tmp_path / "m", signatures=serve, options=options)


def saved_with_aliases(tf, folder, model, aliased):
    root, serve, _ = model
    options = tf.saved_model.SaveOptions(function_aliases=aliased)
    tf.saved_model.save(root, str(folder), signatures=serve, options=options)
    return folder


def test_a_loaded_model_keeps_its_aliases_when_it_is_saved_again(tf, tmp_path, model):
    root, serve, inner = model
    root.twice = tf.function(lambda x: 2 * x)
    root.twice(tf.constant(1.0)), root.twice(tf.constant(1))
    saved_with_aliases(
        tf, tmp_path / "0", model, {"behind": serve, "inside": inner, "double": root.twice}
    )
    for number in range(2):
        reference_impl.save(reference_impl.load(tmp_path / str(number)), tmp_path / str(number + 1))
        assert aliases(tmp_path / str(number + 1)) == ["behind", "double", "double", "inside"]
    for module in (tf.saved_model, reference_impl):
        found = module.load(str(tmp_path / "2"), options=asked(tf))
        assert sorted(found.function_aliases) == ["behind", "double", "inside"]
        assert float(found.function_aliases["double"](tf.constant(4.0))) == 8.0


def test_an_alias_that_is_given_anew_replaces_that_of_the_file(tf, tmp_path, model):
    root, _, _ = model
    root.twice, root.thrice = (
        tf.function(lambda x, n=n: n * x, input_signature=[tf.TensorSpec([])]) for n in (2, 3)
    )
    saved_with_aliases(tf, tmp_path / "0", model, {"a": root.twice, "b": root.thrice})
    loaded = reference_impl.load(tmp_path / "0")
    reference_impl.save(
        loaded,
        tmp_path / "1",
        options=reference_impl.SaveOptions(function_aliases={"a": loaded.thrice}),
    )
    again = reference_impl.load(tmp_path / "1", options=asked(tf))
    assert list(again.function_aliases) == ["a"] and float(again.function_aliases["a"](1.0)) == 3.0


def test_an_alias_whose_function_is_not_saved_again_is_named(tf, tmp_path, caplog, model):
    root, _, _ = model
    root.part, root.other = (
        tf.Module(),
        tf.function(lambda x: x, input_signature=[tf.TensorSpec([])]),
    )
    root.part.f = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([])])
    saved_with_aliases(tf, tmp_path / "0", model, {"part": root.part.f, "other": root.other})
    loaded = reference_impl.load(tmp_path / "0")
    reference_impl.save(loaded, tmp_path / "whole")
    assert not caplog.records
    reference_impl.save(loaded.part, tmp_path / "1")
    assert aliases(tmp_path / "1") == ["part"]
    assert ["'other'" in record.getMessage() for record in caplog.records] == [True]


def test_a_function_of_two_models_in_one_export_keeps_the_aliases_of_both(tf, tmp_path, model):
    _, serve, inner = model
    for name in ("0", "1"):
        saved_with_aliases(tf, tmp_path / name, model, {"inside": inner, name: serve})
    both = tf.Module()
    both.models = [reference_impl.load(tmp_path / name) for name in ("0", "1")]
    both.f = tf.function(
        lambda x: both.models[0].signatures["serving_default"](x)["y"],
        input_signature=[tf.TensorSpec([])],
    )
    reference_impl.save(both, tmp_path / "2")
    assert aliases(tmp_path / "2") == ["0", "1", "inside", "inside"]
