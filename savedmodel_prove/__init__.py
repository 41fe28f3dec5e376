"""``prove``: show that a converted model answers as the SavedModel it was made from.

records       the answers of all sides to one question, and the spread of the original
questions     the inputs: requests, warm-up requests, contracts, random ones and edges
sides         who answers: TensorFlow, the evaluator, the runtime of the converted file
workers       the programs that run a converted file, each in the Python of its runtime
noise         how far the original itself moves
verdicts      one of four verdicts for each output, and who is alone
nodes         the nodes whose values differ between the evaluator and another program
prefixes      the prefix that the names of nodes have where functions were inlined
bisection     the same in TensorFlow, one value at a time, where ops are fused
proof         the walk: questions, answers, noise, verdicts, certificate
certificate   one JSON file: write, read as untrusted input, check without TensorFlow
page          the report page; `templates/` has its text
told          verdicts as lines of a terminal
commands      the options of ``savedmodel-compat prove``
"""
