/* A consumer in C, with nothing but the C library: cc -O1 -o toy_consumer toy_consumer.c
 *
 *     savedmodel-compat plugin-check ./toy_consumer
 *
 * It shows the whole protocol and knows one model, half_plus_two: y = a * x + b, where a and b are the eight bytes of the
 * checkpoint's only shard. Every other model it refuses, which is what `rejected` is for. The capability `stored` asks
 * the harness for tensor files without compression. */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODELS = 64, TEXT = 4096, FILE_LIMIT = 1 << 28 };
static struct { int open; float a, b; } models[MODELS];
static FILE *replies;
static long id;

/* JSON: where the value of a member of the object at p is, or NULL. */
static const char *skip(const char *p) {
  int depth = 0;
  do {
    if (*p == '"') { while (*++p && *p != '"') if (*p == '\\' && p[1]) p++; }
    else if (*p == '{' || *p == '[') depth++;
    else if (*p == '}' || *p == ']') depth--;
    if (*p) p++;
  } while (*p && (depth > 0 || !strchr(",:]}", *p)));
  return p;
}
static const char *member(const char *p, const char *name) {
  size_t size = strlen(name);
  if (!p || *p != '{') return NULL;
  for (p++; *p && *p != '}';) {
    while (*p == ' ' || *p == ',') p++;
    int same = *p == '"' && !strncmp(p + 1, name, size) && p[size + 1] == '"';
    p = skip(p);
    while (*p == ' ' || *p == ':') p++;
    if (same) return p;
    p = skip(p);
  }
  return NULL;
}
static int text(const char *p, char *out) { /* a string value; 0 when it is none, or has \u in it */
  if (!p || *p++ != '"') return 0;
  for (int n = 0; *p && n < TEXT - 1; p++) {
    if (*p == '"') { out[n] = 0; return 1; }
    if (*p == '\\' && *++p == 'u') return 0;
    out[n++] = *p;
  }
  return 0;
}
static void reply(const char *status, const char *more) {
  fprintf(replies, "{\"id\": %ld, \"status\": \"%s\"%s%s}\n", id, status, *more ? ", " : "", more);
  fflush(replies);
}
static void refuse(const char *status, const char *why) {
  char more[TEXT];
  snprintf(more, sizeof more, "\"error_class\": \"Toy\", \"message\": \"%s\"", why);
  reply(status, more);
}

