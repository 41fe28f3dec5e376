// TensorFlow.js in node, with the kernels of its CPU backend: `node run.js PACKAGES MODEL.JSON` loads one graph model, and
// answers calls of it. A line of JSON each way: {inputs: {name: tensor}, outputs: {name: node}} asks, {outputs: {name: tensor}} or
// {error, message} answers, {inputs: [name]} comes first. A tensor is {dtype, shape, data}, its bytes as base64 (strings: a list).
"use strict";

const fs = require("fs");
const path = require("path");
const readline = require("readline");

const [packages, file] = process.argv.slice(2);
const from = require("module").createRequire(path.join(packages, "index.js"));
const tf = from("@tensorflow/tfjs-core");
const { loadGraphModel } = from("@tensorflow/tfjs-converter");
from("@tensorflow/tfjs-backend-cpu");

console.log = console.error; // what a model prints: stdout is for answers

const ARRAYS = { float32: Float32Array, int32: Int32Array, bool: Uint8Array, complex64: Float32Array };

async function artifacts() {
  const folder = path.dirname(file);
  const read = (name) => fs.readFileSync(path.join(folder, name));
  return tf.io.getModelArtifactsForJSON(JSON.parse(fs.readFileSync(file, "utf8")), async (manifest) => {
    const shards = manifest.flatMap((group) => group.paths).map(read);
    const whole = Uint8Array.from(Buffer.concat(shards)); // a copy: a Buffer may be part of a larger one
    return [manifest.flatMap((group) => group.weights), whole.buffer];
  });
}

function toTensor({ dtype, shape, data }) {
  if (dtype === "string") {
    return tf.tensor(data.map((one) => Uint8Array.from(Buffer.from(one, "base64"))), shape, "string");
  }
  const values = new ARRAYS[dtype](Uint8Array.from(Buffer.from(data, "base64")).buffer);
  if (dtype !== "complex64") return tf.tensor(values, shape, dtype);
  const part = (offset) => tf.tensor(values.filter((_, index) => index % 2 === offset), shape, "float32");
  return tf.complex(part(0), part(1));
}

async function fromTensor(tensor) {
  const { dtype, shape } = tensor;
  if (dtype === "string") return { dtype, shape, data: (await tensor.bytes()).map((one) => Buffer.from(one).toString("base64")) };
  const values = ARRAYS[dtype].from(await tensor.data());
  return { dtype, shape, data: Buffer.from(values.buffer).toString("base64") };
}

async function call(model, { inputs, outputs }) {
  const given = Object.fromEntries(Object.entries(inputs).map(([name, tensor]) => [name, toTensor(tensor)]));
  const results = [await model.executeAsync(given, Object.values(outputs))].flat(); // of one output no list
  const answers = await Promise.all(results.map(fromTensor));
  return { outputs: Object.fromEntries(Object.keys(outputs).map((name, index) => [name, answers[index]])) };
}

async function answer(asked) {
  let reply;
  try {
    reply = await asked();
  } catch (error) {
    reply = { error: error.name || "Error", message: String(error.message || error) };
  }
  fs.writeSync(1, JSON.stringify(reply) + "\n");
}

async function main() {
  await tf.setBackend("cpu");
  let model;
  await answer(async () => {
    model = await loadGraphModel({ load: artifacts });
    return { inputs: model.inputs.map(({ name }) => name) };
  });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    await answer(() => call(model, JSON.parse(line)));
  }
}

main();
