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
├── UnknownModelError        (LookupError)   no model of that name
├── ModelError               (ValueError)    a model that cannot be understood or run
├── FetchError               (OSError)       a package that cannot be had from where it is kept
├── IntegrityError           (ValueError)    a file that is not the one that was promised
└── InternalError            (RuntimeError)  a mistake in dala itself: please report it
"""

from __future__ import annotations

from dala.printable import printable


class DalaError(Exception):
    """The base of every error that dala raises.

    Whatever names it carries from outside, its text can be sent to a terminal.
    """

    _has_lines = False
    """Whether its text may have several lines, rather than a name with a break in it."""

    def __str__(self) -> str:
        return printable(super().__str__(), lines=self._has_lines)


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


class UnknownModelError(DalaError, LookupError):
    """No model of that name is in the catalogue."""


class ModelError(DalaError, ValueError):
    """A model that cannot be understood or run."""


class FetchError(DalaError, OSError):
    """A package that cannot be had from where it is kept."""


class IntegrityError(DalaError, ValueError):
    """A file that is not the one that was promised."""


class InternalError(DalaError, RuntimeError):
    """A mistake in dala itself."""

    _has_lines = True
