"""Which rows are meant by what is given: groups, names, beginnings of names, patterns, formats."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

Groups = Mapping[str, Collection[str]]


def chosen(
    groups: Groups, words: list[str], formats: list[str] | None, format_of: Mapping[str, str]
) -> list[str]:
    """The rows that are named; of the groups that are, or of all.

    `filters blur` are the rows of filters that begin with `blur-`, `filters compute` all of both.
    """
    names = candidates(groups, words)
    if patterns := [word for word in words if word not in groups]:
        names = [name for name in names if any(is_meant(name, word, names) for word in patterns)]
    if formats:
        names = [name for name in names if format_of.get(name) in formats]
    return names


def candidates(groups: Groups, words: list[str]) -> list[str]:
    """All rows of the groups that are named; of all groups if none is."""
    named = [word for word in words if word in groups] or list(groups)
    return [name for group in dict.fromkeys(named) for name in groups[group]]


def unknown(groups: Groups, words: list[str]) -> list[str]:
    """What is neither a group nor means a row of those that are named."""
    names = candidates(groups, words)
    return [
        word
        for word in words
        if word not in groups and not any(is_meant(name, word, names) for name in names)
    ]


def is_meant(name: str, word: str, names: Collection[str]) -> bool:
    """A name means that row alone; what is none means all rows that begin with it."""
    if any(mark in word for mark in "*?["):
        return fnmatchcase(name, word)
    return name == word if word in names else name.startswith(word)
