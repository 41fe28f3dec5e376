// Netron's reader of tensor bundles as a reader of the kit (docs/format/kit.md): level L1.
//
//     node netron.mjs NETRON MODEL      NETRON: the folder of the package, site-packages/netron
//
// Netron exports no class for bundles. This program therefore loads its module tf.js as text, with
// one export added. Netron gives the stored bytes of a tensor; it decodes neither strings nor slices.

import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [netron, model] = process.argv.slice(2).map((path) => resolve(path));
const NAMES = {
  float: "float32", double: "float64", half: "float16", boolean: "bool",
  complex: "complex64", "complex<float32>": "complex64", "complex<float64>": "complex128",
};

async function moduleWithExport() {
  const text = readFileSync(`${netron}/tf.js`, "utf8").replaceAll(
    /from '\.\/(\w+)\.js'/g,
    (_, name) => `from '${pathToFileURL(`${netron}/${name}.js`)}'`,
  );
  const source = Buffer.from(`${text}\nexport { tf };\n`).toString("base64");
  return import(`data:text/javascript;base64,${source}`);
}

async function readBundle(prefix) {
  const { tf } = await moduleWithExport();
  const base = await import(pathToFileURL(`${netron}/base.js`));
  tf.proto = await import(pathToFileURL(`${netron}/tf-proto.js`));
  const opened = (path) => new base.BinaryStream(new Uint8Array(readFileSync(path)));
  const context = {
    fetch: async (name) => ({ stream: opened(`${model}/variables/${name}`) }),
    error: (error) => { throw error; },
  };
  const file = existsSync(`${prefix}.index`) ? "variables.index" : "variables";
  return tf.TensorBundle.open(opened(`${model}/variables/${file}`), file, context);
}

function described(tensor) {
  const { dataType, shape } = tensor.type;
  const content = Buffer.from(tensor._tensor.tensor_content ?? []);
  return {
    key: tensor.name,
    dtype: NAMES[dataType] ?? dataType,
    shape: (shape.dimensions ?? []).map(Number),
    bytes: content.length,
    sha256: createHash("sha256").update(content).digest("hex"),
  };
}

const prefix = `${model}/variables/variables`;
if (!existsSync(`${prefix}.index`) && !existsSync(prefix)) {
  console.log(JSON.stringify({ checkpoint: null }));
} else {
  let bundle;
  try {
    bundle = await readBundle(prefix);
  } catch (error) {
    console.error(`${error.constructor.name}: ${error.message}`);
    process.exit(2);
  }
  console.log(JSON.stringify({ checkpoint: { tensors: bundle.tensors.map(described) } }));
}
