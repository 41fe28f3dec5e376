"""FusedBatchNorm, V2, V3: normalises channels by given or by their own statistics.

Dtypes: floats.
Accuracy: 4 ulp of the largest term for inference.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.executor import Call
from reference_eval.registry import op
from reference_eval.windows import channels_as, channels_last


@op("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(
    x: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float = 0.0001,
    exponential_avg_factor: float = 1.0,
    data_format: bytes = b"NHWC",
    is_training: bool = True,
    call: Call,
) -> list[Array]:
    values = channels_last(x, data_format).astype(scale.dtype)
    axes = tuple(range(values.ndim - 1))
    new_mean, new_variance = mean, variance
    if is_training:
        count = values.size // values.shape[-1]
        mean = batch_mean = values.mean(axis=axes, dtype=scale.dtype)
        variance = ((values - mean) ** 2).mean(axis=axes, dtype=scale.dtype)
        unbiased = variance * np.asarray(count / (count - 1 or 1), scale.dtype)
        new_mean, new_variance = batch_mean, unbiased
        if exponential_avg_factor != 1.0:
            raise ValueError("exponential_avg_factor is evaluated for 1.0 alone")
    root = np.sqrt(variance + np.asarray(epsilon, scale.dtype))
    normal = (values - mean) * (scale / root) + offset
    out = channels_as(np.asarray(normal, x.dtype), data_format)
    rest = [mean, variance, np.zeros(0, scale.dtype)][: len(call.output_dtypes) - 3]
    return [out, new_mean, new_variance, *rest]
