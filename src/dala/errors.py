"""Every error that dala raises, as one tree.

DalaError
├── ArgumentError            (ValueError)    a wrong count, name or value of an argument
├── ShapeError               (ValueError)    sizes that do not fit each other
├── DtypeError               (TypeError)     a dtype that is unknown, or not to be had here
├── FreedError               (RuntimeError)  a buffer used after it was freed
├── LimitError               (OverflowError) more than can be held or addressed
│   └── MemoryLimitError     (MemoryError)   the device has run out of memory
├── UnknownKernelError       (LookupError)   no kernel of that name
├── UnknownCommandError      (LookupError)   no command of that id
├── KernelError                              something is wrong with a kernel
│   ├── KernelSyntaxError    (SyntaxError)   outside the kernel language
│   ├── KernelTypeError      (TypeError)     types that do not fit each other
│   ├── KernelSourceError    (OSError)       the kernel's source cannot be had
│   └── KernelTimeoutError   (TimeoutError)  a loop went past its step limit
├── DeviceError              (RuntimeError)  a device that is missing, or fails
│   └── DeviceLostError                      a device that is gone, with all that it held
├── ParityError              (AssertionError) two devices that disagree about a result
├── CommandTimeoutError      (TimeoutError)  a wait was over before its command
├── CommandCancelledError    (RuntimeError)  the command was cancelled before it ran
│   └── DroppedError                         a stream dropped it: it was full, or it was late
├── ClosedError              (RuntimeError)  a stream used after it was closed
├── FileError                (OSError)       a file that cannot be read or written
├── MediaError               (ValueError)    a picture or video that cannot be understood
├── FunctionError            (RuntimeError)  a user's function that was a filter has raised an error
├── UnknownModelError        (LookupError)   no model of that name
├── ModelError               (ValueError)    a model that cannot be understood or run
├── FetchError               (OSError)       a package that cannot be had from where it is kept
├── IntegrityError           (ValueError)    a file that is not the one that was promised
├── LossWarning              (UserWarning)   a file holds what is not kept; raised if told to
└── InternalError            (RuntimeError)  a mistake in dala itself: please report it
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from dala.base.printable import printable

Given = ParamSpec("Given")
Made = TypeVar("Made")
_MARKED = re.compile("\x02([^\x02\x03]*)\x03([^\x02\x03]*)\x03([^\x02\x03]*)\x02")


def argument(name: str, value: str = "", typed: str = "") -> str:
    """An argument as an error is to name it: to callers by its name, to a command by its option.

    `value` is what it could be in Python, `typed` the same on a command line.

    >>> str(ArgumentError(f"give {argument('size', '(640, 360)', '640x360')}."))
    'give size=(640, 360).'
    """
    return (
        f"\x02{name}\x03{name}={value}\x03{typed}\x02" if value else f"\x02{name}\x03{name}\x03\x02"
    )


def either(python: str, command: str) -> str:
    """What an error says to callers in one way, and to whoever typed a command in another."""
    return f"\x02\x03{python}\x03{command}\x02"


Spelling = Callable[[str, str, str], str]
"""How a name is said: of an argument (or of none), what Python says, and what was to be typed."""


class DalaError(Exception):
    """The base of every error that dala raises.

    Its text is for Python. Where it names arguments, `told` says them in other words. Names from
    outside are in it as they may be sent to a terminal.
    """

    _template: str | None = None
    _has_lines = False
    """Whether its text may have several lines, rather than a name with a break in it."""

    def __init__(self, *args: object) -> None:
        if args and isinstance(args[0], str) and "\x02" in args[0]:
            self._template = args[0]
            args = (_MARKED.sub(r"\2", args[0]), *args[1:])
        super().__init__(*args)

    def __str__(self) -> str:
        return printable(super().__str__(), lines=self._has_lines)

    def told(self, spell: Spelling) -> str:
        """The text, with what it names spelled so; in that of an error that it is about, too."""
        if self._template is not None:
            return _MARKED.sub(lambda found: spell(*found.groups()), self._template)
        text, cause = str(self), self.__cause__
        if isinstance(cause, DalaError) and str(cause) in text:
            text = text.replace(str(cause), cause.told(spell))
        return text

    def rename(self, names: Mapping[str, str]) -> None:
        """Have the error name arguments as another call has them."""
        if self._template is not None:
            self._template = _MARKED.sub(lambda found: _renamed(found, names), self._template)
            self.args = (_MARKED.sub(r"\2", self._template), *self.args[1:])


def _renamed(found: re.Match[str], names: Mapping[str, str]) -> str:
    name, python, typed = found.groups()
    if name not in names:
        return found[0]
    said = re.sub(rf"^{re.escape(name)}\b", names[name], python)
    return f"\x02{names[name]}\x03{said}\x03{typed}\x02"


@contextmanager
def renaming(**names: str) -> Iterator[None]:
    """Inside, errors about these arguments name those that they were given as."""
    try:
        yield
    except DalaError as error:
        error.rename(names)
        raise


class ArgumentError(DalaError, ValueError):
    """A wrong count, name or value of an argument."""


class ShapeError(DalaError, ValueError):
    """Sizes that do not fit each other."""


class DtypeError(DalaError, TypeError):
    """A dtype that is unknown, or that this device does not have."""


class FreedError(DalaError, RuntimeError):
    """A buffer was used after it was freed."""


class LimitError(DalaError, OverflowError):
    """More than can be held or addressed."""


class MemoryLimitError(LimitError, MemoryError):
    """The device has run out of memory."""


class UnknownKernelError(DalaError, LookupError):
    """No kernel of that name is registered."""


class UnknownCommandError(DalaError, LookupError):
    """No command of that id is known, or it was forgotten long after it ended."""


class KernelError(DalaError):
    """Something is wrong with a kernel."""

    _has_lines = True


class KernelSyntaxError(KernelError, SyntaxError):
    """The source is outside the kernel language."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.msg = str(self)  # what Python shows of a SyntaxError

    def __str__(self) -> str:
        return printable(self.args[0], lines=True) if self.args else ""


