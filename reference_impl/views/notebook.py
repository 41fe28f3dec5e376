"""The result of ``inspect`` as notebooks show it.

RFC: GOAL-07
"""

from __future__ import annotations

from collections.abc import Sequence

from reference_impl.format.values.shapes import shape_text
from reference_impl.safety.effect import Effect
from reference_impl.views import html
from reference_impl.views.types import Function, MetaGraph, SignatureArgument


def show(
    path: str, described: str, problems: Sequence[str], meta_graphs: Sequence[MetaGraph]
) -> str:
    """Return the HTML of an inspected model: what is damaged, and a section for each MetaGraph."""
    return html.block(
        html.line(html.path(path), " ", html.dim(described)),
        html.folded(html.strong("Problems"), html.listed(problems), shown=True),
        *map(_meta_graph, meta_graphs),
    )


def _meta_graph(graph: MetaGraph) -> str:
    tags = html.code(", ".join(graph.tags) or "no tags")
    return html.folded(
        f"{html.strong('MetaGraph')} {tags} {html.dim('TensorFlow')}"
        f" {html.code(graph.tensorflow_version or '?')}",
        _signatures(graph)
        + html.folded(
            _title("Acts on the machine", graph.effects),
            html.listed(map(_effect, sorted(graph.effects, key=lambda item: not item.at_load))),
            shown=True,
        )
        + html.folded(_title("Variables", graph.variables), _variables(graph))
        + html.folded(_title("Objects", graph.objects), _objects(graph))
        + html.folded(_title("Functions", graph.functions), _functions(graph))
        + html.folded(
            _title("Assets", graph.assets),
            html.listed(f"{item.filename}  {item.status}" for item in graph.assets),
        )
        or html.line(html.dim("nothing to show")),
        shown=True,
    )


def _title(name: str, items: Sequence[object]) -> str:
    return f"{html.strong(name)} {html.dim(f'{len(items):,}')}"


def _signatures(graph: MetaGraph) -> str:
    rows = [
        (
            html.code(item.key),
            html.listed(map(_argument, item.inputs)),
            html.listed(map(_argument, item.outputs)),
        )
        for item in graph.signatures
    ]
    return html.table(("signature", "inputs", "outputs"), rows)


def _argument(item: SignatureArgument) -> str:
    kind = item.type_spec or f"{item.dtype}{shape_text(item.shape)}"
    default = f" = {item.default}" if item.default else ""
    return f"{item.name}: {f'Sparse({kind})' if item.kind == 'sparse' else kind}{default}"


def _effect(item: Effect) -> str:
    return f"{item.when}: {item.op} {item.does}{''.join(f' {path!r}' for path in item.paths)}"


def _variables(graph: MetaGraph) -> str:
    rows = [
        (
            html.code(item.name if item.path is None else item.path),
            html.code(f"{item.dtype}{shape_text(item.shape)}"),
            html.dim("" if item.size is None else f"{item.size:,}"),
            html.code(item.key or ""),
            "" if item.stored else html.strong("no stored value"),
        )
        for item in graph.variables
    ]
    return html.table(("variable", "values", "bytes", "key in the checkpoint", ""), rows)


def _objects(graph: MetaGraph) -> str:
    rows = [
        (
            html.code(_path(item.path)),
            html.code(item.details.get("identifier") or item.kind),
            html.code(item.registered_name),
        )
        for item in graph.objects
    ]
    return html.table(("path", "kind", "registered as"), rows)


def _functions(graph: MetaGraph) -> str:
    rows = [(html.code(_path(item.path)), _traces(item)) for item in graph.functions]
    return html.table(("function", "traces"), rows)


def _traces(function: Function) -> str:
    return html.listed(trace.signature[trace.signature.find("(") :] for trace in function.traces)


def _path(path: str | None) -> str:
    return "(no path)" if path is None else path or "(root)"
