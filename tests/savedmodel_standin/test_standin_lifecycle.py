"""The stand-in server's life with models: versions, labels, changes of the config, failures,
warm-up, faults for tests.
"""

from __future__ import annotations

import shutil
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from standin_server import QUICK, Failed, Server, empty_config, place, predict, serving, start

from property_tests.attacks import effects
from reference_impl.format.bundle.checksum import masked_crc32c
from savedmodel_common.serving import messages
from savedmodel_standin import faults, warmup

pytestmark = pytest.mark.tensorflow

FLOAT = 1
X = (FLOAT, "float_val", [2.0])
END, AVAILABLE, LOADING = "END", "AVAILABLE", "LOADING"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("standin")
    with serving(folder, empty_config(folder), *QUICK) as running:
        yield running


def exit_of(server: Server) -> tuple[int, str]:
    status = server.process.wait(60)
    server.channel.close()
    return status, server.log()


def failure(server: Server, name: str, version: int = 1) -> tuple[str, int, str]:
    spec = messages.ModelSpec(name=name)
    known = server.call(
        "GetModelStatus", messages.GetModelStatusRequest(model_spec=spec)
    ).model_version_status
    entry = next(entry for entry in known if entry.version == version)
    return (
        messages.ModelVersionStatus.State.Name(entry.state),
        entry.status.error_code,
        entry.status.error_message,
    )


def test_an_empty_list_serves_nothing_and_a_reload_serves_and_takes_away(
    server: Server, tmp_path: Path
) -> None:
    base = place(tmp_path / "m", "half_plus_two")
    server.reload({"name": "come", "base_path": str(base)})
    assert server.call("Predict", predict("come", x=X)).outputs["y"].float_val[0] == 3.0
    server.reload()
    server.wait_for("come", [(1, END)])
    with pytest.raises(Failed, match=r"Servable not found for request: Latest\(come\)"):
        server.call("Predict", predict("come", x=X))


def test_a_new_version_takes_over_and_the_last_one_comes_back(
    server: Server, tmp_path: Path
) -> None:
    base = place(tmp_path / "m", "half_plus_two")
    server.reload({"name": "versions", "base_path": str(base)})
    place(base, "half_plus_two", 2)
    server.wait_for("versions", [(2, AVAILABLE), (1, END)])
    shutil.rmtree(base / "2")
    server.wait_for("versions", [(2, END), (1, AVAILABLE)])
    assert server.states("versions") == [(2, END), (1, AVAILABLE)]


def test_requests_go_on_while_versions_change(server: Server, tmp_path: Path) -> None:
    base = place(place(tmp_path / "m", "half_plus_two"), "half_plus_two", 2)
    model: dict[str, Any] = {"name": "busy", "base_path": str(base)}
    server.reload(model)
    done = threading.Event()

    def ask() -> int:
        count = 0
        while not done.is_set():
            assert server.call("Predict", predict("busy", x=X)).outputs["y"].float_val[0] == 3.0
            count += 1
        return count

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask) for _ in range(4)]
        try:
            for version in (1, 2, 1, 2):
                server.reload(
                    {**model, "model_version_policy": {"specific": {"versions": [version]}}}
                )
                server.wait_for(
                    "busy",
                    [
                        (2, AVAILABLE if version == 2 else END),
                        (1, AVAILABLE if version == 1 else END),
                    ],
                )
        finally:
            done.set()
        assert all(one.result() for one in asked)


def test_version_policies_and_labels(server: Server, tmp_path: Path) -> None:
    base = place(place(tmp_path / "m", "half_plus_two"), "half_plus_two", 2)
    model: dict[str, Any] = {
        "name": "labels",
        "base_path": str(base),
        "model_version_policy": {"all": {}},
    }
    server.reload(model)
    server.wait_for("labels", [(2, AVAILABLE), (1, AVAILABLE)])
    server.reload({**model, "version_labels": {"stable": 1}})
    request = predict("labels", x=X)
    request.model_spec.version_label = "stable"
    assert server.call("Predict", request).model_spec.version.value == 1
    status, _ = server.rest("/v1/models/labels/labels/stable:predict", {"instances": [2.0]})
    assert status == 200
    with pytest.raises(
        Failed,
        match=(
            "Request to assign label to version 7 of model labels, which is not currently available"
        ),
    ):
        server.reload({**model, "version_labels": {"canary": 7}})
    server.reload({**model, "model_version_policy": {"specific": {"versions": [1]}}})
    server.wait_for("labels", [(2, END), (1, AVAILABLE)])
    with pytest.raises(Failed, match="Unrecognized servable version label: stable"):
        server.call("Predict", request)


