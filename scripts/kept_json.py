"""Writes JSON that is kept in the repository: a line for each object or list that contains no other."""

import json


def text(value, indent=""):
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    if not any(isinstance(item, (dict, list)) and item for item in items):
        return json.dumps(value)
    more = indent + " "
    if isinstance(value, dict):
        lines = [f"{more}{json.dumps(name)}: {text(item, more)}" for name, item in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(more + text(item, more) for item in value) + f"\n{indent}]"
