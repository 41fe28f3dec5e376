"""Load a recurrent network that TF 1.15 exported, train it for one step, and save it as a TF 2
SavedModel.

python examples/fine_tune_a_tf1_model.py fixtures_v1/dynamic_rnn/model fine_tuned
"""

import sys

import tensorflow as tf

import reference_impl

source, target = sys.argv[1:]
model = reference_impl.load(source)
run, x, length = model.signatures["serving_default"], tf.ones([2, 5, 3]), tf.constant([5, 2])
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(run(x=x, length=length)["h"] ** 2)
for variable, gradient in zip(
    model.trainable_variables, tape.gradient(loss, model.trainable_variables)
):
    variable.assign_sub(0.01 * gradient)
reference_impl.save(model, target)

again = tf.saved_model.load(target)
assert (
    (again.signatures["serving_default"](x=x, length=length)["h"] == run(x=x, length=length)["h"])
    .numpy()
    .all()
)