def test_one_model_that_does_not_load_costs_itself_only(server: Server, tmp_path: Path) -> None:
    good, bad = place(tmp_path / "good", "half_plus_two"), place(tmp_path / "bad", "gpu_pinned")
    with pytest.raises(Failed) as caught:
        server.reload(
            {"name": "good", "base_path": str(good)}, {"name": "bad", "base_path": str(bad)}
        )
    assert caught.value.code == "UNKNOWN"
    start_ = (
        "1 model(s) did not become available: {{{name: bad version: 1} due to error:"
        " INVALID_ARGUMENT: Cannot assign a device"
    )
    assert caught.value.text.startswith(start_)
    state, code, text = failure(server, "bad")
    assert (state, code) == (END, 3)
    assert "/device:GPU:0" in text
    assert (
        "Loading servable: {name: bad version: 1} failed: INVALID_ARGUMENT: Cannot assign a device"
        in server.log()
    )
    assert server.call("Predict", predict("good", x=X)).outputs["y"].float_val[0] == 3.0


def test_a_config_that_is_refused(server: Server, tmp_path: Path) -> None:
    base = str(place(tmp_path / "m", "half_plus_two"))
    for models, text in (
        (
            [{"name": "a", "base_path": base}] * 2,
            "Illegal to list model a multiple times in config list",
        ),
        (
            [{"name": "a", "base_path": "m"}],
            "Expected model a to have an absolute path or URI; got base_path()=m",
        ),
        (
            [{"name": "a", "base_path": base, "model_platform": "x"}],
            "Model a requests unsupported platform x",
        ),
        ([{"name": "a", "base_path": base, "model_platform": ""}], "Illegal setting neither"),
    ):
        with pytest.raises(Failed) as caught:
            server.reload(*models)
        assert caught.value.code == "INVALID_ARGUMENT"
        assert caught.value.text.startswith(text)
    request: Any = messages.ReloadConfigRequest()
    with pytest.raises(Failed, match="Only ModelConfigList is currently supported"):
        server.call("HandleReloadConfigRequest", request)


def warm_up(base: Path, records: Sequence[bytes], damage: bool = False) -> str:
    folder = base / "1" / "assets.extra"
    folder.mkdir(exist_ok=True)
    with (folder / "tf_serving_warmup_requests").open("wb") as file:
        for record in records:
            length = struct.pack("<Q", len(record))
            file.write(length + struct.pack("<I", masked_crc32c(length)))
            file.write(record + struct.pack("<I", masked_crc32c(record) ^ damage))
    return str(base)


def recorded(**inputs: Any) -> bytes:
    entry: Any = messages.PredictionLog()
    entry.predict_log.request.CopyFrom(predict("any", **inputs))
    return bytes(entry.SerializeToString())


def test_warm_up_records_are_replayed(server: Server, tmp_path: Path) -> None:
    warm = warm_up(place(tmp_path / "m", "half_plus_two"), [recorded(x=X)] * 3)
    estimator = place(tmp_path / "e", "warmup_estimator")  # made by TensorFlow 1.x
    server.reload(
        {"name": "warm", "base_path": warm}, {"name": "estimator", "base_path": str(estimator)}
    )
    assert (
        f"model at {warm}/1/assets.extra/tf_serving_warmup_requests. Number of warmup records"
        " read: 3." in server.log()
    )


def test_a_warm_up_record_writes_what_its_signature_writes(server: Server, tmp_path: Path) -> None:
    """Nobody has called the model: `verify` counts this as run at load (SMC601)."""
    (tmp_path / "m").mkdir()
    effects.write_when_warmed_up(tmp_path / "m" / "1")
    server.reload({"name": "writes", "base_path": str(tmp_path / "m")})
    assert (tmp_path / "m" / "outside" / "done").read_bytes() == b"written by a model"


