"""The declaration of a kernel's parameter: the one place that says what it is.

A kernel declares each of its parameters with a constructor of this module, as in
`@composite("image", group="smoothing", radius=integer("…", 1, usual=(0, 100), limit=RADIUS))`.
Validation, `filters()`, the command line, the pages of docs/ and the type stubs are all made of
these records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dala.base.record import changed, record, value
from dala.base.suggestions import hint
from dala.errors import ArgumentError
from dala.kernels.base.limits import ANY, Limit
from dala.lang.signature import REQUIRED, Parameter

Ends = tuple[float, float]

KINDS = (
    "number", "integer", "choice", "flag", "color", "matrix", "table", "size", "shape", "model",
    "axes", "any",
)  # fmt: skip
"""`axes` are integers that name axes, or one for each; `any` is checked by its kernel alone."""


@record
class Param:
    """What a parameter does, what it accepts, and what it is where it is not given."""

    kind: str
    doc: str
    """What it does, in one line that neither begins with a capital nor ends with a period."""
    default: Any = REQUIRED
    unit: str = ""
    limit: Limit = ANY
    """What is beyond is refused."""
    usual: Ends | None = None
    """The ends of a slider: what is beyond is accepted unless the limit says otherwise."""
    choices: tuple[str, ...] = ()
    relative: bool = False
    """Whether a size may be one that follows from the image's own."""
    rule: str = ""
    """What it is instead of `effective` where another parameter says how large it has to be."""
    effective: float | None = None
    """What a default of None comes to where the rule does not apply."""

    def hold(self, kernel: str, name: str, given: Any) -> Any:
        """The value in the form that kernels expect; an ArgumentError says what is allowed."""
        if given is None and self.default is None:
            return None
        holder = _HOLDERS.get(self.kind)
        return given if holder is None else holder(self, kernel, name, given)

    def describe(self) -> dict[str, Any]:
        """The declaration for programs; what does not apply is left out."""
        described: dict[str, Any] = {"kind": self.kind}
        if self.usual is not None:
            described |= {"least": self.usual[0], "most": self.usual[1]}
        if self.choices:
            described["choices"] = list(self.choices)
        if self.relative:
            described["relative"] = True
        if self.limit != ANY:
            described["limits"] = self.limit.describe()
        if self.default is not REQUIRED:
            described["default"] = self.effective if self.rule else self.default
        if self.rule:
            described["rule"] = self.rule
        if self.unit:
            described["unit"] = self.unit
        return described | {"doc": self.doc}


def _hold_number(param: Param, kernel: str, name: str, given: Any) -> float:
    return param.limit.hold_number(kernel, name, given)


def _hold_integer(param: Param, kernel: str, name: str, given: Any) -> int:
    return param.limit.hold_integer(kernel, name, given)


def _hold_choice(param: Param, kernel: str, name: str, given: Any) -> str:
    if isinstance(given, str):
        for word in (given, given.replace("_", "-")):
            if word in param.choices:
                return word
    near = hint(given, param.choices) if isinstance(given, str) else ""
    raise ArgumentError(
        f"{kernel}: {name} {given!r} is not known: give {', '.join(param.choices)}.{near}"
    )


def _hold_flag(param: Param, kernel: str, name: str, given: Any) -> bool:
    if isinstance(given, bool | np.bool_):
        return bool(given)
    raise ArgumentError(f"{kernel}: {name} is True or False, not {given!r}.")


_HOLDERS: dict[str, Callable[[Param, str, str, Any], Any]] = {
    "number": _hold_number,
    "integer": _hold_integer,
    "choice": _hold_choice,
    "flag": _hold_flag,
}
"""Kinds that are checked by their declaration alone; the others need the kernel's buffers."""


@value
class DeclaredParameter(Parameter):
    """A parameter with its declaration."""

    about: Param = Param("any", "")

    def describe(self) -> dict[str, Any]:
        """Its type, its default where it has one, its unit, and what it does."""
        about = self.about.describe()
        described = super().describe()
        if self.kind == "host":
            described["type"] = self.about.kind
        return described | {name: about[name] for name in ("unit", "doc") if name in about}


def declare(**params: Param) -> tuple[DeclaredParameter, ...]:
    """The parameters of a kernel that is planned on the host."""
    return tuple(
        DeclaredParameter(name, "host", None, about.default, about=about)
        for name, about in params.items()
    )


def annotate(
    params: Sequence[Parameter], declared: Mapping[str, Param]
) -> tuple[DeclaredParameter, ...]:
    """The parameters of a function of the language, whose signature has their defaults."""
    if set(declared) != {item.name for item in params}:
        raise TypeError(f"{sorted(declared)} are declared, but it takes {list(map(str, params))}")
    return tuple(
        DeclaredParameter(
            item.name,
            item.kind,
            item.type,
            item.default,
            item.composite,
            changed(declared[item.name], default=item.default),
        )
        for item in params
    )


def held(declared: Sequence[Parameter]) -> dict[str, Param]:
    """Returns the declarations that values are held to, by name."""
    return {
        item.name: item.about
        for item in declared
        # Functions of the language take NaN and large integers as they are.
        if isinstance(item, DeclaredParameter) and (item.kind == "host" or item.about.limit != ANY)
    }


def hold(kernel: str, about: Mapping[str, Param], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values, each as its declaration has it; raises ArgumentError for any other."""
    return {
        name: about[name].hold(kernel, name, value) if name in about else value
        for name, value in given.items()
    }


# -- constructors ----------------------------------------------------------------------------------


def number(
    doc: str,
    default: Any = REQUIRED,
    *,
    usual: Ends | None = None,
    limit: Limit = ANY,
    unit: str = "",
    rule: str = "",
    effective: float | None = None,
) -> Param:
    """A finite float."""
    return Param("number", doc, default, unit, limit, usual, rule=rule, effective=effective)


def integer(
    doc: str,
    default: Any = REQUIRED,
    *,
    usual: Ends | None = None,
    limit: Limit = ANY,
    unit: str = "",
    rule: str = "",
    effective: float | None = None,
) -> Param:
    """An integer."""
    return Param("integer", doc, default, unit, limit, usual, rule=rule, effective=effective)


def choice(doc: str, *choices: str, default: Any = REQUIRED) -> Param:
    """One of several words; an underscore counts as a hyphen."""
    return Param("choice", doc, default, choices=choices)


def flag(doc: str, default: bool = False) -> Param:
    """True or False."""
    return Param("flag", doc, default)


def other(kind: str, doc: str, default: Any = REQUIRED, *, relative: bool = False) -> Param:
    """A value that the kernel itself checks against its buffers."""
    return Param(kind, doc, default, relative=relative)
