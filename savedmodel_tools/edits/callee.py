"""The function that the object graph has for a signature, with other names for its arguments and
results (FMT-05, FN-05).

The function that `tf.saved_model.load` makes of it is called with keywords. The names stand in the
node of the function
(`argument_keywords`, FullArgSpec) and in its SavedConcreteFunction (a dict of inputs, a dict of
results). Dicts are flattened in
the order of their
keys: where new names are in another order, the function takes and gives its tensors in that order,
too. It is another function
then, a copy: the main graph calls the one that was there, by position, as before.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from reference_impl.format import schema
from reference_impl.format.values.structure import nested_values
from reference_impl.graph.argument_names import argument_name, python_name
from reference_impl.graph.edges import input_source
from reference_impl.graph.function_builder import USER_NAME, replace_tensors, select_arguments
from reference_impl.graph.node_attributes import argument_attributes
from reference_impl.graph.references import FunctionIndex
from reference_impl.graph.unique_names import UniqueNames
from savedmodel_tools.canonical.body import Body
from savedmodel_tools.canonical.functions import declared
from savedmodel_tools.canonical.graph import digest
from savedmodel_tools.canonical.values import Values
from savedmodel_tools.edits.objects import Objects, functions_in
from savedmodel_tools.edits.proof import RefusedError
from savedmodel_tools.edits.slim_graph import remove_functions, unreached_functions

Names = Mapping[str, str]


class Order(NamedTuple):
    """Return the present position for each position of the new function."""

    arguments: list[int]
    results: list[int]

    @property
    def same(self) -> bool:
        return self.arguments == sorted(self.arguments) and self.results == sorted(self.results)


class Callee:
    """The function of a signature, as the object graph has it; ``file`` and ``key`` are for errors.

    Raises RefusedError: it is something else, or its parts contradict each other.
    """

    def __init__(
        self, graph: schema.MetaGraphDef, node: schema.SavedObject, file: str, key: str
    ) -> None:
        self.graph, self.node, self.file, self.key = graph, node, file, key
        if not node.HasField("bare_concrete_function"):
            raise self.refused(
                f"the object graph has it as {node.WhichOneof('kind')}, which is not the function"
                " of a signature"
            )
        self.bare = node.bare_concrete_function
        self.name = self.bare.concrete_function_name
        self.library = FunctionIndex(graph.graph_def.library)
        described = graph.object_graph_def.concrete_functions
        if self.name not in described or self.name not in self.library.functions:
            raise self.refused(f"its function {self.name} is not there")
        self.trace, self.function = described[self.name], self.library.functions[self.name]
        self.keywords = list(self.bare.argument_keywords)
        pair = self.trace.canonicalized_input_signature.tuple_value.values
        if (
            len(pair) != 2
            or not pair[1].HasField("dict_value")
            or not self.trace.output_signature.HasField("dict_value")
        ):
            raise self.refused(
                "the structure of its function's arguments or results is not that of a signature"
            )
        self.positional, self.named = pair[0], pair[1].dict_value.fields
        self.results = self.trace.output_signature.dict_value.fields
        if len(self.function.signature.input_arg) < len(self.keywords) or len(
            set(self.keywords)
        ) < len(self.keywords):
            raise self.refused(f"{self.name} does not take one tensor for each of its keywords")

    def refused(self, reason: str) -> RefusedError:
        return RefusedError(
            f"the object graph contradicts it: {reason}", file=self.file, node=self.key
        )

    def key_of(self, keyword: str) -> str:
        """The key of an argument in the dict of inputs: newer releases write the name that Python
        knows it by.
        """
        return keyword if keyword in self.named else python_name(keyword)

    def order(self, inputs: Names, outputs: Names) -> Order:
        """Return the order of the tensors under the new names. Raises RefusedError."""
        keys = [self.key_of(keyword) for keyword in self.keywords]
        free = sum(key not in self.named for key in keys)
        if any(key not in self.named for key in keys[free:]) or len(self.named) != len(keys) - free:
            raise self.refused(f"the arguments of {self.name} are not those of its keywords")
        wanted = [
            python_name(inputs.get(keyword, key)) for keyword, key in zip(self.keywords, keys)
        ]
        if len(set(wanted)) < len(wanted):
            raise RefusedError(
                "two inputs would be one keyword in Python",
                file=self.file,
                node=self.key,
                clause="SIG-07",
            )
        positions = range(free, len(keys))
        if sorted(positions, key=keys.__getitem__) != list(positions):
            raise self.refused(f"{self.name} does not take its inputs in the order of their names")
        return Order(
            [*range(free), *sorted(positions, key=wanted.__getitem__)], self._results(outputs)
        )

    def _results(self, outputs: Names) -> list[int]:
        places: dict[str, list[int]] = {}
        number = 0
        for name, size in self._sizes():
            if not 0 <= number + size <= len(self.function.signature.output_arg):
                raise self.refused(f"{self.name} does not give a tensor for each of its results")
            places[outputs.get(name, name)] = list(range(number, number + size))
            number += size
        return list(itertools.chain.from_iterable(places[name] for name in sorted(places)))

    def _sizes(self) -> Iterator[tuple[str, int]]:
        """Each result, in the order in which the function gives them, and how many tensors it
        is.
        """
        for name in sorted(self.results):
            held = self.results[name]
            yield (
                name,
                held.type_spec_value.num_flat_components if held.HasField("type_spec_value") else 1,
            )

    def computes(self, inputs: Names, outputs: Names) -> dict[str, Any]:
        """Return the computation of each result, by the new names of arguments and results,
        independent of their positions.
        """
        arguments, values = {}, Values(self.library, str.encode)
        for position, item in enumerate(self.function.signature.input_arg):
            keyword = self.keywords[position] if position < len(self.keywords) else None
            label = (
                f"capture {position}"
                if keyword is None
                else f"argument {inputs.get(keyword, keyword)}"
            )
            attributes = argument_attributes(self.function, position)
            arguments[item.name] = digest(
                label.encode(), declared(item), values.attributes(attributes)
            )
        order = sorted(arguments, key=arguments.__getitem__)  # positions do not count
        body = Body(self.function.node_def, values, {name: arguments[name] for name in order})
        needs = body.graph.needs(body.graph.base)
        flat = []
        for item in self.function.signature.output_arg:
            place = (
                body.resolve(self.function.ret[item.name])
                if item.name in self.function.ret
                else None
            )
            flat.append(None if place is None else (declared(item), needs[place[0]], place[1]))
        effects = [
            body.index[name] for name in self.function.control_ret.values() if name in body.index
        ]
        found: dict[str, Any] = {"side effects": sorted(needs[vertex] for vertex in effects)}
        number = 0
        for name, size in self._sizes():
            found[f"result {outputs.get(name, name)}"] = flat[number : number + size]
            number += size
        return found


def rename(
    objects: Objects,
    holder: int,
    graph: schema.MetaGraphDef,
    file: str,
    key: str,
    inputs: Names,
    outputs: Names,
) -> set[str]:
    """Rename arguments and results of a signature's function; return the names of functions that
    are new.

    ``holder`` is the map of signatures. Raises RefusedError: the function has other names, or two
    would be one.
    """
    number = objects.child(holder, key)
    assert number is not None
    callee = Callee(graph, objects.saved.nodes[number], file, key)
    for word, missing in (
        ("input", inputs.keys() - set(callee.keywords)),
        ("output", outputs.keys() - set(callee.results)),
    ):
        if missing:
            raise callee.refused(f"{callee.name} has no {word} {min(missing)!r}")
    order = callee.order(inputs, outputs)
    before = callee.computes(inputs, outputs)
    if objects.shared(holder, key):
        number = objects.copy(holder, key)
        callee = Callee(graph, objects.saved.nodes[number], file, key)
    old = callee.name
    named = itertools.chain.from_iterable(map(functions_in, graph.object_graph_def.nodes))
    alone = list(named).count(old) == 1
    alone &= all(
        item.trace != old
        for item in (objects.extension.initial_values if objects.extension else ())
    )
    if not alone or not order.same:
        callee = _copied(objects, callee, number, order, alone)
    _rename(callee, order, inputs, outputs)
    callee = Callee(graph, objects.saved.nodes[number], file, key)
    if not callee.order({}, {}).same or callee.computes({}, {}) != before:
        raise RefusedError(
            "the function of the signature would compute something else",
            file=file,
            node=callee.name,
        )
    if callee.name != old and old in unreached_functions(graph, objects.extension):
        remove_functions(graph, {old})
    return {callee.name} - {old}


def _copied(objects: Objects, callee: Callee, number: int, order: Order, alone: bool) -> Callee:
    """The function once more, under another name, its tensors in another order."""
    graph, old = callee.graph, callee.name
    copy = reorder(callee.function, order)
    copy.signature.name = _free_name(old, callee.library.functions)
    for attribute in ("forward_function_name", "backward_function_name"):
        if attribute in copy.attr:  # what they name takes tensors in the order of before
            del copy.attr[attribute]
    graph.graph_def.library.function.add().CopyFrom(copy)
    described = graph.object_graph_def.concrete_functions
    described[copy.signature.name].CopyFrom(callee.trace)
    callee.bare.concrete_function_name = copy.signature.name
    callee.bare.argument_keywords[:] = [callee.keywords[position] for position in order.arguments]
    if alone:
        del described[old]
    return Callee(graph, objects.saved.nodes[number], callee.file, callee.key)


def reorder(function: schema.FunctionDef, order: Order) -> schema.FunctionDef:
    """Return a copy of a FunctionDef with its first arguments, and its results, in another
    order.
    """
    copy = schema.copy_of(function)
    select_arguments(
        copy, [*order.arguments, *range(len(order.arguments), len(copy.signature.input_arg))]
    )
    for position, source in enumerate(order.results):
        copy.signature.output_arg[position].CopyFrom(function.signature.output_arg[source])
    return copy


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    """A name like another one, with another number at its end, as TensorFlow numbers functions."""
    stem, _, number = name.rpartition("_")
    stem, count = (
        (stem, int(number)) if stem and number.isdecimal() and len(number) < 19 else (name, 0)
    )
    while (found := f"{stem}_{count}") in taken:
        count += 1
    return found


def _rename(callee: Callee, order: Order, inputs: Names, outputs: Names) -> None:
    keys = {keyword: callee.key_of(keyword) for keyword in callee.keywords}
    keyed = {
        key: python_name(inputs.get(keyword, key)) for keyword, key in keys.items()
    }  # the order is that of these names
    known = {**{python_name(old): new for old, new in inputs.items()}, **inputs}
    for value in (callee.positional, *callee.named.values()):
        _rename_specs(value, known)
    for name, value in callee.results.items():
        if name in outputs:
            _rename_specs(value, {name: outputs[name]})
    if callee.bare.HasField("function_spec"):
        _rename_parameters(callee.bare.function_spec, known)
    rename_keys(callee.named, keyed)
    rename_keys(callee.results, outputs)
    _rename_arguments(
        callee.function,
        {n: inputs[name] for n, name in enumerate(callee.keywords) if name in inputs},
    )
    callee.bare.argument_keywords[:] = [inputs.get(name, name) for name in callee.keywords]


def rename_keys(entries: Any, names: Names) -> None:
    """Rename keys of a map of messages, all at once: two may change places."""
    copies = {names.get(name, name): schema.serialize(value) for name, value in entries.items()}
    entries.clear()
    for name, data in copies.items():
        entries[name].ParseFromString(data)


def _rename_specs(value: schema.StructuredValue, names: Names) -> None:
    """Names that TensorSpecs in a structure have of their own."""
    for spec in _specs(value):
        if spec.name in names:
            spec.name = names[spec.name]


def _specs(value: schema.StructuredValue) -> Iterator[Any]:
    for item in nested_values(value):
        kind = item.WhichOneof("kind")
        if kind in ("tensor_spec_value", "bounded_tensor_spec_value"):
            yield getattr(item, kind)


def _rename_parameters(spec: schema.FunctionSpec, names: Names) -> None:
    """Names of parameters in a FullArgSpec; those that only a keyword gives stay in order."""
    _rename_specs(spec.input_signature, names)
    for pair in spec.fullargspec.named_tuple_value.values:
        if pair.key in ("args", "kwonlyargs"):
            texts: Sequence[Any] = pair.value.list_value.values
            before = [text.string_value for text in texts]
            found = [names.get(name, name) for name in before]
            for text, name in zip(
                texts,
                sorted(found) if pair.key == "kwonlyargs" and before == sorted(before) else found,
            ):
                text.string_value = name
        elif pair.key in ("kwonlydefaults", "annotations") and pair.value.HasField("dict_value"):
            rename_keys(pair.value.dict_value.fields, names)


def _rename_arguments(function: Any, names: Mapping[int, str]) -> None:
    """Rename the arguments of a FunctionDef at some positions.

    In the function each gets the nearest valid name that is free.
    """
    arguments = function.signature.input_arg
    unique = UniqueNames(node.name for node in function.node_def)
    unique.reserve(item.name for number, item in enumerate(arguments) if number not in names)
    new: dict[str, str] = {}
    for position, name in names.items():
        if position in function.arg_attr and USER_NAME in function.arg_attr[position].attr:
            function.arg_attr[position].attr[USER_NAME].s = name.encode()
        new[arguments[position].name] = unique.take(argument_name(name))
    for position in names:
        arguments[position].name = new[arguments[position].name]
    colocated = {old.encode(): name.encode() for old, name in new.items()}
    for node in function.node_def:
        places = node.attr["_class"].list.s if "_class" in node.attr else []
        for number, place in enumerate(places):
            prefix, at, name = place.partition(b"@")
            places[number] = prefix + at + colocated.get(name, name)
    replace_tensors(function, lambda text: _with_source_renamed(text, new))


def _with_source_renamed(text: str, new: Names) -> str:
    mark = "^" if text.startswith("^") else ""
    source = input_source(text, in_function=True)
    return f"{mark}{new[source]}{text[len(mark) + len(source) :]}" if source in new else text
