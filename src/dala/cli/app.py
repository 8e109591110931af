"""The command line application, and the exit codes of its commands."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from dala import __version__
from dala.base.printable import printable
from dala.cli import (
    batch,
    doctor,
    info_commands,
    kernel_check,
    models,
    parity,
    predict,
    process,
    tune,
)
from dala.cli.loss_reports import reported
from dala.cli.option_names import use_option_names
from dala.cli.terminal import (
    Interrupted,
    complain,
    is_debugging,
    one_line,
    print_json,
    show_warnings,
)
from dala.errors import (
    ArgumentError,
    DalaError,
    InternalError,
    KernelError,
    LossWarning,
    UnknownKernelError,
    UnknownModelError,
)

FAILED, USAGE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141
_COMPLETING = "_DALA_COMPLETE"
UsageError: Any = typer.BadParameter.__base__
"""What Typer raises for usage errors."""

app = typer.Typer(
    name="dala",
    help="Filters for pictures and video, on any GPU or on the CPU.",
    epilog="dala COMMAND --help says more about each. DALA_DEBUG=1 shows where an error came from.",
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
kernel_app = typer.Typer(help="Kernels of your own.", rich_markup_mode="markdown")
models_app = typer.Typer(help="Models that are known by name.", rich_markup_mode="markdown")

MAKE, LOOK, TRY = "Make", "Look", "Try"
app.command("process", rich_help_panel=MAKE)(process.process)
app.command("batch", rich_help_panel=MAKE)(batch.batch)
app.command("run", rich_help_panel=MAKE)(process.run)
app.command("predict", rich_help_panel=LOOK)(predict.predict)
app.command("parity", rich_help_panel=LOOK)(parity.parity)
app.command("filters", rich_help_panel=LOOK)(info_commands.filters)
app.command("kernels", rich_help_panel=LOOK)(info_commands.kernels)
app.command("devices", rich_help_panel=LOOK)(info_commands.devices)
app.command("doctor", rich_help_panel=LOOK)(doctor.doctor)
app.command("tune", rich_help_panel=LOOK)(tune.tune)
app.add_typer(kernel_app, name="kernel", rich_help_panel=LOOK)
kernel_app.command("check")(kernel_check.check)
app.add_typer(models_app, name="models", rich_help_panel=LOOK)
models_app.command("list")(models.list_models)
models_app.command("get")(models.get)
models_app.command("where")(models.where)
models_app.command("check")(models.check)
app.command("demo", rich_help_panel=TRY)(info_commands.demo)
app.command("gallery", rich_help_panel=TRY)(info_commands.gallery)
app.command(
    "bench",
    rich_help_panel=TRY,
    context_settings={
        "ignore_unknown_options": True,
        "allow_extra_args": True,
        "help_option_names": [],
    },
)(info_commands.bench)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"dala {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version, and end.",
            callback=_print_version,
            is_eager=True,
            show_default=False,
        ),
    ] = False,
) -> None:
    use_option_names(context)


@kernel_app.callback()
def _kernel(context: typer.Context) -> None:
    """Kernels of your own."""
    use_option_names(context)


@models_app.callback()
def _models(context: typer.Context) -> None:
    """Models that are known by name: those of the catalog, fetched and kept."""
    use_option_names(context)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code: 0, 1 failed, 2 usage, 130 interrupted, 141 pipe."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if _COMPLETING in os.environ:
        app(prog_name="dala", args=given)
    if arguments is None:
        show_warnings()
    try:
        try:
            with reported():
                code = _run(given)
        except BaseException as error:
            if arguments is None and isinstance(error, KeyboardInterrupt | Interrupted):
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would only add noise
            if is_debugging() and not isinstance(error, typer.Exit | SystemExit):
                traceback.print_exc()
            code = _ended(error, given)
        sys.stdout.flush()
    except BrokenPipeError:
        code = _ended(BrokenPipeError(), given)
    return code


def _run(given: list[str]) -> int:
    command = get_command(app)
    with command.make_context("dala", given) as context:
        code = command.invoke(context)
    return code if isinstance(code, int) else 0


def _ended(error: BaseException, given: list[str]) -> int:
    """Prints an error and returns its exit code."""
    if isinstance(error, typer.Exit):
        return error.exit_code
    if _is_broken_pipe(error):
        # Python flushes standard output once more as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    if isinstance(error, SystemExit) and isinstance(error.code, int | None):
        return error.code or 0  # Typer has printed everything already
    if isinstance(error, KeyboardInterrupt | Interrupted):
        return _told(str(error) or "interrupted.", INTERRUPTED, given)
    if isinstance(error, UsageError):
        return _told(_usage(error), USAGE, given)
    if isinstance(error, KernelError):
        return _told(str(error), FAILED, given)
    if isinstance(error, ArgumentError | UnknownKernelError | UnknownModelError):
        return _told(one_line(error), USAGE, given)
    if isinstance(error, InternalError) or not isinstance(error, DalaError | OSError | MemoryError):
        return _told(_mistake(error), FAILED, given)
    return _told(_plain(error), FAILED, given)


def _told(message: str, code: int, given: list[str]) -> int:
    complain(message)
    if "--json" in given and "-" not in given:
        print_json({"ok": False, "error": message, "exit_code": code})
    return code


def _usage(error: Any) -> str:
    """Returns the usage error as one line, with the help to read."""
    path = error.ctx.command_path if error.ctx is not None else "dala"
    near = getattr(error, "possibilities", None)
    said = one_line(error.message if near else error.format_message())
    if near:
        said = f"{said.rstrip('.')}. Did you mean {' or '.join(sorted(near))}?"
    if not said:  # a command was expected, and help was printed
        return f"a command is missing. See {path} --help."
    said = said[0].lower() + said[1:] if said[1:2].islower() else said
    return f"{said}{'' if said.endswith(('.', '?')) else '.'} See {path} --help."


def _plain(error: BaseException) -> str:
    if isinstance(error, LossWarning):
        return f"{one_line(error)} That is an error by --strict, and nothing was written."
    if isinstance(error, DalaError):
        return one_line(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory: give smaller pictures, or a smaller --size."
    assert isinstance(error, OSError)
    name = "" if error.filename is None else f"{printable(error.filename)}: "
    return one_line(f"{name}{error.strerror or error}.")


def _mistake(error: BaseException) -> str:
    said = one_line(f"{type(error).__name__}: {error}")
    return f"a mistake in dala itself: {said}. DALA_DEBUG=1 shows where; please report it."


def _is_broken_pipe(error: BaseException | None) -> bool:
    """Returns whether the reader of standard output is gone; libraries may wrap that error."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        if isinstance(error, BrokenPipeError):
            return True
        seen.append(error)
        error = error.__cause__ or error.__context__
    return False
