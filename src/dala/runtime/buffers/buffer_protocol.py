"""`memoryview(x)`, `bytes(x)` and `file.write(x)` for a Python class on CPython 3.11.

From 3.12 on a class exports memory by a method, `__buffer__`. Before that only C code can, so here
the few instructions that are needed are compiled by LLVM, which is at hand, and put into the class.
A ctypes callback would not do: an exception that leaves one is printed, not raised.
"""

from __future__ import annotations

import ctypes
import sys
import threading

from dala.devices.cpu.exit_gate import GATE
from dala.errors import InternalError

# What each entry of PyTypeObject up to `tp_as_buffer` takes is one pointer; this one is the 21st,
# and it points at a structure whose first entry is `bf_getbuffer`.
_AS_BUFFER_INDEX = 20

# Ask the object for its array, then the array for its memory: both set the error if there is one.
# `Py_buffer.obj`, the second pointer of a view, must be null when the request is refused.
_CODE = """
@name = private constant [{name_size} x i8] c"{name}\\00"

define i32 @get_buffer(ptr %self, ptr %view, i32 %flags) {{
  %array = call ptr inttoptr (i64 {get_attribute} to ptr)(ptr %self, ptr @name)
  %refused = icmp eq ptr %array, null
  br i1 %refused, label %fail, label %export
fail:
  %owner = getelementptr ptr, ptr %view, i64 1
  store ptr null, ptr %owner
  ret i32 -1
export:
  %status = call i32 inttoptr (i64 {get_buffer} to ptr)(ptr %array, ptr %view, i32 %flags)
  call void inttoptr (i64 {release} to ptr)(ptr %array)
  ret i32 %status
}}
"""

NEEDED = sys.implementation.name == "cpython" and sys.version_info < (3, 12)

_lock = threading.RLock()  # a finaliser may make a buffer while one is being made
_installed: set[type] = set()


def install(exporter: type, attribute: str) -> None:
    """Let `exporter` export the memory of the array that its `attribute` gives."""
    with _lock:
        if exporter in _installed:
            return
        slots = ctypes.cast(id(exporter), ctypes.POINTER(ctypes.c_void_p))
        as_buffer = slots[_AS_BUFFER_INDEX]
        # In a class made by Python the structure is a part of the class itself.
        if not id(exporter) < as_buffer < id(exporter) + sys.getsizeof(exporter):
            raise InternalError(f"{sys.version} lays out its types in an unknown way.")
        ctypes.cast(as_buffer, ctypes.POINTER(ctypes.c_void_p))[0] = _compile(attribute)
        _installed.add(exporter)


def _compile(attribute: str) -> int:
    with GATE:
        return _compiled(attribute)


def _compiled(attribute: str) -> int:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    code = _CODE.format(
        name=attribute,
        name_size=len(attribute) + 1,
        get_attribute=_address(ctypes.pythonapi.PyObject_GetAttrString),
        get_buffer=_address(ctypes.pythonapi.PyObject_GetBuffer),
        release=_address(ctypes.pythonapi.Py_DecRef),
    )
    machine = binding.Target.from_default_triple().create_target_machine(opt=0)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(code), machine)
    engine.finalize_object()
    # Kept for ever: the class may be used until the very end, when modules are gone already.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    return int(engine.get_function_address("get_buffer"))


def _address(function: object) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
