"""Compares results of `assay conform` with those of h2spec, on requirements on HTTP/2 that both test.

PAIRS has a test of h2spec (its package and its number there) and the case that sends the same frames. h2spec is content with an error code, or with
the end of the connection; a case on what is malformed looks whether the request reached the origin. A server may respond to a
malformed request before it resets the stream (RFC 9113, 8.1.1), which h2spec takes for a failure: where a response came last
and the case holds, the pair is counted by itself (`responds`). A skipped test, and a case that is inconclusive or lacks what it depends on, say nothing.

H2SPEC.xml is made by `h2spec http2 -o 1 -j FILE` (2.2.1) with the proxy started by Assay: a case of one's own over HTTP/2 that waits for a
minute keeps it there.

Usage: conform_agreement_http2.py CONFORM.json LABEL=H2SPEC.xml...
"""

import re
import sys
import xml.etree.ElementTree

from conform_agreement import DECIDED, results_of

PAIRS = {
    "4.1/1": "http2-unknown-is-ignored/frame",
    "4.1/2": "http2-unknown-is-ignored/flag",
    "4.3/1": "http2-connection-error/header-block-garbled",
    "5.1/1": "http2-connection-error/data-on-idle-stream",
    "5.1/2": "http2-connection-error/rst-on-idle-stream",
    "5.1/4": "http2-connection-error/continuation-alone",
    "5.1/5": "http2-stream-error/data-behind-the-end",
    "5.1.1/1": "http2-connection-error/headers-on-even-stream",
    "5.1.1/2": "http2-streams-count-up",
    "5.1.2/1": "http2-streams-at-once",
    "5.5/2": "http2-header-block-interrupted/unknown",
    "6.1/1": "http2-connection-error/data-on-stream-0",
    "6.2/3": "http2-connection-error/headers-on-stream-0",
    "6.2/4": "http2-connection-error/padding-too-long",
    "6.4/1": "http2-connection-error/rst-on-stream-0",
    "6.5/1": "http2-connection-error/settings-ack-with-payload",
    "6.5/2": "http2-connection-error/settings-on-a-stream",
    "6.5/3": "http2-connection-error/settings-of-bad-length",
    "6.5.2/1": "http2-connection-error/enable-push-2",
    "6.5.2/2": "http2-connection-error/window-of-2-to-the-31",
    "6.5.2/3": "http2-connection-error/small-frame-size",
    "6.5.2/5": "http2-unknown-is-ignored/setting",
    "6.5.3/2": "http2-settings-acknowledged",
    "6.7/1": "http2-ping-acknowledged",
    "6.7/3": "http2-connection-error/ping-on-a-stream",
    "6.7/4": "http2-connection-error/ping-of-bad-length",
    "6.8/1": "http2-connection-error/goaway-on-a-stream",
    "6.9/1": "http2-connection-error/window-update-of-zero",
    "6.9/2": "http2-stream-error/window-update-of-zero",
    "6.9/3": "http2-connection-error/window-update-of-bad-length",
    "6.9.1/1": "http2-window-respected",
    "6.9.1/2": "http2-connection-error/window-update-too-large",
    "6.9.1/3": "http2-stream-error/window-update-too-large",
    "6.10/1": "http2-continuation",
    "8.1.2/1": "http2-malformed-field/upper-case",
    "8.1.2.1/1": "http2-malformed-pseudo/unknown",
    "8.1.2.1/2": "http2-malformed-pseudo/status",
    "8.1.2.1/3": "http2-pseudo-in-trailers/method",
    "8.1.2.1/4": "http2-pseudo-behind/all",
    "8.1.2.2/1": "http2-connection-specific/connection",
    "8.1.2.2/2": "http2-connection-specific/te-trailers-and-gzip",
    "8.1.2.3/1": "http2-missing-pseudo/empty-path",
    "8.1.2.3/2": "http2-missing-pseudo/method",
    "8.1.2.3/3": "http2-missing-pseudo/scheme",
    "8.1.2.3/4": "http2-missing-pseudo/path",
    "8.1.2.3/5": "http2-malformed-pseudo/method-twice",
    "8.1.2.3/6": "http2-malformed-pseudo/scheme-twice",
    "8.1.2.3/7": "http2-malformed-pseudo/path-twice",
    "8.1.2.6/1": "http2-content-length/too-short",
    "8.2/1": "http2-connection-error/push-promise",
}


def tests(path):
    """By package and number: none (passed), what came where it failed, or "skipped"."""
    found = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        # What a target sent is in it as it came.
        text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "?", file.read())
    for suite in xml.etree.ElementTree.fromstring(text).iter("testsuite"):
        for number, case in enumerate(suite.findall("testcase"), 1):
            said = case.find("failure") if case.find("failure") is not None else case.find("error")
            # What was expected, a line each, and then what came.
            text = None if said is None else (said.text or "failed").strip().splitlines()[-1]
            if case.find("skipped") is not None:
                text = "skipped"
            found[f"{suite.get('package').removeprefix('http2/')}/{number}"] = text
    return found


def main():
    results = results_of(sys.argv[1], PAIRS.values())
    if results is None:
        return 2
    sums, differences = [0, 0, 0], []
    print("| target | requirements that both decide | same | share | `responds` |\n|---|--:|--:|--:|--:|")
    for pair in sys.argv[2:]:
        label, path = pair.split("=", 1)
        theirs = tests(path)
        missing = [test for test in PAIRS if test not in theirs]
        if missing:
            print(f"{path} has no {', '.join(missing)}", file=sys.stderr)
            return 2
        decided = same = responds = 0
        for test, case in PAIRS.items():
            result, said = results.get((label, case)), theirs[test]
            if result is None or result["verdict"] not in DECIDED or said == "skipped":
                continue
            holds = DECIDED[result["verdict"]]
            is_malformed = test.startswith("8.1.2")
            if is_malformed and holds and said and said.startswith(("HEADERS", "DATA")):
                responds += 1
                continue
            decided += 1
            if holds == (said is None):
                same += 1
            else:
                differences.append(f"{label}: {test} {said or 'passes'}; `{case}` {result['verdict']} {result.get('reason', '')}")
        sums = [sums[0] + decided, sums[1] + same, sums[2] + responds]
        print(f"| {label} | {decided} | {same} | {same / max(decided, 1):.1%} | {responds} |")
    print(f"| all | {sums[0]} | {sums[1]} | {sums[1] / max(sums[0], 1):.1%} | {sums[2]} |\n")
    print("\n".join(differences))
    return 0


if __name__ == "__main__":
    sys.exit(main())
