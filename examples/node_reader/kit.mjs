// The reader of checkpoints as a reader of the kit (docs/format/kit.md): level L1 of one model.
//
//     node kit.mjs MODEL
//
// Prints the meaning of the model as JSON, or exits with 2 and says why it refuses the model.

import { lstatSync } from "node:fs";

import { readTensors } from "./reader.mjs";

const prefix = `${process.argv[2]}/variables/variables`;

function exists(path) {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

try {
  const present = exists(`${prefix}.index`) || exists(prefix);
  const checkpoint = present ? { tensors: [...readTensors(prefix)] } : null;
  console.log(JSON.stringify({ checkpoint }));
} catch (error) {
  console.error(error.message);
  process.exitCode = error.constructor.name === "Refused" ? 2 : 1;
}
