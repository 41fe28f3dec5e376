"""What notebooks show of `inspect`, `verify` and `diff`: all that matters, and nothing that a model
can run or hide.
"""

import subprocess
import sys
from html.parser import HTMLParser

import model_edits as edits
import pytest

import reference_impl
from savedmodel_tools.diff import diff
from savedmodel_tools.verify.run import verify

# Markup, an attribute's end, a formula that notebooks would typeset, a direction override.
HOSTILE = (
    "x\"'><img src=y"
    " onerror=alert(1)></code><script>alert(2)</script>$\\href{javascript:alert(3)}{z}$\u202e"
)
SHOWN = HOSTILE.replace("\u202e", "\\u202e")
OURS = {"div", "details", "summary", "table", "tr", "th", "td", "b", "span", "code", "br"}


class Page(HTMLParser):
    """The tags and attributes of a page, its text, and the text that stands in ``<code>``."""

    def __init__(self, page):
        super().__init__()
        self.found, self.text, self.code, self.open = set(), "", "", []
        self.feed(page)
        assert self.open == [], "every tag is closed"

    def handle_starttag(self, tag, attributes):
        self.found.add(tag)
        self.attributes = getattr(self, "attributes", set()) | {(tag, *pair) for pair in attributes}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        self.code += f"{data}\n" if "code" in self.open else ""


def page(result):
    return Page(result._repr_html_())


def hostile(tmp_path, name="hostile"):
    """A fixture whose signature, its argument, a tag, a node, an asset and a variable have hostile
    names.
    """

    def edit(message):
        (graph,) = message.meta_graphs
        graph.meta_info_def.tags[:] = [HOSTILE]
        graph.meta_info_def.tensorflow_version = HOSTILE
        signature = graph.signature_def[HOSTILE]
        signature.CopyFrom(graph.signature_def["serving_default"])
        signature.inputs[HOSTILE].name = "missing:0"
        graph.graph_def.node.add(name=HOSTILE, op="WriteFile", input=["nobody"])
        graph.graph_def.node.add(name="other", op=HOSTILE)
        graph.asset_file_def.add(filename=HOSTILE).tensor_info.name = "missing:0"
        for node in graph.object_graph_def.nodes:
            for child in node.children:
                child.local_name += HOSTILE
            node.registered_name = HOSTILE

    return edits.edited(edits.fixture("module_functions"), tmp_path / name, edit)


def results(tmp_path):
    model = hostile(tmp_path, f"<b>{'n' * 5}</b>")
    return [
        reference_impl.inspect(model),
        verify(model),
        verify(model, name=HOSTILE),
        diff(edits.fixture("module_functions"), model),
    ]


def test_a_name_of_a_model_is_text_and_stands_in_code(tmp_path):
    pages = [page(result) for result in results(tmp_path)]
    assert len(pages) == 4
    for shown in pages:
        assert shown.found <= OURS
        assert {pair[1:] for pair in shown.attributes} <= {
            *(("style", style) for style in ("text-align:left", "opacity:.7")),
            ("open", None),
            ("class", "tex2jax_ignore mathjax_ignore"),
        }
        assert SHOWN in shown.code and "\u202e" not in shown.text
        outside = shown.text
        for line in shown.code.splitlines():
            outside = outside.replace(line, "", 1)
        assert "alert" not in outside and "$" not in outside and "nnnnn" not in outside


def test_inspect_shows_signatures_variables_functions_and_problems():
    shown = page(reference_impl.inspect(edits.fixture("module_functions")))
    for text in (
        "serving_default",
        "x: float32[?]",
        "output_0: float32[?]",
        "scale/.ATTRIBUTES/VARIABLE_VALUE",
        "TensorFlow 1.15.5",
    ):
        assert text in shown.text
    assert "Problems" not in shown.text
    broken = page(reference_impl.inspect(edits.fixture("v1_checkpoint")))
    assert "Problems" in broken.text and "V1CheckpointError" in broken.code


def test_inspect_shows_what_acts_on_the_machine(tmp_path):
    shown = page(reference_impl.inspect(hostile(tmp_path)))
    assert "Acts on the" in shown.text and "WriteFile writes a file" in shown.code


def test_verify_shows_severity_rule_place_and_fix():
    report = verify(edits.fixture("contrib_op"))
    shown = page(report)
    (finding,) = report.findings
    assert shown.text.index("1 error") < shown.text.index(finding.rule)
    assert all(
        text in shown.code for text in (finding.rule, finding.where, finding.message, finding.fix)
    )
    assert "nothing found" in page(verify(edits.fixture("half_plus_two"))).text


def test_verify_does_not_call_a_model_sound_that_it_could_not_look_at():
    from savedmodel_tools.verify.run import Report

    shown = page(Report("model", error="no permission"))
    assert "no permission" in shown.text and "nothing found" not in shown.text


def test_diff_shows_the_verdict_and_the_changes_that_count_first(tmp_path):
    model = edits.fixture("half_plus_two")
    assert "one content hash" in page(diff(model, model)).text
    result = diff(model, edits.fixture("dynamic_rnn"))
    shown = page(result)
    assert shown.text.index("different: ") < shown.text.index("section")
    first = next(change for change in result.changes if change.counts)
    assert first.what in shown.code


def test_a_long_table_says_how_many_rows_are_not_shown(tmp_path):
    def edit(message):
        for number in range(50):
            message.meta_graphs[0].signature_def[f"another_{number:02}"].SetInParent()

    model = edits.edited(edits.fixture("module_functions"), tmp_path / "model", edit)
    (graph,) = reference_impl.inspect(model).meta_graphs
    shown = page(reference_impl.inspect(model))
    assert (
        len(graph.signatures) == 52
        and "another_19" in shown.code
        and "another_20" not in shown.code
    )
    assert "… 32 more" in shown.text


@pytest.mark.parametrize("name", ["tensorflow", "jinja2"])
def test_nothing_is_imported_for_it_that_the_base_install_lacks(name):
    program = f"""
import sys
sys.modules[{name!r}] = None
import reference_impl
from savedmodel_tools.diff import diff
from savedmodel_tools.verify.run import verify
model = {str(edits.fixture("half_plus_two"))!r}
print(all(item._repr_html_().startswith("<div") for item in (reference_impl.inspect(model), verify(model), diff(model, model))))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "True\n", done.stderr
