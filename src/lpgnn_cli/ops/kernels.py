"""The one place that decides which kernel a segment operation runs on.

Two backends give the same numbers: `torch_scatter` where it is installed, and `native` torch.
`LPGNN_SEGMENT=native|torch_scatter` forces one of them for every operation.

Left to itself, an installed torch_scatter does every maximum, and the sums on accelerators. Sums
on the CPU go to torch's `embedding_bag` all the same. Milliseconds on one CPU thread for a sum of
190,000 rows of 50 floats into 20,000 segments, rows in order | rows taken through an index:

    embedding_bag              2.1 | 4.5      (4.5 includes the gather: no copy of the rows)
    sparse CSR matrix product  2.7 | 8.5
    index_add_                 6.2 | 11.0     (not deterministic on CUDA)
    scatter_reduce_            5.7 | -
    torch_scatter segment_csr  7.9 | 15.2     (gathers first)
    torch.segment_reduce      17.3 | 24.4     (gathers first)

Differences of cumulative sums are not in the list: they lose digits as the rows grow many.

Shapes: A rows, G segments, H columns; segment g holds the rows `ptr[g]:ptr[g + 1]`.
"""

from __future__ import annotations

import importlib
import os
import warnings
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

from lpgnn_cli.errors import UserError

ENVIRONMENT_VARIABLE = "LPGNN_SEGMENT"


def backend() -> tuple[str, str]:
    """The name of the backend in use, and why it is the one."""
    forced = _forced()
    if forced is not None:
        return forced, f"{ENVIRONMENT_VARIABLE} is set"
    if _torch_scatter() is None:
        return "native", "torch_scatter is not installed or does not load"
    return "torch_scatter", "torch_scatter is installed; sums on the CPU are faster in native torch"


def sum_rows(values_AH: Tensor, index: Tensor | None, ptr: Tensor) -> Tensor:
    """Sum within segments of `values[index]`, or of the values themselves without an index."""
    if values_AH.is_cpu and _forced() != "torch_scatter":
        return _native_sum(values_AH, index, ptr)
    scatter = _torch_scatter()
    if scatter is None or values_AH.is_meta:
        return _native_sum(values_AH, index, ptr)
    rows = values_AH if index is None else values_AH.index_select(0, index)
    result: Tensor = scatter.segment_csr(rows, ptr, reduce="sum")
    return result


def first_maximum(values_AH: Tensor, segment_of_row: Tensor, ptr: Tensor) -> Tensor:
    """(G, H) the first row that holds the maximum of its segment; A where the segment is empty."""
    scatter = _torch_scatter()
    if scatter is not None and not values_AH.is_meta and values_AH.numel() > 0:
        _, argmax = scatter.segment_max_csr(values_AH.contiguous(), ptr)
        result: Tensor = argmax
        return result
    return _native_first_maximum(values_AH, segment_of_row, ptr)


def _native_sum(values_AH: Tensor, index: Tensor | None, ptr: Tensor) -> Tensor:
    if values_AH.numel() == 0 or values_AH.is_meta:
        return values_AH.new_zeros(ptr.numel() - 1, values_AH.shape[1])
    if index is None:
        index = torch.arange(values_AH.shape[0], device=values_AH.device)
    # Detached, because embedding_bag keeps books for its own backward pass otherwise.
    result = torch.embedding_bag(
        values_AH.detach().contiguous(), index, ptr, mode=0, include_last_offset=True
    )[0]
    return result


def _native_first_maximum(values_AH: Tensor, segment_of_row: Tensor, ptr: Tensor) -> Tensor:
    rows, columns = values_AH.shape
    segment_AH = segment_of_row.unsqueeze(1).expand(rows, columns)
    highest_GH = values_AH.new_zeros(ptr.numel() - 1, columns).scatter_reduce(
        0, segment_AH, values_AH, "amax", include_self=False
    )
    row_AH = torch.arange(rows, device=values_AH.device).unsqueeze(1)
    is_highest_AH = values_AH == highest_GH.index_select(0, segment_of_row)
    candidate_AH = torch.where(is_highest_AH, row_AH, rows)
    first_GH = torch.full_like(highest_GH, rows, dtype=torch.int64)
    return first_GH.scatter_reduce(0, segment_AH, candidate_AH, "amin")


def _forced() -> str | None:
    name = os.environ.get(ENVIRONMENT_VARIABLE)
    if name is None or name == "":
        return None
    if name not in ("native", "torch_scatter"):
        raise UserError(
            f"{ENVIRONMENT_VARIABLE}={name} names no segment backend: "
            "set it to native or torch_scatter, or unset it."
        )
    return name


def _torch_scatter() -> ModuleType | None:
    if _forced() == "native":
        return None
    module = _load_torch_scatter()
    if module is None and _forced() == "torch_scatter":
        raise UserError(
            f"{ENVIRONMENT_VARIABLE}=torch_scatter, but torch_scatter does not load here: "
            "install it, or unset the variable to use native torch."
        )
    return module


@cache
def _load_torch_scatter() -> ModuleType | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module("torch_scatter")
    except (ImportError, OSError, RuntimeError):
        # A wheel built for another torch fails with OSError or RuntimeError when its library loads.
        return None
