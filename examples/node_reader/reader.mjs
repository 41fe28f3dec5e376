// A reader of the checkpoint of a SavedModel, level L1, written from docs/format/spec alone.
//
//     node reader.mjs PREFIX        for example MODEL/variables/variables
//
// Prints one line of JSON per tensor: key, dtype, shape, bytes, and the SHA-256 of its content. The
// content of a tensor of numbers is its bytes, with the slices of a partitioned tensor assembled.
// The content of a string or variant tensor is, for each element, its length as a 64-bit
// little-endian integer and its bytes. It needs no package. Comments name the rules that it keeps.

import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { pathToFileURL } from "node:url";

const DTYPES = {
  1: ["float32", 4], 2: ["float64", 8], 3: ["int32", 4], 4: ["uint8", 1], 5: ["int16", 2],
  6: ["int8", 1], 7: ["string", null], 8: ["complex64", 8], 9: ["int64", 8], 10: ["bool", 1],
  11: ["qint8", 1], 12: ["quint8", 1], 13: ["qint32", 4], 14: ["bfloat16", 2], 15: ["qint16", 2],
  16: ["quint16", 2], 17: ["uint16", 2], 18: ["complex128", 16], 19: ["float16", 2],
  21: ["variant", null], 22: ["uint32", 4], 23: ["uint64", 8], 24: ["float8_e5m2", 1],
  25: ["float8_e4m3fn", 1], 26: ["float8_e4m3fnuz", 1], 27: ["float8_e4m3b11fnuz", 1],
  28: ["float8_e5m2fnuz", 1], 29: ["int4", 1], 30: ["uint4", 1], 31: ["int2", 1],
  32: ["uint2", 1], 33: ["float4_e2m1fn", 1],
};
const MAX_RANK = 254;
const VERSION = 1;
// All keys together may take so many bytes per byte of the index (SM-BLOCK-5), and this many more.
const KEY_BYTES_PER_BYTE = 64;
const KEY_BYTES_FREE = 1 << 16;
const MAGIC = 0xdb4775248b80fb57n;

class Refused extends Error {}

function check(condition, id, reason) {
  if (!condition) throw new Refused(`${reason} (${id})`);
}

// Returns the content of a regular file.
function contentOf(file, id) {
  const status = statSync(file, { throwIfNoEntry: false });
  check(status !== undefined, id, `${file} does not exist`);
  check(status.isFile(), "SM-DIR-6", `${file} is not a regular file`);
  return readFileSync(file);
}

// Checksums

const CRC_TABLE = Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc >>> 0;
});

