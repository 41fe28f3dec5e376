"""Exports of tf.estimator, and the live graph to compare them with.

Python 3.6 syntax.

An Estimator exports from a graph it builds and drops. The live answerer is therefore the same model
function built once more, restored from the training checkpoint: it shares neither the exported
graph nor the exported variables.
"""

import os


def run_config(tf):
    """Single-threaded, seeded, quiet, in the scratch folder."""
    return tf.estimator.RunConfig().replace(
        model_dir="estimator",
        tf_random_seed=1,
        save_summary_steps=None,
        session_config=tf.ConfigProto(
            intra_op_parallelism_threads=1, inter_op_parallelism_threads=1
        ),
    )


def input_fn(tf, features, labels, epochs=4):
    """One batch, repeated: {name: list} and a list of labels."""

    def make():
        data = {key: tf.constant(value) for key, value in features.items()}
        return (
            tf.data.Dataset.from_tensors((data, tf.constant(labels)))
            .repeat(epochs)
            .make_one_shot_iterator()
            .get_next()
        )

    return make


def export(tf, rec, estimator, receiver_fn, **kwargs):
    """Estimator.export_savedmodel (the name in 1.4 to 1.15) with its live answerer."""
    os.rename(
        estimator.export_savedmodel("exported", receiver_fn, **kwargs).decode(), parent(rec.model)
    )
    rec.live(live_session(tf, rec, estimator, receiver_fn))


def export_modes(tf, rec, estimator, receiver_fns):
    """Estimator.experimental_export_all_saved_models: {mode: receiver function}; one MetaGraph per
    mode.
    """
    os.rename(
        estimator.experimental_export_all_saved_models("exported", receiver_fns).decode(),
        parent(rec.model),
    )
    tags = {
        tf.estimator.ModeKeys.PREDICT: "serve",
        tf.estimator.ModeKeys.TRAIN: "train",
        tf.estimator.ModeKeys.EVAL: "eval",
    }
    for mode, receiver_fn in receiver_fns.items():
        rec.live(live_session(tf, rec, estimator, receiver_fn, mode), (tags[mode],))


def parent(path):
    """The path, after making its parent folder."""
    os.makedirs(os.path.dirname(path))
    return path


def live_session(tf, rec, estimator, receiver_fn, mode="infer"):
    """A session on the model function's graph, built as the Estimator builds it, restored from the
    training checkpoint.
    """
    with tf.Graph().as_default():
        tf.train.create_global_step()
        tf.set_random_seed(estimator.config.tf_random_seed)
        receiver = receiver_fn()
        spec = estimator.model_fn(
            receiver.features, getattr(receiver, "labels", None), mode, estimator.config
        )
        sess = rec.session()
        # Variables that are made by the metrics only exist in this graph and are local.
        tf.train.Saver(
            tf.global_variables() + tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS), sharded=True
        ).restore(sess, tf.train.latest_checkpoint(estimator.model_dir))
        local = spec.scaffold.local_init_op if spec.scaffold is not None else None
        sess.run(
            [tf.local_variables_initializer(), tf.tables_initializer()] if local is None else local
        )
        return sess