@pytest.mark.parametrize(
    ("records", "damage", "code", "text"),
    [
        ([recorded(y=X)], False, 3, "Signature input alias: x"),
        ([b"\xff\xff"], False, 3, "Failed to parse warmup record: "),
        (
            [recorded(x=X)],
            True,
            15,
            "corrupted record at 12. Please verify your warmup data is in TFRecord format.",
        ),
        (
            [recorded(x=X)] * 1001,
            False,
            3,
            "Number of warmup records exceeds the maximum (1000) at ",
        ),
        (
            [messages.PredictionLog(session_run_log={}).SerializeToString()],
            False,
            12,
            "Unsupported log_type for warmup: 5",
        ),
    ],
)
def test_a_bad_warm_up_record_makes_the_load_fail(
    server: Server, tmp_path: Path, records: Sequence[bytes], damage: bool, code: int, text: str
) -> None:
    base, name = (
        warm_up(place(tmp_path / "m", "half_plus_two"), records, damage),
        f"cold{tmp_path.name[-1]}{code}{len(records)}",
    )
    with pytest.raises(Failed, match="become available"):
        server.reload({"name": name, "base_path": base})
    state, found, message = failure(server, name)
    assert (state, found) == (END, code)
    assert message.startswith(text)


def test_what_is_no_tfrecord_file_and_what_is_cut_off() -> None:
    with pytest.raises(
        warmup.Damaged, match=r"corrupted record at 0 \(Is this even a TFRecord file\?\)"
    ):
        list(warmup.records(b"a request to warm up with\n"))
    length = struct.pack("<Q", 4)
    whole = (
        length
        + struct.pack("<I", masked_crc32c(length))
        + b"word"
        + struct.pack("<I", masked_crc32c(b"word"))
    )
    assert list(warmup.records(whole + whole[:11])) == [
        b"word"
    ]  # TensorFlow's reader sees an end there too
    with pytest.raises(
        warmup.Damaged, match="truncated record at 20' failed with Read less bytes than requested"
    ):
        list(warmup.records(whole + whole[:-1]))


def test_a_model_of_the_first_config_that_does_not_load_ends_the_server(tmp_path: Path) -> None:
    base = place(tmp_path / "m", "gpu_pinned")
    server = start(
        tmp_path,
        "--model_name=m",
        f"--model_base_path={base}",
        "--max_num_load_retries=1",
        "--load_retry_interval_micros=1000",
    )
    status, log = exit_of(server)
    assert status == 255
    assert (
        "Failed to start server. Error: UNKNOWN: 1 servable(s) did not become available: {{{name: m"
        " version: 1} due to" in log
    )
    assert "Retrying of Loading servable: {name: m version: 1} retry: 1" in log
    assert "exhausted max_num_retries: 1" in log


@pytest.mark.parametrize(
    ("flags", "status", "text"),
    [
        (
            (),
            255,
            "Both server_options.model_base_path and server_options.model_config_file are empty!",
        ),
        (("--port=x",), 255, "Couldn't interpret value =x for flag port."),
        (("--help",), 255, "--rest_api_port="),
        (("--version",), 0, "TensorFlow ModelServer: 0.0.0-standin\nTensorFlow Library: 2."),
        (
            ("--batching_parameters_file=/x", "--model_base_path=/x"),
            255,
            "is set without setting server_options.enable_batching",
        ),
        (
            ("--ssl_config_file=/x", "--model_base_path=/x"),
            255,
            "the stand-in does not support --ssl_config_file",
        ),
        (("--model_config_file=/nowhere", "--what"), 255, "unknown argument: --what"),
    ],
)
def test_command_lines_that_end_it(
    tmp_path: Path, flags: Sequence[str], status: int, text: str
) -> None:
    found, log = exit_of(start(tmp_path, *flags))
    assert found == status, log
    assert text in log


