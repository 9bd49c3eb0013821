"""Runs every SQL and Python example of a documentation page, in order.

    python examples.py PAGE.md

in a run directory. Says how many there were; fails where one does not run or has nothing to show.
"""

import re
import sys

import duckdb

page = open(sys.argv[1], encoding="utf-8").read()
namespace, connection, ran = {}, duckdb.connect(), 0
for language, text in re.findall(r"^```(sql|python)\n(.*?)^```", page, re.M | re.S):
    ran += 1
    if language == "python":
        exec(compile(text, f"example {ran}", "exec"), namespace)
        continue
    result = connection.execute(text)
    rows = result.fetchall()
    assert rows or text.startswith("CREATE"), f"example {ran} has no rows:\n{text}"
    print(text, *rows[:3], sep="\n")
print(f"{ran} examples ran")
