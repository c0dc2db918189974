"""Sum, mean, max and softmax of rows within the segments of a CSR pointer.

Shapes: A rows, G segments, H columns; segment g holds the rows `ptr[g]:ptr[g + 1]`. An empty
segment has sum, mean and maximum 0. `segment_of_row` (A,) is derived from `ptr` where it is not
given: hand it over where it is at hand, it costs a pass over the rows.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lpgnn_cli.ops import kernels
from lpgnn_cli.ops.linear import linear


def segment_sum(values_AH: Tensor, ptr: Tensor, segment_of_row: Tensor | None = None) -> Tensor:
    rows = values_AH.shape[0]

    def spread(gradient_GH: Tensor) -> Tensor:
        return gradient_GH.index_select(0, _segments(ptr, rows, segment_of_row))

    return linear(values_AH, lambda values: kernels.sum_rows(values, None, ptr), spread)


def segment_mean(values_AH: Tensor, ptr: Tensor, segment_of_row: Tensor | None = None) -> Tensor:
    count_G1 = ptr.diff().clamp(min=1).unsqueeze(1)
    return segment_sum(values_AH, ptr, segment_of_row) / count_G1


def segment_max(values_AH: Tensor, ptr: Tensor, segment_of_row: Tensor | None = None) -> Tensor:
    """The gradient goes to the first of several equal maxima."""
    rows = values_AH.shape[0]
    if rows == 0:
        return segment_sum(values_AH, ptr)
    segment_of_row = _segments(ptr, rows, segment_of_row)
    first_GH = kernels.first_maximum(values_AH.detach(), segment_of_row, ptr)
    highest_GH = values_AH.gather(0, first_GH.clamp(max=rows - 1))
    return highest_GH.masked_fill(first_GH == rows, 0.0)


def spread_segments(values_GH: Tensor, ptr: Tensor, segment_of_row: Tensor) -> Tensor:
    """(A, H): every row gets the value of its segment; the adjoint of `segment_sum`."""
    return linear(
        values_GH,
        lambda values: values.index_select(0, segment_of_row),
        lambda gradient: kernels.sum_rows(gradient, None, ptr),
    )


def _segments(ptr: Tensor, rows: int, segment_of_row: Tensor | None) -> Tensor:
    if segment_of_row is not None:
        return segment_of_row
    return torch.repeat_interleave(ptr.diff(), output_size=rows)
