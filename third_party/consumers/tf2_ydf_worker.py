"""`tf.saved_model.load` where the custom ops of ydf_tf are registered: our own worker behind one
import.
"""

from importlib import metadata

from savedmodel_compat_workers import protocol, tf2_worker


class TF2WithForests(tf2_worker.TF2Worker):
    name = "tf2_ydf"
    capabilities = ("functions", "resave", "tags", "variables")

    def __init__(self):
        super().__init__()
        import ydf_tf  # noqa: F401  registers the ops

    def versions(self):
        return {**super().versions(), self.name: metadata.version("ydf_tf")}


if __name__ == "__main__":
    protocol.serve(TF2WithForests)
