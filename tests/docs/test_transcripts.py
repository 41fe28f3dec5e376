"""Every command of a page with ``console`` blocks prints what the page shows."""

import pytest
from prove_environments import interpreter

from compat_matrix.runtimes import interpreters
from docs import transcripts


def _page(page):
    marks = [pytest.mark.tensorflow] if transcripts.needs_tensorflow(page) else []
    return pytest.param(page, id=str(page.relative_to(transcripts.ROOT)), marks=marks)


@pytest.mark.parametrize("page", [_page(page) for page in transcripts.transcripts()])
def test_the_commands_print_what_the_page_shows(page, tmp_path):
    for version in transcripts.needed_pythons(page):
        try:
            interpreters.find(version)
        except interpreters.NoInterpreter as error:
            pytest.skip(str(error))
    if lock := transcripts.needed_lock(page):
        interpreter(lock)
    assert transcripts.run(page, tmp_path) == page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```console\n$ echo a; echo b\na\nb\n```", None),
        ("```console\n$ echo a 1.5 s\na ... s\n```", None),
        ("```console\n$ seq 9\n1\n...\n9\n```", None),
        ("```console\n$ echo a; exit 3\na\n[exit code 3]\n```", None),
        ("```sh\n# one.sh\necho one\n```\n\n```console\n$ bash one.sh\none\n```", None),
        ("<!-- setup: echo hidden > file -->\n\n```console\n$ cat \\\n  file\nhidden\n```", None),
        (
            (
                "<!-- not run: b; instead: echo hidden > file"
                " -->\n\n```sh\nfalse\n```\n\n```console\n$ cat file\nhidden\n```"
            ),
            None,
        ),
        ("```console\n$ echo b\na\n```", "```console\n$ echo b\nb\n```"),
        ("```console\n$ false\n```", "```console\n$ false\n[exit code 1]\n```"),
        ("```console\n$ echo a b\na ... c\n```", "```console\n$ echo a b\na b\n```"),
    ],
)
def test_a_page_is_compared_with_what_is_printed(tmp_path, text, found):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    assert transcripts.run(page, tmp_path) == (found or text)


def test_a_command_in_place_of_a_block_must_succeed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- not run: it takes hours; instead: ls nothing -->\n\n```sh\nls\n```\n",
        encoding="utf-8",
    )
    with pytest.raises(RuntimeError, match=r"page\.md: exit code 2 of ls nothing: .*No such file"):
        transcripts.run(page, tmp_path)