def test_a_config_file_that_is_none(tmp_path: Path) -> None:
    config = tmp_path / "models.config"
    config.write_text("improperly formatted", "utf-8")
    status, log = exit_of(start(tmp_path, f"--model_config_file={config}"))
    assert status == 255
    assert "Error parsing text-format tensorflow.serving.ModelServerConfig" in log
    assert (
        f"Failed to start server. Error: INVALID_ARGUMENT: Invalid protobuf file: '{config}'" in log
    )


def test_the_config_file_is_read_again(tmp_path: Path) -> None:
    base, config = place(tmp_path / "m", "half_plus_two"), tmp_path / "models.config"
    text = (
        'model_config_list: {{ config: {{ name: "{}", base_path: "{}", model_platform: "tensorflow"'
        " }} }}"
    )
    config.write_text(text.format("before", base), "utf-8")
    flags = (f"--model_config_file={config}", "--model_config_file_poll_wait_seconds=1")
    with serving(tmp_path, *flags) as server:
        assert server.states("before") == [(1, AVAILABLE)]
        config.write_text(text.format("after", base), "utf-8")
        server.wait_for("before", [(1, END)])
        server.wait_for("after", [(1, AVAILABLE)])


def test_a_base_path_that_is_not_there_holds_up_every_reload(tmp_path: Path) -> None:
    base = place(tmp_path / "m", "half_plus_two")
    with serving(tmp_path, empty_config(tmp_path), *QUICK) as server:
        for name, path in (("gone", tmp_path / "gone"), ("there", base)):
            with pytest.raises(Failed) as caught:
                server.reload({"name": name, "base_path": str(path)}, limit=1.5)
            assert caught.value.code == "DEADLINE_EXCEEDED"
        assert "encountered a filesystem access error: Could not find base path" in server.log()


def test_batching_holds_requests_to_its_rules(tmp_path: Path) -> None:
    base = place(tmp_path / "m", "half_plus_two")
    with serving(
        tmp_path, "--model_name=m", f"--model_base_path={base}", "--enable_batching"
    ) as server:
        request = predict("m", x=X)
        assert server.call("Predict", request).outputs["y"].float_val[0] == 3.0
        del request.inputs["x"].tensor_shape.dim[:]
        with pytest.raises(
            Failed, match="Batching Run\\(\\) input tensors must have at least one dimension"
        ):
            server.call("Predict", request)
        assert (
            len(
                server.call("Predict", predict("m", x=(FLOAT, "float_val", [1.0] * 1000)))
                .outputs["y"]
                .float_val
            )
            == 1000
        )
        with pytest.raises(
            Failed, match="Task size 1001 is larger than maximum input batch size 1000"
        ):
            server.call("Predict", predict("m", x=(FLOAT, "float_val", [1.0] * 1001)))


def test_the_file_of_batching_parameters(tmp_path: Path) -> None:
    base, file = place(tmp_path / "m", "half_plus_two"), tmp_path / "batching"
    flags = (
        "--model_name=m",
        f"--model_base_path={base}",
        "--enable_batching",
        f"--batching_parameters_file={file}",
    )
    file.write_text(
        "max_batch_size { value: 2 }\nbatch_timeout_micros { value: 0 }\nallowed_batch_sizes: 2\n",
        "utf-8",
    )
    text = "Task size 3 is larger than maximum input batch size 2"
    with serving(tmp_path, *flags) as server, pytest.raises(Failed, match=text):
        server.call("Predict", predict("m", x=(FLOAT, "float_val", [1.0, 2.0, 3.0])))
    file.write_text("max_batch_size: many", "utf-8")
    status, log = exit_of(start(tmp_path, *flags))
    assert (status, f"Invalid protobuf file: '{file}'" in log) == (255, True)


def test_tags_choose_the_meta_graph(tmp_path: Path) -> None:
    base = place(tmp_path / "m", "serve_gpu_only")
    model = ("--model_name=m", f"--model_base_path={base}", "--max_num_load_retries=0")
    with serving(tmp_path, *model, "--saved_model_tags=serve,gpu") as server:
        assert server.states("m") == [(1, AVAILABLE)]
    status, log = exit_of(start(tmp_path, *model))
    assert status == 255
    assert (
        "due to error: NOT_FOUND: Could not find meta graph def matching supplied tags: { serve }"
        in log
    )


