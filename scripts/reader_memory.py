#!/usr/bin/env python3
"""The most memory that commands take for what they read, as multiples of it.

    scripts/reader_memory.py ASSAY [--evaluation DIR]

makes inputs of some 15 to 145 MB in a temporary directory, has the program ASSAY read each, and prints the most memory that the
process had, what it has for hardly any input, and the difference over the input's length. With the directory of an
evaluation, and pyarrow, its table of responses is replaced by one of 3.6 million rows in a copy.
"""

import argparse
import os
import pathlib
import random
import shutil
import struct
import subprocess
import tempfile

LINE = "%.3f 100 10.0.1.1 TCP_MISS/200 1000 GET http://www.example.com/objects/of/some/length/%d.html - HIER_DIRECT/192.0.2.1 text/html\n"


def peak_kb(command):
    """The most resident memory of a process, in KB; it may end as it likes."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_maxrss


def squid_log(path, lines, objects):
    with path.open("w") as out:
        out.writelines(LINE % (1e9 + n * 0.01, n % objects) for n in range(lines))


def oracle_general(path, requests):
    with path.open("wb") as out:
        for n in range(requests):
            out.write(struct.pack("<IQIq", n // 1000, n * 2654435761 % 2**60, 1000, -1))


def csv(path, requests):
    with path.open("w") as out:
        out.write("time,id,size\n")
        out.writelines("%d,%d,1000\n" % (n // 1000, n) for n in range(requests))


def switch_file(path, classes):
    with path.open("w") as out:
        out.write('listen = "127.0.0.1:0"\n[[server]]\naddress = "127.0.0.1:9"\n')
        out.writelines('[[class]]\nname = "c%d"\nprefix = "/%d/"\n' % (n, n) for n in range(classes))


def workload(path, lines):
    with path.open("w") as out:
        out.writelines("Content unused%d = { size = exp(%dKB); cachable = 80%%; };\n" % (n, n % 100 + 1) for n in range(lines))


def responses(path, schema_of, groups=60, rows=60_000):
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.parquet.ParquetFile(schema_of).schema_arrow
    chance = random.Random(3)
    fixed = {"client": "127.0.0.1", "method": "GET", "version": "HTTP/1.1", "status": 200, "head_bytes": 200}
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as out:
        for group in range(groups):
            numbers = range(group * rows, (group + 1) * rows)
            columns = {name: [value] * rows for name, value in fixed.items()}
            columns |= {"request": [n // 2 for n in numbers], "at_us": [n * 500 for n in numbers]}
            columns |= {name: [n % 2 for n in numbers] for name in ("target", "place")}
            columns |= {name: [chance.randrange(100_000) for _ in numbers]
                        for name in ("connect_us", "first_byte_us", "transfer_us", "body_bytes")}
            columns["url"] = ["http://www.example.com/objects/%d" % (n // 2) for n in numbers]
            columns["checksum"] = ["%032x" % chance.getrandbits(128) for _ in numbers]
            columns["verdict"] = ["OK" if n % 2 else "NOT_COMPARED" for n in numbers]
            columns |= {name: [None] * rows for name in ("header", "error")}
            arrays = {field.name: pyarrow.array(columns[field.name], type=field.type) for field in schema}
            out.write_table(pyarrow.table(arrays, schema=schema))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("assay")
    arguments.add_argument("--evaluation", type=pathlib.Path)
    given = arguments.parse_args()
    assay = os.path.abspath(given.assay)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cases = [
            ("access log, 200,000 URLs", "a.log", lambda p, n: squid_log(p, n, 200_000), 1_000_000, ["logs", "{}", "--json"]),
            ("access log, each URL another", "b.log", lambda p, n: squid_log(p, n, n), 1_000_000, ["logs", "{}", "--json"]),
            ("access log to size a cache", "c.log", lambda p, n: squid_log(p, n, n), 1_000_000, ["size", "{}", "--policy", "lru"]),
            ("trace (oracleGeneral), each object another", "t.oracleGeneral.bin", oracle_general, 4_000_000,
             ["size", "{}", "--policy", "lru"]),
            ("trace (CSV), each object another", "t.csv", csv, 4_000_000, ["size", "{}", "--policy", "lru"]),
            ("switch file (TOML)", "s.toml", switch_file, 300_000, ["switch", "check", "{}"]),
            ("workload (PGL)", "w.pg", workload, 200_000, ["check", "{}"]),
        ]
        print("| input | MB | most memory, MB | of these, with hardly any input | multiple of the input |\n|---|---|---|---|---|")
        for what, file, make, count, command in cases:
            path = folder / file
            measured = []
            for so_many in (10, count):
                make(path, so_many)
                measured.append(peak_kb([assay, *(word.format(path) for word in command)]) * 1024)
            tell(what, path, *measured)
            path.unlink()
        if given.evaluation:
            copy = folder / "evaluation"
            shutil.copytree(given.evaluation, copy)
            table = copy / "responses.parquet"
            report = [assay, "spe", "report", str(copy), "--json"]
            base = peak_kb(report) * 1024
            responses(table, given.evaluation / "responses.parquet")
            tell("table of an evaluation (Parquet)", table, base, peak_kb(report) * 1024)


def tell(what, path, base, most):
    length = path.stat().st_size
    print(f"| {what} | {length / 1e6:.0f} | {most / 1e6:.0f} | {base / 1e6:.0f} | {(most - base) / length:.1f} |", flush=True)


if __name__ == "__main__":
    main()
