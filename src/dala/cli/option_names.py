"""Translates argument names in errors to the command's options."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from dala.errors import DalaError

_CALLED_OTHERWISE = {"sound": "no_sound", "top_k": "top", "max_results": "top"}
"""Options with other names than their arguments."""
_options: ContextVar[dict[str, Any]] = ContextVar("options", default={})  # noqa: B039  (never changed)


def use_option_names(context: Any) -> None:
    """Makes errors name the options of the command that is being run."""
    command = context.command.commands.get(context.invoked_subcommand)
    if command is not None:
        _options.set({item.name: item for item in command.params if item.opts[0].startswith("-")})


def told(error: BaseException) -> str:
    """Returns an error's message with options instead of Python arguments."""
    return error.told(_spelled) if isinstance(error, DalaError) else str(error)


def _spelled(argument: str, python: str, typed: str) -> str:
    """Returns the option for an argument, if the command has one."""
    if not argument:
        return typed
    option = _options.get().get(_CALLED_OTHERWISE.get(argument, argument))
    if option is None:
        return python
    name: str = max(option.opts, key=len)
    if python == argument or option.is_flag:
        return name
    return f"{name} {typed or option.metavar}"