def test_faults_that_tests_of_drivers_ask_for(tmp_path: Path) -> None:
    base = place(tmp_path / "m", "half_plus_two")
    model = ("--model_name=fault_m", f"--model_base_path={base}")
    status, log = exit_of(start(tmp_path, *model, environment={faults.ABORT: "fault*"}))
    assert (status, "STANDIN_ABORT_AT_LOAD: fault_m" in log) == (-6, True)
    begun = time.monotonic()
    with serving(tmp_path, *model, environment={faults.SLOW_START: "2", faults.ABORT: "other*"}):
        assert time.monotonic() - begun >= 2
    with serving(
        tmp_path, empty_config(tmp_path), *QUICK, environment={faults.HANG: "hang"}
    ) as server:
        with pytest.raises(Failed, match="DEADLINE_EXCEEDED"):
            server.reload({"name": "hang", "base_path": str(base)}, limit=1.5)
        assert server.states("hang") == [(1, LOADING)]


def test_xla_is_off_unless_it_is_asked_for(tmp_path: Path) -> None:
    import tensorflow as tf

    import reference_impl

    root = tf.Module()
    spec = tf.TensorSpec([None], tf.float32)
    compiled = tf.function(lambda x: 2.0 * x, input_signature=[spec], jit_compile=True)
    root.f = tf.function(lambda x: {"y": compiled(x)}, input_signature=[spec])
    reference_impl.save(root, str(tmp_path / "m" / "1"), signatures=root.f)
    model = ("--model_name=m", f"--model_base_path={tmp_path}/m", *QUICK)
    with (
        serving(tmp_path, *model) as server,
        pytest.raises(Failed, match="XLA compilation disabled"),
    ):
        server.call("Predict", predict("m", x=X))
    with serving(tmp_path, *model, "--xla_cpu_compilation_enabled=true") as server:
        (answer,) = server.call("Predict", predict("m", x=X)).outputs.values()
        assert list(answer.float_val) == [4.0]


def test_a_run_without_end_ends_with_its_limit(tmp_path: Path) -> None:
    import tensorflow as tf

    import reference_impl

    root = tf.Module()
    forever = lambda x: {"y": tf.while_loop(lambda y: y == y, lambda y: [y + 0.0], [x])[0]}  # noqa: E731
    root.f = tf.function(forever, input_signature=[tf.TensorSpec([], tf.float32)])
    reference_impl.save(root, str(tmp_path / "m" / "1"), signatures=root.f)
    flags = (
        "--model_name=m",
        f"--model_base_path={tmp_path}/m",
        "--rest_api_timeout_in_ms=300",
        *QUICK,
    )
    with serving(tmp_path, *flags) as server:
        expected = (504, {"error": "Timed out waiting for notification"})
        assert server.rest("/v1/models/m:predict", {"inputs": 1.0}) == expected
        request = predict("m")
        request.inputs["x"].dtype = 1
        with pytest.raises(Failed) as caught:
            server.call("Predict", request, limit=0.5)
        assert caught.value.code == "DEADLINE_EXCEEDED"


def test_a_signal_ends_it(tmp_path: Path) -> None:
    with serving(tmp_path, empty_config(tmp_path)) as server:
        server.process.terminate()
        assert server.process.wait(20) == -15


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (
            "",
            (
                "setting neither ModelServerConfig::model_type (deprecated) nor"
                " ModelServerConfig::model_platform"
            ),
        ),
        (
            'model_type: TENSORFLOW model_platform: "tensorflow"',
            (
                "setting both ModelServerConfig::model_type (deprecated) and"
                " ModelServerConfig::model_platform"
            ),
        ),
    ],
)
def test_a_config_without_one_platform_names_the_model(
    tmp_path: Path, config: str, text: str
) -> None:
    path = tmp_path / "models.config"
    path.write_text(
        f'model_config_list {{ config {{ name: "nobody" base_path: "{tmp_path}" {config} }} }}',
        "utf-8",
    )
    status, log = exit_of(start(tmp_path, f"--model_config_file={path}"))
    assert status == 255
    assert f"INVALID_ARGUMENT: Illegal {text}, model name is nobody\n" in log
