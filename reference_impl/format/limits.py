"""Every limit on reading a SavedModel, with its reason.

Readers look a value up when they need it, so a program that trusts its models may raise it:
`limits.SAVED_MODEL_BYTES = ...`. Data over a limit is refused with a LimitError that names the
limit.
"""

from __future__ import annotations

# Protocol buffers cannot hold more in one serialised message; no other reader could load a larger
# file either.
SAVED_MODEL_BYTES = 2**31 - 1

# Python parses less than two megabytes of text a second, and needs six times the text's size of
# memory.
TEXT_BYTES = 2**27

# fingerprint.pb holds seven numbers.
FINGERPRINT_BYTES = 2**16

# Nesting of messages. Every C++ reader stops at 100, so a deeper file is readable nowhere else.
MESSAGE_DEPTH = 100

# Messages inside one: an empty one is two bytes in a file and about a hundred in memory. The graph
# of a million nodes has some ten million; so have 100,000 small functions.
MESSAGES = 5 * 10**7

# More than this many need at least MESSAGE_BYTES of the file each, so that a small file cannot take
# gigabytes of memory. Real files have a message for every 8 to 30 bytes. Files under twice as many
# bytes need no counting.
DENSE_MESSAGES = 10**7
MESSAGE_BYTES = 4

# Nesting of a StructuredValue: two messages per level, so this is what MESSAGE_DEPTH leaves; also
# keeps Python's stack safe.
STRUCTURE_DEPTH = 50

# Functions of one MetaGraph. The parser accepts a million functions in 13 MB, and then each costs
# every reader a microsecond and hundreds of bytes per step. The largest real libraries have about
# ten thousand; TensorFlow's loader makes hundreds a second.
FUNCTIONS = 250_000

# MetaGraphs of one file, and of all of them together the signatures, their inputs and outputs, and
# the assets. Each costs every reader a tenth of a millisecond to a millisecond, and a file of 83 MB
# can name three million assets. Real models have a few MetaGraphs, some hundred signatures at most,
# and assets that are files: of those no directory may have more (DIRECTORY_ENTRIES).
META_GRAPHS = 1000
SIGNATURES = 20_000
SIGNATURE_ARGUMENTS = 10**5
ASSETS = 10**5

# Elements of a list or tuple. Its children are named by their index, and a gap is None, so a few
# bytes can claim any length.
LIST_ELEMENTS = 10**6

# One recorded request for a model server to warm up with. It becomes a message several times as
# large; servers take 2 GB.
WARMUP_RECORD_BYTES = 2**25

# A TensorProto of a few bytes can have any shape, since its last element fills the rest. With only
# one listed element it takes no memory until it is used in a computation.
TENSOR_BYTES = 2**30

# The most dimensions that a TensorFlow tensor can have. That many sizes of 63 bits can be
# multiplied; a product that is too large is not printed, since Python refuses to print numbers of
# several thousand digits.
RANK = 254

# The most dimensions of a shape in an attribute of a node: one fewer. Ops that stack tensors of the
# shape (ExpandDims, Pack, TensorListStack) add a dimension, and a dimension beyond RANK ends the
# process.
NODE_RANK = RANK - 1

# Elements of a shape that a node states. The graph optimizer multiplies such shapes by others
# without looking for overflow.
SHAPE_ELEMENTS = 2**40

# Steps of a loop that may run at once. TensorFlow adds one in 32 bits and divides by the sum.
PARALLEL_ITERATIONS = 2**20

# Tensors that a node takes or gives under one name: TensorFlow makes lists of that length from a
# number of a few bytes.
TENSORS_OF_NODE = 2**20

# Elements of a list or array of tensors that a function makes in one step, 32 bytes and more each.
# A loop makes an element for each of its steps.
TENSOR_LIST_ELEMENTS = 2**24

# The same for a length that is computed: a list has as many elements as a loop has steps.
# TensorFlow allocates a gigabyte for it.
TENSOR_LIST_ELEMENTS_AT_RUN_TIME = 2**25

# Zeros that stand for a tensor of a branch that is not taken, and the largest of their sizes. The
# file notes the shape.
ZEROS = 2**26

# A tensor that loading makes, with Fill, Range or by putting others together, where its size
# follows from constants; also all that one initialiser makes. A model of a few hundred bytes can
# ask for any size.
LOAD_TENSOR_BYTES = 2**31

# If several elements are listed, the elements that fill the rest do take memory. TensorFlow writes
# such tensors when it compresses constants of a graph (a mask, a table that ends with equal rows);
# traced constants are stored whole. Also limits how much all captured constants together may grow
# when they are loaded.
FILLED_BYTES = 2**27