/* Files */
static unsigned char *slurp(const char *folder, const char *name, size_t *size) {
  char path[2 * TEXT + 2];
  snprintf(path, sizeof path, "%s%s%s", folder, *name ? "/" : "", name);
  FILE *file = fopen(path, "rb");
  unsigned char *data = NULL;
  long end = -1;
  if (file && !fseek(file, 0, SEEK_END) && (end = ftell(file)) >= 0 && end < FILE_LIMIT && (data = malloc((size_t)end + 1))) {
    rewind(file);
    *size = fread(data, 1, (size_t)end, file);
    data[*size] = 0;
  }
  if (file) fclose(file);
  return data;
}
static uint32_t u32(const unsigned char *p) { return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24; }
static uint32_t u16(const unsigned char *p) { return p[0] | p[1] << 8; }
/* The data of an array in a zip of stored members: behind its local header and the header of the .npy. */
static const unsigned char *array(const unsigned char *zip, size_t size, const char *name, size_t *bytes) {
  for (size_t at = 0; at + 30 <= size && !memcmp(zip + at, "PK\3\4", 4);) {
    size_t names = u16(zip + at + 26), start = at + 30 + names + u16(zip + at + 28), length = u32(zip + at + 18);
    if (start > size || length > size - start || u16(zip + at + 8) != 0) return NULL;
    if (names == strlen(name) && !memcmp(zip + at + 30, name, names) && length >= 10) {
      size_t head = 10 + u16(zip + start + 8);
      *bytes = length - head;
      return head > length ? NULL : zip + start + head;
    }
    at = start + length;
  }
  return NULL;
}
static uint32_t crc32(const unsigned char *p, size_t size) {
  uint32_t crc = ~0u;
  while (size--) {
    crc ^= *p++;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0xEDB88320u & -(crc & 1));
  }
  return ~crc;
}
static void put(unsigned char **p, uint32_t value, int bytes) { for (; bytes--; value >>= 8) *(*p)++ = (unsigned char)value; }
/* One .npy as a stored member of a zip; its entry of the central directory goes to `central`. */
static void npy(FILE *file, const char *name, const char *type, const char *shape, const void *data, size_t size,
                unsigned char **central) {
  size_t names = strlen(name), all = 128 + size;
  unsigned char *content = malloc(all), header[30], *p = header;
  uint32_t start = (uint32_t)ftell(file);
  char words[118];
  snprintf(words, sizeof words, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
  memcpy(content, "\x93NUMPY\x01\x00\x76\x00", 10); /* version 1.0, 118 bytes of header */
  memset(content + 10, ' ', 117);
  memcpy(content + 10, words, strlen(words));
  content[127] = '\n';
  if (size) memcpy(content + 128, data, size);
  for (int side = 0; side < 2; side++) { /* the local header, then the same in the directory */
    if (side) p = *central;
    put(&p, side ? 0x02014b50 : 0x04034b50, 4);
    put(&p, 20, 2);
    if (side) put(&p, 20, 2);
    put(&p, 0, 4); put(&p, 0, 2); put(&p, 0x21, 2); /* flags, stored; 1980-01-01 */
    put(&p, crc32(content, all), 4); put(&p, (uint32_t)all, 4); put(&p, (uint32_t)all, 4);
    put(&p, (uint32_t)names, 2); put(&p, 0, 2);
    if (side) { put(&p, 0, 4); put(&p, 0, 2); put(&p, 0, 4); put(&p, start, 4); memcpy(p, name, names); p += names; }
  }
  *central = p;
  fwrite(header, 1, 30, file); fwrite(name, 1, names, file); fwrite(content, 1, all, file);
  free(content);
}

/* The operations */
static void load(const char *request) {
  char folder[TEXT];
  size_t graph_size = 0, size = 0;
  int handle = 0;
  unsigned char *graph = NULL, *data = NULL;
  while (handle < MODELS && models[handle].open) handle++;
  if (!text(member(request, "dir"), folder) || handle == MODELS) { refuse("error", "no dir, or too many models"); return; }
  graph = slurp(folder, "saved_model.pb", &graph_size);
  data = slurp(folder, "variables/variables.data-00000-of-00001", &size);
  if (!graph) refuse("error", "no saved_model.pb that can be read");
  else if (!data || size != 8) /* a real reader parses the graph */
    refuse("rejected", "this toy knows half_plus_two alone");
  else {
    char more[64];
    memcpy(&models[handle].a, data, 4); memcpy(&models[handle].b, data + 4, 4); /* in the order of their keys */
    models[handle].open = 1;
    snprintf(more, sizeof more, "\"handle\": %d", handle);
    reply("ok", more);
  }
  free(graph); free(data);
}
static void call(const char *line, int handle) {
  char io[TEXT], name[TEXT], outputs[TEXT], key[TEXT], kind[TEXT], shape[TEXT], tuple[TEXT], meta[2 * TEXT];
  const char *request = member(line, "request");
  if (!text(member(request, "kind"), kind) || strcmp(kind, "signature")) { refuse("unsupported", "no functions"); return; }
  if (!text(member(request, "signature"), key) || !text(member(request, "inputs"), name) || !text(member(line, "io_dir"), io)
      || !text(member(line, "outputs"), outputs)) { refuse("error", "a member is missing"); return; }
  if (strcmp(key, "serving_default")) { refuse("error", "no such signature, or one this toy does not answer"); return; }
  size_t size = 0, bytes = 0, words = 0;
  unsigned char *zip = slurp(io, name, &size);
  const unsigned char *about = zip ? array(zip, size, "meta.npy", &words) : NULL;
  const unsigned char *x = zip ? array(zip, size, "t0.npy", &bytes) : NULL;
  snprintf(meta, sizeof meta, "%.*s", (int)(words < TEXT ? words : TEXT), about ? (const char *)about : "");
  const char *first = meta[0] == '[' ? meta + 1 : NULL; /* [{"name": ..., "dtype": ..., "shape": [...]}] */
  if (!first || !x || skip(first)[0] != ']' || !text(member(first, "name"), name) || strcmp(name, "x")
      || !text(member(first, "dtype"), kind) || strcmp(kind, "float32")) {
    refuse("error", "the input is x, of float32");
    free(zip);
    return;
  }
  const char *dims = member(first, "shape"), *end = skip(dims);
  snprintf(shape, sizeof shape, "%.*s", (int)(end - dims), dims);
  int inner = (int)(end - dims) - 2; /* without the brackets; a tuple of one has a comma */
  snprintf(tuple, sizeof tuple, "(%.*s%s)", inner, dims + 1, inner && !strchr(shape, ',') ? "," : "");
  float *y = malloc(bytes + 1);
  for (size_t i = 0; i < bytes / 4; i++) {
    float value;
    memcpy(&value, x + 4 * i, 4);
    y[i] = models[handle].a * value + models[handle].b;
  }
  unsigned char central[512], *p = central, ends[22], *e = ends;
  char length[32];
  FILE *file = fopen(outputs, "wb");
  if (!file) { refuse("error", "outputs cannot be written"); free(zip); free(y); return; }
  snprintf(meta, sizeof meta, "[{\"name\": \"y\", \"dtype\": \"float32\", \"shape\": %s}]", shape);
  snprintf(length, sizeof length, "(%zu,)", strlen(meta));
  npy(file, "meta.npy", "|u1", length, meta, strlen(meta), &p);
  npy(file, "t0.npy", "<f4", tuple, y, bytes, &p);
  put(&e, 0x06054b50, 4); put(&e, 0, 4); put(&e, 2, 2); put(&e, 2, 2);
  put(&e, (uint32_t)(p - central), 4); put(&e, (uint32_t)ftell(file), 4); put(&e, 0, 2);
  fwrite(central, 1, (size_t)(p - central), file); fwrite(ends, 1, 22, file);
  free(zip); free(y);
  if (fclose(file)) refuse("error", "outputs cannot be written");
  else reply("ok", "");
}
static void answer(const char *line) {
  char op[TEXT] = "";
  const char *number = member(line, "handle"), *protocol = member(line, "protocol");
  long handle = number ? atol(number) : -1;
  text(member(line, "op"), op);
  if (!strcmp(op, "hello")) {
    if (!protocol || atol(protocol) != 1) refuse("unsupported", "this worker speaks protocol 1");
    else reply("ok", "\"name\": \"toy\", \"protocol\": 1, \"versions\": {\"toy\": \"1.0\"}, \"libraries\": [], "
                     "\"capabilities\": [\"stored\"], \"dtypes\": [\"float32\"]");
  } else if (!strcmp(op, "load")) load(line);
  else if (strcmp(op, "signatures") && strcmp(op, "call") && strcmp(op, "close")) refuse("unsupported", "no such operation");
  else if (handle < 0 || handle >= MODELS || !models[handle].open) refuse("error", "no model has this handle");
  else if (!strcmp(op, "signatures"))
    reply("ok", "\"signatures\": {\"serving_default\": {\"inputs\": {\"x\": {\"dtype\": \"float32\"}}, \"outputs\": {\"y\": "
                "{\"dtype\": \"float32\"}}}, \"classify_x_to_y\": {}, \"regress_x_to_y\": {}}");
  else if (!strcmp(op, "close")) { models[handle].open = 0; reply("ok", ""); }
  else call(line, (int)handle);
}

int main(void) {
  int in, out;
  const char *channel = getenv("SAVEDMODEL_COMPAT_FD");
  char *line = NULL;
  size_t room = 0;
  if (!channel || sscanf(channel, "%d,%d", &in, &out) != 2) return 64;
  FILE *requests = fdopen(in, "r");
  replies = fdopen(out, "w");
  while (requests && replies && getline(&line, &room, requests) > 0) { /* the end of the channel ends the process */
    const char *number = member(line, "id");
    char op[TEXT];
    id = number ? atol(number) : 0;
    if (text(member(line, "op"), op) && !strcmp(op, "bye")) { reply("ok", ""); break; }
    answer(line);
  }
  return 0;
}
