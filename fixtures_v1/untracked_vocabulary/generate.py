"""A vocabulary that 1.15's StaticVocabularyTable does not track: no asset, the author's path stays in the graph."""

CLAUSES = ("RES-06", "RES-14")
FEATURES = ("object_graph", "functions", "tables", "lost_asset")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.14,<2.1"  # later ones track the file: the defect is what this case shows


def generate(tf, rec):
    tf.enable_v2_behavior()
    tf2 = rec.v2()
    lines = tf2.lookup.TextFileInitializer(
        rec.file("vocabulary.txt", "a\nb\nc\n"),
        tf.string,
        tf2.lookup.TextFileIndex.WHOLE_LINE,
        tf.int64,
        tf2.lookup.TextFileIndex.LINE_NUMBER,
    )
    model = tf.Module()
    model.table = tf2.lookup.StaticVocabularyTable(lines, 2)
    model.lookup = tf2.function(
        lambda words: {"ids": model.table.lookup(words)}, input_signature=[tf2.TensorSpec([None], tf.string, name="words")]
    )
    tf.saved_model.save(model, rec.model, signatures=model.lookup)
    rec.live({"serving_default": model.lookup})
    rec.ask("serving_default", {"words": ["a", "c", "zebra"]}, loaded_error="vocabulary.txt; No such file or directory")
