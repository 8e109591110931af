"""Declarations of kernels written in WGSL: bindings, parameters and workgroup size.

Only the declarations are parsed: one output (`var<storage, read_write>`), inputs (`var<storage,
read>`), a struct of scalars for parameters (`var<uniform>`), all in group 0, and one entry point.
The rest is left to the device's compiler.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dala.base.record import value
from dala.errors import KernelSyntaxError
from dala.ir.types import DTYPES, F32, U32, Scalar
from dala.lang.signature import REQUIRED, Parameter

Groups = tuple[int, int, int]

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BINDING = re.compile(
    r"((?:@(?:group|binding)\s*\(\s*\d+\s*\)\s*)+)"
    r"var\s*<\s*(uniform|storage)\s*(?:,\s*(read_write|read|write)\s*)?>\s*(\w+)\s*:\s*([^;]+);"
)
_ENTRY = re.compile(r"((?:@\w+\s*(?:\([^)]*\))?\s*)+)fn\s+(\w+)")
_SIZE = re.compile(r"@workgroup_size\s*\(([^)]*)\)")
_STRUCT = re.compile(r"struct\s+(\w+)\s*\{([^}]*)\}")
_SCALARS = {scalar.wgsl: scalar for scalar in DTYPES.values() if scalar.bits >= 32}


@value
class Binding:
    """A buffer binding; `element` is the element type of its array, as written."""

    name: str
    number: int
    kind: Literal["input", "output", "params"]
    element: str

    @property
    def _scalar(self) -> Scalar | None:
        """The scalar that its elements are made of, or None for what a struct holds."""
        inner = self.element
        while (found := re.fullmatch(r"(?:vec[234]|atomic)\s*<\s*(.*?)\s*>", inner)) is not None:
            inner = found.group(1)
        return _SCALARS.get(inner)

    def dtype_for(self, first: Scalar) -> Scalar:
        """Returns the dtype of an output beside a first input: the same where it can be bound."""
        return first if self.takes(first) else self._scalar or first

    def takes(self, scalar: Scalar) -> bool:
        """Whether a buffer of this dtype can be bound; bytes are packed four to a word."""
        wanted = self._scalar
        return wanted is None or wanted == scalar or (wanted == U32 and scalar.per_word > 1)


@value
class WgslModule:
    """The declarations of a WGSL module."""

    text: str
    entry: str
    workgroup: tuple[int, int, int]
    bindings: tuple[Binding, ...]
    params: tuple[Parameter, ...]

    def of_kind(self, kind: str) -> tuple[Binding, ...]:
        return tuple(item for item in self.bindings if item.kind == kind)

    def pack(self, values: Sequence[bool | int | float]) -> bytes:
        """Returns the bytes of the parameter struct."""
        scalars = [item.type or F32 for item in self.params]
        packed = b""
        for scalar, number in zip(scalars, values, strict=True):
            packed = packed.ljust(-(-len(packed) // scalar.size_bytes) * scalar.size_bytes, b"\0")
            packed += struct.pack(f"={scalar.code}", number)
        return packed.ljust(-(-len(packed) // 16) * 16, b"\0")

    def groups(self, shape: tuple[int, ...], size_bytes: int, scalar: Scalar) -> Groups:
        """Returns the number of workgroups that give each output element an invocation.

        A one-dimensional workgroup counts elements of the output's array; others cover the columns,
        then the rows of the output's shape.
        """
        if self.workgroup[1:] == (1, 1):
            element = self.of_kind("output")[0].element
            width = _size_bytes(element) or scalar.size_bytes
            return (-(-size_bytes // (width * self.workgroup[0])), 1, 1)
        rows, columns, *rest = (*shape, 1)[:2] if len(shape) < 3 else shape
        deep = 1 if rest in ([3], [4]) else math.prod(rest)
        x, y, z = self.workgroup
        return (-(-columns // x), -(-rows // y), -(-deep // z))


def read_module(name: str, text: str, defaults: Mapping[str, Any]) -> WgslModule:
    """Returns the declarations of a kernel's text; raises KernelSyntaxError if any is missing."""
    code = _COMMENT.sub(" ", text)
    bindings, structs = [], []
    for attributes, space, access, variable, type in _BINDING.findall(code):
        group, number = (_number(name, attributes, item) for item in ("group", "binding"))
        if group != 0:
            raise _wrong(name, f"{variable} is in group {group}", "All bindings are in group 0.")
        if space == "uniform":
            structs.append(type.strip())
            bindings.append(Binding(variable, number, "params", type.strip()))
            continue
        array = re.fullmatch(r"\s*array\s*<\s*(.*?)\s*>\s*", type, re.DOTALL)
        element = array.group(1) if array else type.strip()
        kind: Literal["input", "output"] = "input" if access in ("", "read") else "output"
        bindings.append(Binding(variable, number, kind, element))
    bindings.sort(key=lambda item: item.number)
    outputs = [item.name for item in bindings if item.kind == "output"]
    if len(outputs) != 1:
        raise _wrong(
            name,
            f"it has {len(outputs)} outputs ({', '.join(outputs) or 'none'})",
            "Declare one: @group(0) @binding(0) var<storage, read_write> out: array<f32>;",
        )
    if len(structs) > 1:
        raise _wrong(name, "it has several uniforms", "Put all parameters into one struct.")
    entry, workgroup = _entry(name, code)
    params = _params(name, code, structs[0], defaults) if structs else ()
    return WgslModule(text, entry, workgroup, tuple(bindings), params)


