"""Loops over rows of numbers, compiled to machine code by LLVM.

A kernel is a Python function that writes its own loops once, through `Code`, on values that stand
for several numbers side by side (`Lanes`). Compiling one takes some hundredths of a second, so
nothing is kept on disk.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm
from llvmlite import ir

INTEGER = ir.IntType(64)
POINTER = ir.PointerType()
NUMBERS = {4: ir.FloatType(), 8: ir.DoubleType()}
# A product and a sum may become one instruction; nothing else is rearranged, and NaN stays NaN.
FLAGS = ("contract",)


@dataclass(frozen=True)
class Lanes:
    """Numbers side by side, with the operators of arithmetic."""

    code: Code
    value: ir.Value

    def __add__(self, other: Lanes | float) -> Lanes:
        return self._with("fadd", other)

    def __sub__(self, other: Lanes | float) -> Lanes:
        return self._with("fsub", other)

    def __mul__(self, other: Lanes | float) -> Lanes:
        return self._with("fmul", other)

    def __truediv__(self, other: Lanes | float) -> Lanes:
        return self._with("fdiv", other)

    def where(self, relation: str, bound: float, then: float, otherwise: Lanes | float) -> Lanes:
        """`then` in the lanes that stand in this relation to the bound; NaN stands in none."""
        builder, lanes = self.code.builder, self.code.lanes
        chosen = builder.fcmp_ordered(relation, self.value, lanes(bound).value)
        return Lanes(self.code, builder.select(chosen, lanes(then).value, lanes(otherwise).value))

    def _with(self, operation: str, other: Lanes | float) -> Lanes:
        operate = getattr(self.code.builder, operation)
        return Lanes(self.code, operate(self.value, self.code.lanes(other).value, flags=FLAGS))


class Code:
    """The body of a function that is being written."""

    def __init__(self, function: ir.Function, number_bytes: int, width: int) -> None:
        self.builder = ir.IRBuilder(function.append_basic_block())
        self.number_bytes = number_bytes
        self.width = width
        self.lane_type = ir.VectorType(NUMBERS[number_bytes], width)
        self.bits_type = ir.VectorType(ir.IntType(8 * number_bytes), width)

    @contextmanager
    def loop(self, start: ir.Value, stop: ir.Value, step: int = 1) -> Iterator[ir.Value]:
        """What is written inside is repeated for every integer from start to before stop."""
        counter = self._cell(start)
        test, body, end = (self.builder.append_basic_block() for _ in range(3))
        self.builder.branch(test)
        self.builder.position_at_end(test)
        now = self.builder.load(counter, typ=INTEGER)
        self.builder.cbranch(self.builder.icmp_signed("<", now, stop), body, end)
        self.builder.position_at_end(body)
        yield now
        self.builder.store(self.builder.add(now, integer(step)), counter)
        self.builder.branch(test)
        self.builder.position_at_end(end)

    def lanes(self, value: Lanes | float) -> Lanes:
        """The same number in every lane."""
        if isinstance(value, Lanes):
            return value
        return Lanes(self, ir.Constant(self.lane_type, [float(value)] * self.width))

    def spread(self, numbers: ir.Value, index: ir.Value) -> Lanes:
        """One number from memory in every lane."""
        number = self.builder.load(
            self._at(numbers, index, self.lane_type.element), typ=self.lane_type.element
        )
        return Lanes(self, self._spread(number, self.lane_type))

    def load(self, matrix: ir.Value, place: ir.Value) -> Lanes:
        address = self._at(matrix, place, self.lane_type.element)
        return Lanes(self, self.builder.load(address, typ=self.lane_type, align=self.number_bytes))

    def store(self, value: Lanes, matrix: ir.Value, place: ir.Value) -> None:
        address = self._at(matrix, place, self.lane_type.element)
        self.builder.store(value.value, address, align=self.number_bytes)

    def prefetch(self, matrix: ir.Value, place: ir.Value) -> None:
        """Have what will be loaded from here soon brought into the cache."""
        flag = ir.IntType(32)
        signature = ir.FunctionType(ir.VoidType(), [POINTER, flag, flag, flag])
        intrinsic = self.builder.module.globals.get("llvm.prefetch.p0") or ir.Function(
            self.builder.module, signature, "llvm.prefetch.p0"
        )
        to_read, to_keep, data = (ir.Constant(flag, value) for value in (0, 3, 1))
        address = self._at(matrix, place, self.lane_type.element)
        self.builder.call(intrinsic, [address, to_read, to_keep, data])

    def integer_at(self, integers: ir.Value, index: ir.Value) -> ir.Value:
        return self.builder.load(self._at(integers, index, INTEGER), typ=INTEGER)

    def zero(self) -> Sum:
        """A sum that begins at zero."""
        return Sum(self, self._cell(self.lanes(0.0).value))

    def power_of_two(self, shifted: Lanes, shift: float) -> Lanes:
        """2^n in lanes that hold shift + n, doubles so large that their last bit counts ones."""
        assert self.number_bytes == 8
        origin = self.builder.bitcast(self.lanes(shift).value, self.bits_type)
        n = self.builder.sub(self.builder.bitcast(shifted.value, self.bits_type), origin)
        biased = self.builder.add(n, self._integers(1023))
        power = self.builder.shl(biased, self._integers(52))
        return Lanes(self, self.builder.bitcast(power, self.lane_type))

    def from_lane(self, value: Lanes, first: ir.Value) -> Lanes:
        """The lanes from `first` on, and zero in those before."""
        numbered = ir.Constant(self.bits_type, list(range(self.width)))
        start = self.builder.trunc(first, self.bits_type.element)
        kept = self.builder.icmp_signed(">=", numbered, self._spread(start, self.bits_type))
        return Lanes(self, self.builder.select(kept, value.value, self.lanes(0.0).value))

    def _integers(self, value: int) -> ir.Value:
        return ir.Constant(self.bits_type, [value] * self.width)

    def _spread(self, value: ir.Value, lane_type: ir.Type) -> ir.Value:
        undefined = ir.Constant(lane_type, ir.Undefined)
        first = self.builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
        nowhere = ir.Constant(ir.VectorType(ir.IntType(32), self.width), [0] * self.width)
        return self.builder.shuffle_vector(first, undefined, nowhere)

    def _at(self, start: ir.Value, index: ir.Value, element: ir.Type) -> ir.Value:
        return self.builder.gep(start, [index], source_etype=element)

    def _cell(self, start: ir.Value) -> ir.Value:
        # In the entry block, where LLVM turns cells into registers.
        with self.builder.goto_entry_block():
            cell = self.builder.alloca(start.type)
        self.builder.store(start, cell)
        return cell


@dataclass(frozen=True)
class Sum:
    """Lanes in a register that are added to inside a loop."""

    code: Code
    cell: ir.Value

    def add(self, value: Lanes) -> None:
        self.code.builder.store((self.total + value).value, self.cell)

    @property
    def total(self) -> Lanes:
        return Lanes(self.code, self.code.builder.load(self.cell, typ=self.code.lane_type))


def integer(value: int) -> ir.Value:
    return ir.Constant(INTEGER, value)


@dataclass(frozen=True)
class Compiled:
    """A function in machine code; calls let go of Python's lock. The engine owns its memory."""

    call: Callable[..., None]
    engine: llvm.ExecutionEngine


