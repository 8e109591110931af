"""Emits the elements of outputs as WGSL: their types, and their stores, in words where packed."""

from __future__ import annotations

from dala.emit.wgsl.memory import Memory, element_type, output_array
from dala.emit.wgsl.packing import is_packed, packed, stored
from dala.ir.nodes import Output


def structure(outputs: tuple[Output, ...]) -> str:
    """Returns the type of the elements of several outputs at one position."""
    members = [f"  o{i}: {type_of(item)}," for i, item in enumerate(outputs)]
    return "\n".join(["struct Element {", *members, "}"])


def type_of(output: Output) -> str:
    """Returns the type of an output's element; four packed channels are words."""
    if output.channels == 4:
        return element_type(output)
    return f"vec{output.channels}<{output.type.wgsl}>" if spread(output) else output.type.wgsl


def spread(output: Output) -> int:
    """Returns the channels that are stored one by one, as two and three are; else 0."""
    return output.channels if output.channels in (2, 3) else 0


def joined(output: Output, channels: list[str]) -> str:
    """Returns the element that channels make."""
    if len(channels) == 1:
        return channels[0]
    if is_packed(output.type) and output.channels == 4:
        count = output.type.per_word
        parts = [channels[i : i + count] for i in range(0, len(channels), count)]
        channels = [packed(output.type, part) for part in parts]
        if len(channels) == 1:
            return channels[0]
    return f"{type_of(output)}({', '.join(channels)})"


def store_element(body: Memory, number: int, element: str, text: str) -> None:
    """Emits the store of one output's element."""
    array = output_array(number)
    if channels := spread(body.program.outputs[number]):
        pixel = f"pixel_{number}" if number else "pixel"
        body.line(f"let {pixel} = {text};")
        for i, component in enumerate("xyz"[:channels]):
            body.line(f"{array}[{element} * {channels}u + {i}u] = {pixel}.{component};")
    else:
        body.line(f"{array}[{element}] = {text};")


def store_words(body: Memory, number: int, values: list[str], count: str) -> None:
    """Emits the words of a packed output that positions fill together."""
    output, array = body.program.outputs[number], output_array(number)
    per_word = output.type.per_word
    channels = spread(output)
    if not channels:
        words = len(values) // per_word
        for word in range(words):
            part = values[word * per_word : (word + 1) * per_word]
            others = packed(output.type, part[1:], 1)
            place = "unit" if words == 1 else f"unit * {words}u + {word}u"
            guard = f"if (first + {word * per_word}u < {count}) " if count and word else ""
            text = f"{array}[{place}] = {stored(output.type, part[0])} | {others};"
            body.line(f"{guard}{{ {text} }}" if guard else text)
        return
    parts = [f"{text}.{component}" for text in values for component in "xyz"[:channels]]
    words = len(parts) // per_word
    for word in range(words):
        first = per_word * word
        text = packed(output.type, parts[first : first + per_word])
        test = f"unit * {len(parts)}u + {first}u < {count} * {channels}u"
        guard = f"if ({test}) " if count and word else ""
        body.line(f"{guard}{{ {array}[unit * {words}u + {word}u] = {text}; }}")
