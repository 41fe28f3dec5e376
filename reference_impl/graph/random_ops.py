"""Ops that draw random numbers, by the source of the numbers.

A seeded op draws the same numbers in each process only if its node has a seed. An op of a generator
takes its seed from a variable, which a checkpoint stores. The machine gives the seed of an unseeded
op. Stateless ops are none of these: their seed is an input.
"""

from __future__ import annotations

_SEEDED = """AllCandidateSampler FixedUnigramCandidateSampler
FractionalAvgPool FractionalMaxPool LearnedUnigramCandidateSampler LogUniformCandidateSampler
Multinomial ParameterizedTruncatedNormal RandomCrop RandomGamma RandomPoisson RandomPoissonV2
RandomShuffle RandomStandardNormal RandomUniform RandomUniformInt SampleDistortedBoundingBox
SampleDistortedBoundingBoxV2 SkipGramGenerateCandidates ThreadUnsafeUnigramCandidateSampler
TruncatedNormal UniformCandidateSampler"""
_OF_GENERATORS = """RngReadAndSkip StatefulRandomBinomial StatefulStandardNormal
StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniform StatefulUniformFullInt
StatefulUniformInt"""
# Without a seed, or with one of 0, each process draws other numbers.
SEEDED_OPS = frozenset(_SEEDED.split())
# The machine gives the seed.
UNSEEDED_OPS = frozenset(
    {"NonDeterministicInts", "AnonymousRandomSeedGenerator", "AnonymousSeedGenerator"}
)
# The seed is in a variable, which is saved: like a node with a seed.
GENERATOR_OPS = frozenset(_OF_GENERATORS.split())