def compile_kernel(
    write: Callable[..., None], integers: int, pointers: int, number_bytes: int, width: int
) -> Compiled:
    """The function that `write(code, *arguments)` writes: first integers, then pointers."""
    module = ir.Module()
    signature = ir.FunctionType(ir.VoidType(), [INTEGER] * integers + [POINTER] * pointers)
    function = ir.Function(module, signature, "kernel")
    code = Code(function, number_bytes, width)
    # A block of its own for the cells.
    body = code.builder.append_basic_block()
    code.builder.branch(body)
    code.builder.position_at_end(body)
    write(code, *function.args)
    code.builder.ret_void()

    # An engine owns its target machine: every kernel has one of its own.
    machine = _target_machine()
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    # Unrolled loops take twice as long to compile and are no faster.
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_unrolling = False
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(parsed, passes)
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * integers, *[ctypes.c_void_p] * pointers)
    return Compiled(prototype(engine.get_function_address("kernel")), engine)


def fitting_width(columns: int, number_bytes: int) -> int:
    """How many numbers of a row of so many columns are computed side by side."""
    return min(_register_bytes() // number_bytes, 1 << int(math.log2(columns)))


@cache
def _register_bytes() -> int:
    features = llvm.get_host_cpu_features()
    return 64 if features.get("avx512f") else 32 if features.get("avx") else 16


def _target_machine() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
    )