function crc32c(...parts) {
  let crc = 0xffffffff;
  for (const part of parts) {
    for (const byte of part) crc = CRC_TABLE[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  }
  return ~crc >>> 0;
}

function masked(crc) {
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

// Varints and protocol messages

function varint(data, at, end = data.length) {
  let value = 0n;
  for (let shift = 0n; shift < 70n; shift += 7n) {
    check(at < end, "SM-BLOCK-1", "a varint is cut off");
    const byte = data[at++];
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return [value, at];
  }
  throw new Refused("a varint of more than ten bytes (SM-BLOCK-1)");
}

function length(data, at, end) {
  const [value, next] = varint(data, at, end);
  return [Number(value), next];
}

// Returns the numbers of a repeated field of varints, packed or not.
function numbersOf(fields, number) {
  return all(fields, number).flatMap((value) => {
    if (typeof value === "bigint") return [Number(value)];
    const found = [];
    for (let at = 0; at < value.length; ) {
      let one;
      [one, at] = length(value, at, value.length);
      found.push(one);
    }
    return found;
  });
}

// Returns the values of each field by number: BigInt for varints, Buffer for the others.
function message(data) {
  const fields = new Map();
  for (let at = 0; at < data.length; ) {
    let tag, value, size;
    [tag, at] = length(data, at, data.length);
    const wire = tag & 7;
    if (wire === 0) {
      [value, at] = varint(data, at);
    } else {
      if (wire === 2) [size, at] = length(data, at, data.length);
      else size = wire === 1 ? 8 : wire === 5 ? 4 : NaN;
      check(at + size <= data.length, "SM-CONF-1", "a message is cut off");
      value = data.subarray(at, at + size);
      at += size;
    }
    fields.set(tag >>> 3, [...(fields.get(tag >>> 3) ?? []), value]);
  }
  return fields;
}

const all = (fields, number) => fields.get(number) ?? [];
const last = (fields, number, absent) => all(fields, number).at(-1) ?? absent;
const integer = (fields, number) => Number(BigInt.asIntN(64, last(fields, number, 0n)));

// The table

function block(data, handle, end) {
  const [offset, size] = handle;
  check(offset + size + 5 <= end, "SM-TABLE-2", "a block does not end before the footer");
  const stored = data.readUInt32LE(offset + size + 1);
  const crc = masked(crc32c(data.subarray(offset, offset + size + 1)));
  check(crc === stored, "SM-TABLE-6", `the checksum of the block at ${offset} differs`);
  check(data[offset + size] !== 1, "SM-TABLE-8", "the block is compressed with Snappy");
  check(data[offset + size] === 0, "SM-TABLE-7", "an unknown compression");
  return data.subarray(offset, offset + size);
}

function* entries(content) {
  check(content.length >= 8, "SM-BLOCK-2", "a block without a restart");
  const count = content.readUInt32LE(content.length - 4);
  const end = content.length - 4 - 4 * count;
  check(count > 0 && end >= 0, "SM-BLOCK-2", "a block without a restart");
  const restarts = Array.from({ length: count }, (_, i) => content.readUInt32LE(end + 4 * i));
  check(restarts[0] === 0, "SM-BLOCK-2", "the first restart is not 0");
  let next = 0;
  let key = Buffer.alloc(0);
  for (let at = 0; at < end; ) {
    const start = at;
    let shared, unshared, size;
    [shared, at] = length(content, at, end);
    [unshared, at] = length(content, at, end);
    [size, at] = length(content, at, end);
    const fits = shared <= key.length && at + unshared + size <= end;
    check(fits, "SM-BLOCK-1", "the lengths of an entry do not fit");
    if (start === restarts[next]) {
      check(shared === 0, "SM-BLOCK-3", "a restart shares a prefix");
      next++;
    }
    key = Buffer.concat([key.subarray(0, shared), content.subarray(at, at + unshared)]);
    at += unshared;
    yield [key, content.subarray(at, at + size)];
    at += size;
  }
  check(next === count || end === 0, "SM-BLOCK-3", "a restart that is not an entry");
}

function handle(data, at = 0) {
  const [offset, middle] = length(data, at, data.length);
  const [size, end] = length(data, middle, data.length);
  return [[offset, size], end];
}

// Returns the values by key; a key is text in latin1, which keeps its bytes (SM-TABLE-4).
function table(data) {
  check(data.length >= 48, "SM-TABLE-1", "a file shorter than the footer");
  const end = data.length - 48;
  check(data.readBigUInt64LE(end + 40) === MAGIC, "SM-TABLE-1", "no magic number");
  const footer = data.subarray(end, end + 40);
  const [metaindex, middle] = handle(footer);
  block(data, metaindex, end);
  const found = new Map();
  let budget = KEY_BYTES_FREE + KEY_BYTES_PER_BYTE * data.length;
  let previous = null;
  for (const [bound, value] of entries(block(data, handle(footer, middle)[0], end))) {
    for (const [key, content] of entries(block(data, handle(value)[0], end))) {
      const ascends = previous === null || Buffer.compare(previous, key) < 0;
      check(ascends, "SM-TABLE-3", `the key ${JSON.stringify(key.toString())} does not ascend`);
      budget -= key.length;
      check(budget >= 0, "SM-BLOCK-5", "the keys take too many bytes for the size of the index");
      found.set(key.toString("latin1"), content);
      previous = key;
    }
    const within = previous === null || Buffer.compare(previous, bound) <= 0;
    check(within, "SM-BLOCK-4", "a key is above that of the index block");
  }
  return found;
}

// Entries and slices

function shapeOf(data) {
  const fields = message(data);
  check(integer(fields, 3) === 0, "SM-BUNDLE-8", "the rank is unknown");
  const shape = all(fields, 2).map((dim) => integer(message(dim), 1));
  check(shape.length <= MAX_RANK, "SM-BUNDLE-8", `${shape.length} dimensions`);
  check(shape.every((size) => size >= 0), "SM-BUNDLE-8", "a negative size");
  return shape;
}

function extentOf(data) {
  const fields = message(data);
  return [integer(fields, 1), fields.has(2) ? integer(fields, 2) : -1];
}

function entryOf(data) {
  const fields = message(data);
  const number = integer(fields, 1);
  check(number in DTYPES, "SM-BUNDLE-9", `the dtype ${number}`);
  return {
    dtype: number,
    shape: shapeOf(last(fields, 2, Buffer.alloc(0))),
    shard: integer(fields, 3),
    offset: integer(fields, 4),
    size: integer(fields, 5),
    crc: fields.has(6) ? last(fields, 6).readUInt32LE(0) : 0,
    slices: all(fields, 7).map((slice) => all(message(slice), 1).map(extentOf)),
  };
}

function orderedSigned(value) {
  let size = 1;
  const fits = (n) => -(2n ** BigInt(7 * n - 1)) <= value && value < 2n ** BigInt(7 * n - 1);
  while (!fits(size)) size++;
  const header = ((1n << BigInt(size)) - 1n) << BigInt(7 * size);
  const coded = BigInt.asUintN(8 * size, value) ^ header;
  return Buffer.from(coded.toString(16).padStart(2 * size, "0"), "hex");
}

function sliceKey(name, slice) {
  const escaped = name.replace(/[\0\xff]/g, (byte) => (byte === "\0" ? "\0\xff" : "\xff\0"));
  const rank = slice.length ? `\x01${String.fromCharCode(slice.length)}` : "\0";
  const numbers = slice.flat().map((value) => orderedSigned(BigInt(value)).toString("latin1"));
  return `\0${escaped}\0\x01${rank}${numbers.join("")}`;
}

const product = (sizes) => sizes.reduce((left, right) => left * right, 1);

class Bundle {
  constructor(prefix) {
    this.prefix = prefix;
    const index = `${prefix}.index`;
    check(existsSync(index) || !existsSync(prefix), "SM-BUNDLE-22", "a checkpoint in format V1");
    this.values = table(contentOf(index, "SM-CONF-1"));
    check(this.values.has(""), "SM-BUNDLE-1", "no header");
    const header = message(this.values.get(""));
    this.values.delete("");
    this.shardCount = integer(header, 1);
    check(this.shardCount >= 1, "SM-BUNDLE-1", `${this.shardCount} shards`);
    check(integer(header, 2) === 0, "SM-BUNDLE-3", "numbers are stored big endian");
    const version = message(last(header, 3, Buffer.alloc(0)));
    check(integer(version, 2) <= VERSION, "SM-BUNDLE-2", "the bundle asks for a newer reader");
    const excluded = numbersOf(version, 3).includes(VERSION);
    check(!excluded, "SM-BUNDLE-2", `the bundle excludes readers of version ${VERSION}`);
    this.shards = new Map();
  }

  bytes(entry) {
    const inRange = entry.shard >= 0 && entry.shard < this.shardCount;
    check(inRange, "SM-BUNDLE-5", `shard ${entry.shard} of ${this.shardCount}`);
    if (!this.shards.has(entry.shard)) {
      const five = (number) => String(number).padStart(5, "0");
      const name = `${this.prefix}.data-${five(entry.shard)}-of-${five(this.shardCount)}`;
      this.shards.set(entry.shard, contentOf(name, "SM-BUNDLE-5"));
    }
    const data = this.shards.get(entry.shard);
    const within = entry.offset >= 0 && entry.size >= 0 && entry.offset + entry.size <= data.length;
    check(within, "SM-BUNDLE-5", "the bytes are not within the shard");
    return data.subarray(entry.offset, entry.offset + entry.size);
  }

  numbers(entry) {
    const size = product(entry.shape) * DTYPES[entry.dtype][1];
    check(size === entry.size, "SM-BUNDLE-6", `${entry.size} bytes for ${size}`);
    const data = this.bytes(entry);
    check(masked(crc32c(data)) === entry.crc, "SM-BUNDLE-7", "the checksum differs");
    return data;
  }

  strings(entry) {
    const data = this.bytes(entry);
    const lengths = [];
    let at = 0;
    for (let left = product(entry.shape); left > 0; left--) {
      let size;
      [size, at] = length(data, at, data.length);
      lengths.push(size);
    }
    const fixed = Buffer.concat(lengths.map((size) => integerBytes(size, size >= 2 ** 32)));
    const stored = data.subarray(at, at + 4);
    at += 4;
    const total = lengths.reduce((left, right) => left + right, 0);
    check(at + total === data.length, "SM-BUNDLE-13", "the lengths do not add up");
    const crc = masked(crc32c(fixed));
    check(crc === stored.readUInt32LE(0), "SM-BUNDLE-12", "the checksum of the lengths differs");
    const whole = masked(crc32c(fixed, stored, data.subarray(at)));
    check(whole === entry.crc, "SM-BUNDLE-7", "the checksum differs");
    return lengths.map((size) => data.subarray(at, (at += size)));
  }

  variants(entry) {
    const data = this.bytes(entry);
    const found = [];
    const summed = [];
    let at = 0;
    for (let left = product(entry.shape); left > 0; left--) {
      let size;
      [size, at] = length(data, at, data.length);
      check(at + size + 4 <= data.length, "SM-BUNDLE-15", "a variant is cut off");
      found.push(data.subarray(at, at + size));
      const stored = data.subarray(at + size, at + size + 4);
      summed.push(integerBytes(size, true), found.at(-1));
      const crc = masked(crc32c(...summed));
      check(crc === stored.readUInt32LE(0), "SM-BUNDLE-15", "the checksum of a variant differs");
      summed.push(stored);
      at += size + 4;
    }
    check(at === data.length, "SM-BUNDLE-15", "bytes follow the last variant");
    check(masked(crc32c(...summed)) === entry.crc, "SM-BUNDLE-7", "the checksum differs");
    return found;
  }

  // The elements of a string or variant tensor, or the bytes of all numbers as one part.
  whole(entry) {
    const [dtype, size] = DTYPES[entry.dtype];
    if (size !== null) return this.numbers(entry);
    const elements = dtype === "string" ? this.strings(entry) : this.variants(entry);
    return Buffer.concat(elements.flatMap((item) => [integerBytes(item.length, true), item]));
  }

  part(name, entry, slice) {
    const value = this.values.get(sliceKey(name, slice));
    check(value !== undefined, "SM-BUNDLE-19", "a slice without an entry");
    const part = entryOf(value);
    check(slice.length === entry.shape.length, "SM-BUNDLE-18", "a slice of another rank");
    const box = slice.map(([start, size], axis) => {
      if (start === 0 && size === -1) return [0, entry.shape[axis]];
      const within = start >= 0 && size > 0 && start <= entry.shape[axis] - size;
      check(within, "SM-BUNDLE-18", "an extent outside its dimension");
      return [start, size];
    });
    const same = part.dtype === entry.dtype && part.slices.length === 0 &&
      String(part.shape) === String(box.map(([, size]) => size));
    check(same, "SM-BUNDLE-19", "a slice of another dtype or shape");
    return [part, box];
  }

  partitioned(name, entry) {
    const size = DTYPES[entry.dtype][1];
    check(size !== null, "SM-CONF-1", "slices of strings");
    const parts = entry.slices.map((slice) => this.part(name, entry, slice));
    const stored = parts.reduce((sum, [part]) => sum + product(part.shape), 0);
    check(stored === product(entry.shape), "SM-BUNDLE-17", "slices overlap or leave a gap");
    const out = Buffer.alloc(stored * size);
    const filled = new Uint8Array(stored);
    for (const [part, box] of parts) {
      const data = this.numbers(part);
      positions(box, entry.shape).forEach((position, number) => {
        check(!filled[position], "SM-BUNDLE-17", "slices overlap");
        filled[position] = 1;
        data.copy(out, position * size, number * size, (number + 1) * size);
      });
    }
    return out;
  }

  *tensors() {
    const parsed = [...this.values].map(([name, value]) => [name, entryOf(value)]);
    const slices = new Set(
      parsed.flatMap(([name, entry]) => entry.slices.map((slice) => sliceKey(name, slice))),
    );
    for (const [name, entry] of parsed) {
      if (slices.has(name)) continue; // SM-BUNDLE-20
      const content = entry.slices.length ? this.partitioned(name, entry) : this.whole(entry);
      yield {
        key: Buffer.from(name, "latin1").toString("utf8"),
        dtype: DTYPES[entry.dtype][0],
        shape: entry.shape,
        bytes: content.length,
        sha256: createHash("sha256").update(content).digest("hex"),
      };
    }
  }
}

function integerBytes(value, wide) {
  const out = Buffer.alloc(wide ? 8 : 4);
  if (wide) out.writeBigUInt64LE(BigInt(value));
  else out.writeUInt32LE(value);
  return out;
}

// The positions of the elements of a box in the row-major order of the whole tensor.
function positions(box, shape) {
  return box.reduce(
    (found, [start, size], axis) =>
      found.flatMap((base) =>
        Array.from({ length: size }, (_, i) => base * shape[axis] + start + i)),
    [0],
  );
}

export function* readTensors(prefix) {
  yield* new Bundle(prefix).tensors();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    for (const tensor of readTensors(process.argv[2])) console.log(JSON.stringify(tensor));
  } catch (error) {
    console.error(`${process.argv[2]}: ${error.message}`);
    process.exitCode = 1;
  }
}