def _number(name: str, attributes: str, which: str) -> int:
    found = re.search(rf"@{which}\s*\(\s*(\d+)\s*\)", attributes)
    if found is None:
        raise _wrong(name, f"a variable has no @{which}", "Write @group(0) @binding(n) var<…>.")
    return int(found.group(1))


def _entry(name: str, code: str) -> tuple[str, tuple[int, int, int]]:
    entries = [(head, fn) for head, fn in _ENTRY.findall(code) if "@compute" in head]
    if len(entries) != 1:
        raise _wrong(
            name,
            f"it has {len(entries)} entry points",
            "Write one: @compute @workgroup_size(64) fn main(…).",
        )
    head, function = entries[0]
    size = _SIZE.search(head)
    numbers = [item.strip().rstrip("iu") for item in size.group(1).split(",")] if size else []
    numbers = [item for item in numbers if item]
    if not 1 <= len(numbers) <= 3 or not all(item.isdecimal() for item in numbers):
        raise _wrong(
            name, "its workgroup size is not one to three numbers", "Write @workgroup_size(16, 16)."
        )
    x, y, z = (int(item) for item in [*numbers, "1", "1"][:3])
    return function, (x, y, z)


def _params(
    name: str, code: str, wanted: str, defaults: Mapping[str, Any]
) -> tuple[Parameter, ...]:
    body = next((body for struct_, body in _STRUCT.findall(code) if struct_ == wanted), None)
    if body is None:
        raise _wrong(
            name, f"its uniform is {wanted}", "Make it a struct of f32, i32 and u32, by name."
        )
    found = []
    for member in filter(None, (item.strip() for item in body.split(","))):
        field, _, type = (part.strip() for part in member.partition(":"))
        if type not in _SCALARS:
            raise _wrong(
                name,
                f"parameter {field!r} is {type or 'untyped'}",
                f"Parameters are {', '.join(_SCALARS)}.",
            )
        default = defaults.get(field, REQUIRED)
        found.append(Parameter(field, "typed", _SCALARS[type], default))
    return tuple(found)


def _size_bytes(element: str) -> int | None:
    """Returns the size of an array element, or None if it is unknown."""
    found = re.fullmatch(r"(?:vec([234])\s*<\s*)?(?:atomic\s*<\s*)?(\w+)[\s>]*", element)
    if found is None or found.group(2) not in _SCALARS:
        return None
    count = {None: 1, "2": 2, "3": 4, "4": 4}[found.group(1)]
    return count * _SCALARS[found.group(2)].size_bytes


def _wrong(name: str, what: str, instead: str) -> KernelSyntaxError:
    return KernelSyntaxError(f"kernel {name!r}, which is WGSL text: {what}. {instead}")
