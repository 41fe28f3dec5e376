"""Texts between the harness and a server: its configuration, its log."""

from __future__ import annotations

from pathlib import Path

from savedmodel_common import staging
from savedmodel_common.serving import messages
from savedmodel_servers import verdicts
from savedmodel_servers.launch import config_text


def test_configuration_is_what_a_server_reads():
    from google.protobuf import text_format

    models = [staging.Staged("a_1", Path("/a")), staging.Staged("b_2", Path("/b"))]
    config = text_format.Parse(
        config_text(models, '/tmp/with "quotes" and \\'), messages.ModelServerConfig()
    )
    assert [
        (one.name, one.base_path, one.model_platform) for one in config.model_config_list.config
    ] == [
        ("a_1", '/tmp/with "quotes" and \\/a_1', "tensorflow"),
        ("b_2", '/tmp/with "quotes" and \\/b_2', "tensorflow"),
    ]
    empty = text_format.Parse(config_text([], "/models"), messages.ModelServerConfig())
    assert empty.WhichOneof("config") == "model_config_list"


def test_words_of_a_log():
    log = """
2026-11-21 21:38:28.123456: I tensorflow_serving/model_servers/server_core.cc:465] Adding/updating models.
2026-11-21 21:38:28.223456: E external/org_tensorflow/a.cc:1] first error
2026-11-21 21:38:28.323456: E tensorflow_serving/util/retrier.cc:37] Loading servable failed: Op type not registered
2026-11-21 21:38:28.423456: W a.cc:1] a warning behind it
"""
    assert verdicts.words_of(log) == "Loading servable failed: Op type not registered"
    assert (
        verdicts.words_of(log + "2026-11-21 21:38:29.000000: F a.cc:1] Check failed: x\nmore\n")
        == "Check failed: x"
    )
    assert (
        verdicts.words_of("F1121 21:38:28.123456 12 file.cc:10] Check failed: y\nstack\n")
        == "Check failed: y"
    )
    assert verdicts.words_of("usage: x\nunknown argument: --y\n\n") == "unknown argument: --y"
    assert verdicts.words_of("")