class KernelTypeError(KernelError, TypeError):
    """Types inside a kernel do not fit each other."""


class KernelSourceError(KernelError, OSError):
    """The kernel's source cannot be had."""


class KernelTimeoutError(KernelError, TimeoutError):
    """A loop of the kernel went past its step limit."""


class KernelCheckError(KernelError, AssertionError):
    """A `dala.check` failed; `position` is the first where it did, and `text` what it says."""

    def __init__(
        self, message: str = "", *, position: tuple[int, ...] = (), text: str = ""
    ) -> None:
        super().__init__(message)
        self.position = position
        self.text = text

    @classmethod
    def at(
        cls, kernel: str, position: tuple[int, ...], text: str, values: str, place: str
    ) -> KernelCheckError:
        """Returns the error of a check in a place of the source, with the values that it shows."""
        more = f" ({values})" if values else ""
        message = f"{kernel}: a check failed at position {position}: {text}{more}\n  File {place}"
        return cls(message, position=position, text=text)


class DeviceError(DalaError, RuntimeError):
    """A device is missing, or failed."""

    _has_lines = True


class DeviceLostError(DeviceError):
    """A device is gone, with all that its buffers held."""


class ParityError(DalaError, AssertionError):
    """Two devices disagree about a result."""


class CommandTimeoutError(DalaError, TimeoutError):
    """A wait was over before its command."""


class CommandCancelledError(DalaError, RuntimeError):
    """The command was cancelled before it ran."""


class DroppedError(CommandCancelledError):
    """A stream dropped the command before it ran; `late` if that was for its deadline."""

    def __init__(self, message: str = "", *, late: bool = False) -> None:
        super().__init__(message)
        self.late = late


class ClosedError(DalaError, RuntimeError):
    """A stream was used after it was closed."""


class FileError(DalaError, OSError):
    """A file cannot be read or written."""


class MediaError(DalaError, ValueError):
    """A picture or video cannot be understood: it is cut, damaged or of another format."""


class FunctionError(DalaError, RuntimeError):
    """A Python function that was given as a filter has raised an error, which is its cause."""


class UnknownModelError(DalaError, LookupError):
    """No model of that name is in the catalog."""


class ModelError(DalaError, ValueError):
    """A model that cannot be understood or run."""


class FetchError(DalaError, OSError):
    """A package that cannot be had from where it is kept."""


class IntegrityError(DalaError, ValueError):
    """A file that is not the one that was promised."""


class LossWarning(DalaError, UserWarning):
    """A file holds something that what was made of it does not.

    It is given to Python's `warnings`; a filter there, or `--strict`, makes an error of it. `lost`
    says what, each in a few words.
    """

    def __init__(self, message: str = "", lost: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.lost = tuple(lost)


class InternalError(DalaError, RuntimeError):
    """A mistake in dala itself."""

    _has_lines = True


def without_frames(error: KernelError) -> KernelError:
    """Returns the error without dala's own frames, unless DALA_DEBUG is set."""
    return error if os.environ.get("DALA_DEBUG") else error.with_traceback(None)


def edge(function: Callable[Given, Made]) -> Callable[Given, Made]:
    """A function that users call: what is wrong with a kernel leaves it without dala's own frames.

    The message points at the user's line. With DALA_DEBUG set, every frame is shown.
    """

    @wraps(function)
    def call(*args: Given.args, **named: Given.kwargs) -> Made:
        try:
            return function(*args, **named)
        except KernelError as error:
            raise without_frames(error) from None

    return call
