"""The C++ program of ``compat_matrix/runtimes/native``, which is compiled for each runtime: nothing of it is Python."""

CONSUMER = {
    "place": 4,
    "summary": "tensorflow::LoadSavedModel and Session::Run, in a C++ program built against the wheel",
    "capabilities": ("fetch", "tags"),
}