# Fields visited when a message is read field by field to say where it is broken: about fifteen
# seconds of Python. After that an error does not name a position. Also the most fields of one
# message over 64 MiB.
WIRE_FIELDS = 5 * 10**6

# saved_model.cpb: the format exists for messages over 2 GB, so the file and its unpacked content
# have a larger limit.
SPLIT_FILE_BYTES = 2**34
SPLIT_UNPACKED_BYTES = 2**34

# Chunks and fields of a split message. TensorFlow makes about one per large constant and one per
# large function.
SPLIT_CHUNKS = 10**6

# HighwayHash in Python hashes about five megabytes a second. Headers are always verified, data up
# to this total in a file.
SPLIT_CHECKSUM_BYTES = 2**24

# A path component may have 255 bytes on every common file system, a path 4096.
FILE_NAME_BYTES = 4096

# Files listed below one directory of a SavedModel.
DIRECTORY_ENTRIES = 10**5

# Expected entries of a table, for which TensorFlow allocates memory before it reads the file, and
# columns of the file.
TABLE_ENTRIES = 2**27
TABLE_COLUMNS = 2**15

# A block of a checkpoint's index is held in memory as a whole. TensorFlow closes them at 256 KiB.
TABLE_BLOCK_BYTES = 2**26

# Prefix compression allows unlimited expansion: entries of four bytes can repeat a key of a
# megabyte. All keys together may be this many times as long as the bytes that store them; real
# files reach 40.
TABLE_KEYS_RATIO = 64

# Comparisons made to see whether the slices of a partitioned tensor overlap: enough for 4096 slices
# in a square grid.
SLICE_COMPARISONS = 2**18

# Work of an analysis: after that many steps it gives up and says so. A step is a node or an edge.

# To follow what the restore op of a TF 1.x model assigns. Functions that call others twice each
# would take exponential time. Real restore ops have a few calls, one inside the other.
RESTORE_STEPS = 10**6
RESTORE_CALL_DEPTH = 64

# To find what each signature of a MetaGraph reaches: nodes times signatures.
SIGNATURE_REACH_STEPS = 2 * 10**7

# To find the effects of a model on the machine; beyond it, the time of an effect is unknown. The
# second number counts the different arguments for which one function is visited.
EFFECT_STEPS = 10**6
EFFECT_ARGUMENTS = 8

# To find where a path comes from, and the strings of one constant that are looked at.
PATH_STEPS = 64
PATH_TEXTS = 8

# To find what TensorFlow computes while it imports a graph; beyond it, every argument counts as
# needed.
FOLDING_STEPS = 2 * 10**6

# A tensor that TensorFlow computes while it infers shapes, in elements (2 GB of the largest dtype),
# and the outputs that a node promises. Both take memory before anything runs.
FOLDED_ELEMENTS = 2**27
FOLDED_OUTPUTS = 10**5

# Numbers of a tensor that are known one by one where sizes are computed. A shape has fewer.
KNOWN_NUMBERS = 1000

# To find how large the tensors of a load are: nodes, calls inside calls, rounds of one loop.
LOAD_SIZE_STEPS = 500_000
LOAD_SIZE_CALL_DEPTH = 60
LOAD_SIZE_ROUNDS = 1000

# Nodes that come out of functions when calls of a TF 1.x graph are inlined. If functions call
# others twice each, their number grows exponentially.
INLINED_NODES = 10**5

# Loops or conditions inside each other, and Switches in sequence (nested conditions without a
# frame). Each level is a function inside a function.
CONTROL_FLOW_DEPTH = 100
SWITCHES_IN_SEQUENCE = 1000

# The version in the head of a StableHLO program, and the names of its custom calls that are listed.
PROGRAM_VERSION_BYTES = 200
PROGRAM_NAMES = 200

# Values that a save visits to find arrays that traced code reads. Those that it has not reached by
# then are reported as lost.
TRACED_CODE_VALUES = 2**15

# Of the tools for models at rest. Names of the tensors of one Saver, which `slim` rewrites: the
# largest real ones have some ten thousand.
SAVER_NAMES = 10**6

# Steps that follow what functions return: Identity after Identity, call after call.
RETURN_STEPS = 10**6

# Nodes that are looked at to find what is assigned to variables, over all calls.
ASSIGNMENT_NODES = 5 * 10**6

# Integers of a constant that is looked at as a shape, as axes or as a permutation.
SHAPE_INTEGERS = 1024
