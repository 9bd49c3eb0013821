"""Columns of a Parquet file: names, types and whether they may be empty, from its footer (Thrift's compact protocol)."""

import struct

MAGIC = b"PAR1"
# As in parquet.thrift.
TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
REPETITIONS = ("required", "optional", "repeated")
SCHEMA = 2  # FileMetaData.schema
TYPE, REPETITION, NAME, CHILDREN, CONVERTED, LOGICAL = 1, 3, 4, 5, 6, 10  # SchemaElement


class Compact:
    """Reads values one after the other; a structure is a dictionary by field number."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def zigzag(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def take(self, length):
        self.at += length
        return self.data[self.at - length : self.at]

    def value(self, kind):
        match kind:
            case 1 | 2:  # of a field, the kind itself is the value
                return kind == 1
            case 3:
                return self.byte()
            case 4 | 5 | 6:
                return self.zigzag()
            case 7:
                return struct.unpack("<d", self.take(8))[0]
            case 8:
                return self.take(self.varint())
            case 9 | 10:
                head = self.byte()
                length = head >> 4 if head >> 4 < 15 else self.varint()
                return [self.element(head & 15) for _ in range(length)]
            case 12:
                return self.structure()
            case _:
                raise ValueError(f"a Thrift value of kind {kind}")

    def element(self, kind):
        return self.byte() == 1 if kind in (1, 2) else self.value(kind)

    def structure(self):
        fields, number = {}, 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.zigzag()
            fields[number] = self.value(head & 15)
        return fields


def columns(path):
    """{name: {"type", "repetition", "converted", "logical"}} of a table without groups of columns."""
    data = path.read_bytes()
    if data[:4] != MAGIC or data[-4:] != MAGIC:
        raise ValueError(f"{path} is no Parquet file")
    (length,) = struct.unpack("<I", data[-8:-4])
    _root, *elements = Compact(data[-8 - length : -8]).structure()[SCHEMA]
    return {
        element[NAME].decode(): {
            "type": TYPES[element[TYPE]],
            "repetition": REPETITIONS[element[REPETITION]],
            "converted": element.get(CONVERTED),
            "logical": sorted(map(str, element.get(LOGICAL, {}))),
        }
        for element in elements
    }
