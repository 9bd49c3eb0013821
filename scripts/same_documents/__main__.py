"""Do two builds of Assay say the same? Runs both on the same inputs and seeds, and compares their documents field by field.

Usage: same-documents OLD NEW [--added DOCUMENT:PATH]…
       same-documents --self-test

Every field that OLD has must be in NEW, with its type; NEW may have others only where --added names them. Values that follow
from the inputs must be the same: streams, digests, offered ratios, simulations, analyses of logs. Values that depend on time are
compared by their types. Ends with 0 if all is so, and with 1 after a line for each difference.
"""

import argparse
import concurrent.futures
import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "verify"))

import gather
import self_test
from build import Build
from compare import compared


def of(binary, directory):
    """{name: document} of a build."""
    directory.mkdir(parents=True)
    build = Build(pathlib.Path(binary).resolve(), directory)
    try:
        return {document.name: document for document in gather.documents(build)}
    finally:
        build.close()


def main():
    parser = argparse.ArgumentParser(
        prog="same-documents", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", nargs="?", metavar="OLD", help="the binary of before")
    parser.add_argument("new", nargs="?", metavar="NEW", help="the binary of after")
    parser.add_argument("--added", action="append", default=[], metavar="DOCUMENT:PATH", help="a field that NEW may have")
    parser.add_argument("--self-test", action="store_true", help="compare documents that differ, and see it")
    args = parser.parse_args()
    if args.self_test:
        return not self_test.holds()
    if not args.new:
        parser.error("name two binaries, or --self-test")
    with tempfile.TemporaryDirectory(prefix="assay-same-") as place, concurrent.futures.ThreadPoolExecutor() as pool:
        sides = [pool.submit(of, binary, pathlib.Path(place, side)) for binary, side in ((args.old, "old"), (args.new, "new"))]
        old, new = (side.result() for side in sides)
    return not compared(old, new, args.added)


sys.exit(main())
