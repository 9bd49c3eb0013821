"""Documents that differ in one thing each, and what must be said of it."""

import copy
import pathlib
import struct
import tempfile

import parquet
from compare import Document, compared, differences

TREE = {
    "schema": "x/1",
    "seed": 7,
    "phases": [
        {"name": "warm", "offered": {"dhr": 0.5}, "p99_ms": 3.5, "worst": None},
        {"name": "top", "offered": {"dhr": 0.75}, "p99_ms": None, "worst": {"url": "/a"}},
    ],
    "doubts": [],
    "by.code": {"200": 5},
}
EXACT, LOOSE = ("schema", "seed", "*offered*"), ("*offered.loose",)


def lost(tree):
    del tree["phases"][0]["offered"], tree["phases"][1]["offered"]


def lost_with_a_point(tree):
    del tree["by.code"]["200"]


def renamed(tree):
    for phase in tree["phases"]:
        phase["p_99"] = phase.pop("p99_ms")


def change(*path_and_value):
    *path, last, value = path_and_value

    def to(tree):
        for step in path:
            tree = tree[step]
        tree[last] = value

    return to


CASES = (
    ("untouched", lambda tree: None, set()),
    ("a field is lost", lost, {"lost"}),
    ("a field with a point in its name, or in one above, is lost", lost_with_a_point, {"lost"}),
    ("a field has another name", renamed, {"lost", "added"}),
    ("a whole number became a text", change("seed", "7"), {"type", "value"}),
    ("a number became a whole one", change("phases", 0, "p99_ms", 3), {"type"}),
    ("an object became an array", change("phases", 1, "worst", [1]), {"type"}),
    ("a value of the stream is another", change("phases", 1, "offered", "dhr", 0.8), {"value"}),
    ("there is one phase more", lambda tree: tree["phases"].append(copy.deepcopy(tree["phases"][0])), set()),
    ("a value that depends on time is another", change("phases", 0, "p99_ms", 9.5), set()),
    ("what was null has a value", change("phases", 0, "worst", {"url": "/b"}), set()),
    ("what had a value is null", change("phases", 1, "worst", None), set()),
    ("what had no elements has some", change("doubts", [{"reason": "late"}]), set()),
    ("a field is new", change("fresh", 1), {"added"}),
)


def field(number, kind, value):
    return bytes([number << 4 | kind]) + value


def footer():
    """A Parquet file with a root and two columns, as Thrift writes them."""
    text = lambda words: bytes([len(words)]) + words.encode()
    root = field(4, 8, text("schema")) + field(1, 5, b"\x04") + b"\0"
    number = field(1, 5, b"\x04") + field(2, 5, b"\x00") + field(1, 8, text("at")) + b"\0"
    words = field(1, 5, b"\x0c") + field(2, 5, b"\x02") + field(1, 8, text("name")) + field(2, 5, b"\x00") + b"\0"
    body = field(1, 5, b"\x02") + field(1, 9, bytes([3 << 4 | 12]) + root + number + words) + b"\0"
    return parquet.MAGIC + body + struct.pack("<I", len(body)) + parquet.MAGIC


def columns():
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place, "a.parquet")
        path.write_bytes(footer())
        return parquet.columns(path)


def holds():
    """Prints a line for each case; true when all are seen as what they are."""
    good = True
    for what, touch, expected in CASES:
        tree = copy.deepcopy(TREE)
        touch(tree)
        found = {kind for kind, _, _ in differences(Document("a", TREE, EXACT, LOOSE), Document("a", tree, EXACT, LOOSE))}
        right = found == expected
        good = good and right
        print(f"{what}: {', '.join(sorted(found)) or 'the same'}, {'ok' if right else 'NOT ok'}")
    fresh = {"a": Document("a", TREE | {"fresh": 1})}
    old = {"a": Document("a", TREE)}
    cases = (
        ("a field that is named on the command line", compared(old, fresh, ["a:fresh"]), True),
        ("one that is not", compared(old, fresh), False),
        ("a document is lost", compared(old, {}), False),
        ("nothing is where something is to be the same", compared({"a": Document("a", TREE, ("sead",))}, old), False),
    )
    for what, found, expected in cases:
        good = good and found == expected
        print(f"{what}: {'green' if found else 'red'}, {'ok' if found == expected else 'NOT ok'}")
    read = {name: (column["type"], column["repetition"]) for name, column in columns().items()}
    right = read == {"at": ("INT64", "required"), "name": ("BYTE_ARRAY", "optional")}
    print(f"columns of a Parquet file: {read}, {'ok' if right else 'NOT ok'}")
    return good and right
