"""Compiles LLVM IR to machine code for this CPU, with llvmlite."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from dala import __version__
from dala.base.emitted_code import dump_code
from dala.base.record import record
from dala.devices.cpu import object_cache
from dala.devices.cpu.exit_gate import GATE
from dala.emit.llvm.lookups import Permutes
from dala.emit.llvm.target import Options
from dala.errors import InternalError

PLAIN = Options()
_IS_ARM = platform.machine() in ("arm64", "aarch64")


@record
class Code:
    """Machine code in memory, which lives as long as this object."""

    addresses: dict[str, int]
    library: Any


class Compiler:
    """Compiles for the host CPU, one module at a time."""

    def __init__(self) -> None:
        self._count = 0
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.cpu = llvm.get_host_cpu_name()
        self.features = llvm.get_host_cpu_features()

    @cached_property
    def vector_bits(self) -> int:
        """Returns the vector width of this CPU."""
        if self.features.get("avx512f") and self.features.get("avx512bw"):
            return 512
        return 256 if self.features.get("avx2") else 128

    @cached_property
    def has_halves(self) -> bool:
        """Returns whether this CPU converts from and to f16 by an instruction."""
        return bool(self.features.get("f16c")) or platform.machine() in ("arm64", "aarch64")

    @cached_property
    def _flat_features(self) -> str:
        return str(self.features.flatten())

    @cached_property
    def permutes(self) -> Permutes:
        """The instructions that look bytes up."""
        if self.features.get("avx512vbmi") and self.vector_bits == 512:
            return "vbmi"
        if self.features.get("avx2"):
            return "avx2"
        return "neon" if _IS_ARM else ""

    @property
    def has_extremes(self) -> bool:
        """Whether there are minima and maxima of floats that give NaN and order zeros."""
        return _IS_ARM

    @property
    def has_ranges(self) -> bool:
        """Whether there are minima and maxima of vectors that order zeros."""
        return self.vector_bits == 512 and bool(self.features.get("avx512dq"))

    @cached_property
    def _key(self) -> str:
        """Returns what machine code depends on besides its LLVM IR."""
        machine = (platform.machine(), platform.system(), self.cpu, self._flat_features)
        return "\n".join((__version__, llvmlite.__version__, *machine))

    @cached_property
    def _linker(self) -> Any:
        # LLVM's older linker places code and constants anywhere, and aborts if they are more than 2
        # GiB apart, as happens in large processes.
        return llvm.create_lljit_compiler(self._machine(jit=True), use_jit_link=True)

    def _machine(self, *, jit: bool = False) -> Any:
        return llvm.Target.from_default_triple().create_target_machine(
            cpu=self.cpu,
            features=self._flat_features,
            opt=2,
            reloc="pic",
            codemodel="jitdefault" if jit else "default",
            jit=jit,
        )

    def compile(self, text: str, *entries: str, options: Options = PLAIN) -> Code:
        """Returns the machine code of a module, from the object cache if possible."""
        dump_code(text, "ll")
        key = f"{self._key}\n{options}\n{text}"
        with GATE:
            stored = object_cache.load(key)
            data = self._object(text, options) if stored is None else stored
            code = self._link(data, entries)
        if stored is None:
            object_cache.save(key, data)
        return code

    def assembly(self, text: str, options: Options = PLAIN) -> str:
        """Returns the assembly of a module, for reading."""
        with GATE, _scheduling(options):
            machine = self._machine()
            return str(machine.emit_assembly(self._optimized(text, machine, options)))

    def _object(self, text: str, options: Options) -> bytes:
        machine = self._machine()
        with _scheduling(options):
            return bytes(machine.emit_object(self._optimized(text, machine, options)))

    def _optimized(self, text: str, machine: Any, given: Options) -> Any:
        try:
            module = llvm.parse_assembly(text)
        except RuntimeError as error:
            raise InternalError(f"LLVM refused emitted code: {error}\n{text}") from error
        options = llvm.create_pipeline_tuning_options(2)
        options.loop_vectorization = given.vectorize
        options.slp_vectorization = False
        builder = llvm.create_pass_builder(machine, options)
        passes = builder.getModulePassManager() if given.vectorize else _few_passes()
        passes.run(module, builder)
        return module

    def _link(self, data: bytes, entries: tuple[str, ...]) -> Code:
        self._count += 1
        builder = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
        for entry in entries:
            builder.export_symbol(entry)
        library = builder.link(self._linker, f"dala{self._count}")
        return Code({entry: library[entry] for entry in entries}, library)


@contextmanager
def _scheduling(options: Options) -> Iterator[None]:
    """Disables LLVM's instruction scheduler inside if asked to: it is a process-wide option."""
    if not options.in_order:
        yield
        return
    llvm.set_option("", "-enable-misched=false")
    try:
        yield
    finally:
        llvm.set_option("", "-enable-misched=true")


def _few_passes() -> Any:
    """Returns a short pass pipeline for code emitted as vectors: a fifth of the time of LLVM's."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_loop_rotate_pass()
    passes.add_new_gvn_pass()
    passes.add_simplify_cfg_pass()
    return passes
