"""Two trees of JSON values, compared: which fields there are, of which types, and those values that may not differ.

A path names fields by their names, and all elements of an array by `[]`: `phases[].offered.requests`. A field that is null, or an
array that is empty, on one side says nothing of what may stand in it, so what the other has there is not compared.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Document:
    """What a command said. Values at paths that match `exact`, and none of `loose`, must be the same in both builds."""

    name: str
    value: object
    exact: tuple = ()
    loose: tuple = ()


EVERYTHING = ("*",)


def kind(value):
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "text"
        case list():
            return "array"
    return "object"


def matches(path, patterns):
    """`*` stands for any text."""
    return any(re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), path) for pattern in patterns)


def inner(path, name):
    """The path of a field; a point in its name is none of the path."""
    return f"{path}.{name.replace('.', '·')}".lstrip(".")


def shape(value, path="", into=None):
    """{path: kinds that stand there}."""
    into = {} if into is None else into
    into.setdefault(path, set()).add(kind(value))
    if isinstance(value, dict):
        for name, field in value.items():
            shape(field, inner(path, name), into)
    elif isinstance(value, list):
        for element in value:
            shape(element, f"{path}[]", into)
    return into


def is_told(path, kinds):
    """Whether a document would say what stands at a path: what holds it is there, and is an object."""
    if path.endswith("[]"):
        return False
    return "object" in kinds.get(path.rpartition(".")[0], ())


def values(value, path="", at=""):
    """(path, place, value) of all that is neither object nor array; a place has numbers for the elements of arrays."""
    if isinstance(value, dict):
        for name, field in value.items():
            yield from values(field, inner(path, name), inner(at, name))
    elif isinstance(value, list):
        yield path, f"{at} has", f"{len(value)} elements"
        for index, element in enumerate(value):
            yield from values(element, f"{path}[]", f"{at}[{index}]")
    else:
        yield path, at, value


def differences(old, new):
    """(what, path, words) of each; `what` is lost, added, type or value."""
    before, after = shape(old.value), shape(new.value)
    for path in before.keys() - after.keys():
        if is_told(path, after):
            yield "lost", path, f"was {'/'.join(sorted(before[path]))}"
    for path in after.keys() - before.keys():
        if is_told(path, before):
            yield "added", path, f"is {'/'.join(sorted(after[path]))}"
    for path in before.keys() & after.keys():
        was, is_now = before[path] - {"null"}, after[path] - {"null"}
        if was and is_now and not (was <= is_now or is_now <= was):
            yield "type", path, f"was {'/'.join(sorted(was))}, is {'/'.join(sorted(is_now))}"
    for pattern in old.exact:
        if not any(matches(path, (pattern,)) for path in before):
            yield "lost", pattern, "is to be the same, and there is nothing"
    known = {place: value for _, place, value in values(new.value)}
    for path, place, value in values(old.value):
        if matches(path, old.exact) and not matches(path, old.loose) and place in known and known[place] != value:
            yield "value", path, f"{place}: was {value!r}, is {known[place]!r}"


def compared(old, new, added=()):
    """Prints each difference of two sets of documents by name; true without any that is not allowed."""
    red = []
    for name in old.keys() | new.keys():
        if name not in old or name not in new:
            what = "lost" if name in old else "added"
            red += [] if f"{name}:" in added and what == "added" else [(name, what, "", "the whole document")]
            continue
        for what, path, words in differences(old[name], new[name]):
            if what != "added" or f"{name}:{path}" not in added:
                red.append((name, what, path, words))
    for name, what, path, words in sorted(red):
        print(f"{what:<6} {name}:{path}: {words}")
    fields = sum(len(shape(document.value)) for document in old.values())
    print(f"{len(old)} documents with {fields} fields, {len(red)} differences")
    return not red
