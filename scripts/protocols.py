"""Runs the same stream over every protocol, on both legs, through each proxy that can speak it, and compares the results.

`site` runs over HTTP/1.1 and HTTP/2 from robots, in the clear and over TLS on either leg, and over HTTP/2 to origins; the study's
listings `image` and `mixed`, `api` and `polymix-4` with each value of each leg once. What must be the same in every cell of a workload:
the digest of the requests that were due and the offered hit ratio, to the last digit. No response may have wrong content. The measured
document hit ratio may differ by one point from that of the same proxy, with the same version of HTTP, in the clear.

Each proxy is an experiment of its own in --dir (what a proxy cannot speak would be refused), and what was interrupted is gone on with.
Everything runs in a network of its own where that is possible (root), so that other runs can use the same machine.
Prints a table in Markdown for docs/how-to/use-http2.md; ends with 1 if something differs that must not.
Usage: protocols.py [--dir DIR] [--rehearse 20s] [--table] [EXPERIMENT]...
"""

import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ASSAY = os.environ.get("ASSAY", os.path.join(HERE, "target/release/assay"))
CONTENT = {
    "foreign", "wrong_object", "wrong_length", "wrong_bytes", "truncated_body", "wrong_version", "wrong_not_modified",
    "unrequested_coding",
    "stale", "hit_on_reload", "hit_on_uncachable", "malformed", "extra_bytes",
}
ALL_LEGS = ["none", "robots", "origins", "both"]
MEMORY = {"memory": "512MB", "disk": "0"}
DISK = {"memory": "64MB", "disk": "1GB"}
CACHES = {"builtin": MEMORY, "nginx": DISK, "haproxy": MEMORY, "httpd": DISK, "trafficserver": DISK, "squid": MEMORY, "varnish": MEMORY}
# Conditions of `site`, for each proxy what it can speak.
SITE = {
    "builtin": [{"robot-http": ["1.1", "2"], "tls": ALL_LEGS}, {"robot-http": ["1.1", "2"], "origin-http": "2", "tls": ["none", "both"]}],
    "nginx": [{"robot-http": ["1.1", "2"], "tls": ALL_LEGS}],
    "haproxy": [{"robot-http": ["1.1", "2"], "tls": ALL_LEGS}, {"robot-http": ["1.1", "2"], "origin-http": "2", "tls": ["none", "both"]}],
    "httpd": [{"robot-http": ["1.1", "2"], "tls": ALL_LEGS}, {"robot-http": ["1.1", "2"], "origin-http": "2", "tls": ["none", "both"]}],
    "trafficserver": [{"robot-http": "1.1", "tls": ALL_LEGS}, {"robot-http": "2", "tls": ["robots", "both"]}],
    "squid": [{"robot-http": "1.1", "tls": ["none", "robots"]}],
    "varnish": [{"robot-http": ["1.1", "2"], "tls": ["none", "robots"]}],
}
# Each value of each leg once.
TWICE = [{"robot-http": "1.1", "tls": "none"}, {"robot-http": "2", "tls": "both"}]
WORKLOADS = ["image", "mixed", "api", "polymix-4"]
THROUGH_ALL = ["builtin", "nginx", "haproxy", "httpd"]
MOST_APART = 0.01


def experiments():
    """Every experiment by its name: workloads, proxies and conditions."""
    found = {f"site-{proxy}": (["site"], [proxy], conditions) for proxy, conditions in SITE.items()}
    found["workloads"] = (WORKLOADS, THROUGH_ALL, TWICE)
    return found


def written(name, length):
    """The experiment as `assay lab` reads it."""
    workloads, proxies, conditions = experiments()[name]
    lines = [f"title = {json.dumps(f'Protocols: {name}')}", f"workloads = {json.dumps(workloads)}", f"rehearse = {json.dumps(length)}"]
    # Hit ratios are known on a busy machine, too, and hardly depend on what the system has in its cache of pages.
    lines += ["retries = 0", 'page-cache = "keep"']
    for proxy in proxies:
        lines += ["[[proxy]]", f"name = {json.dumps(proxy)}"] + [f"{key} = {json.dumps(size)}" for key, size in CACHES[proxy].items()]
    for condition in conditions:
        lines += ["[[condition]]"] + [f"{key} = {json.dumps(value)}" for key, value in condition.items()]
    return "\n".join(lines) + "\n"


def run(name, directory, length):
    """Runs an experiment, or goes on with it."""
    os.makedirs(directory, exist_ok=True)
    path, results = os.path.join(directory, f"{name}.toml"), os.path.join(directory, name)
    if not os.path.exists(path):
        with open(path, "w") as file:
            file.write(written(name, length))
    begun = os.path.exists(os.path.join(results, "experiment.json"))
    command = [ASSAY, "lab", path, "--resume" if begun else "--dir", results]
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if not os.path.exists(os.path.join(results, "experiment.json")):
        sys.exit(f"{' '.join(command)}: it ended with {ended.returncode}: {ended.stderr[-800:]}")


def cells(name, directory):
    """What each cell of an experiment came to: a record each."""
    results = os.path.join(directory, name)
    with open(os.path.join(results, "experiment.json")) as file:
        experiment = json.load(file)
    settings = {condition["label"]: condition["settings"] for condition in experiment["conditions"]}
    for cell in experiment["cells"]:
        record = {"workload": cell["workload"], "proxy": cell["subject"], "state": cell["state"], "why": cell["why"]}
        speaks = settings[cell["condition"]]
        record |= {"robots": speaks.get("robot-http", "1.1"), "origins": speaks.get("origin-http", "1.1"), "tls": speaks.get("tls", "none")}
        if cell["run"] and cell["state"] in ("done", "invalid"):
            report = [ASSAY, "report", os.path.join(results, cell["run"]), "--json", "--no-report"]
            total = json.loads(subprocess.run(report, capture_output=True, text=True, check=True).stdout)["total"]
            record |= {
                "digest": total["due_digest"], "due": total["due"], "offered": total["dhr"]["offered"], "measured": total["dhr"]["measured"],
                "wrong": sum(count for kind, count in total["errors"]["by_kind"].items() if kind in CONTENT),
                "errors": total["errors"]["by_kind"], "full": total["tls_full"], "streams": total["streams_opened"],
            }
        yield record


def problems(records):
    """What differs that must not, a sentence each."""
    for record in records:
        where = f"{record['workload']} through {record['proxy']} ({record['robots']} and {record['origins']}, TLS {record['tls']})"
        if "digest" not in record:
            yield f"{where}: {record['state']}: {record['why']}"
            continue
        first = next(other for other in records if other["workload"] == record["workload"] and "digest" in other)
        for what in ("digest", "due", "offered"):
            if record[what] != first[what]:
                yield f"{where}: {what} is {record[what]}, and {first[what]} in the first cell"
        if record["wrong"]:
            yield f"{where}: {record['wrong']} responses with wrong content: {record['errors']}"
        if (record["streams"] > 0) != (record["robots"] == "2"):
            yield f"{where}: {record['streams']} streams of HTTP/2"
        if (record["full"] > 0) != (record["tls"] in ("robots", "both")):
            yield f"{where}: {record['full']} TLS handshakes of robots"
        clear = clear_of(record, records)
        if clear and abs(clear["measured"] - record["measured"]) > MOST_APART:
            yield f"{where}: {100 * record['measured']:.1f} % hits, and {100 * clear['measured']:.1f} % in the clear"


def clear_of(record, records):
    """The same proxy in the clear, with the same version of HTTP from robots."""
    for other in records:
        alike = all(other[key] == record[key] for key in ("workload", "proxy", "robots", "origins"))
        if alike and other["tls"] == "none" and "digest" in other:
            return other
    return None


def table(records):
    """Markdown: a row for each proxy, workload and pair of versions."""
    print("| workload | proxy | robots | origins | clear | TLS from robots | TLS to origins | both |\n|---|---|---|---|--:|--:|--:|--:|")
    rows = {}
    for record in records:
        key = tuple(record[key] for key in ("workload", "proxy", "robots", "origins"))
        if "digest" in record:
            rows.setdefault(key, {})[record["tls"]] = f"{100 * record['measured']:.1f}"
    for (workload, proxy, robots, origins), of_legs in rows.items():
        found = " | ".join(of_legs.get(legs, "") for legs in ALL_LEGS)
        print(f"| `{workload}` | {proxy} | {robots} | {origins} | {found} |")
    for workload in dict.fromkeys(record["workload"] for record in records):
        of = [record for record in records if record["workload"] == workload and "digest" in record]
        if of:
            offered = ", ".join(sorted({f"{100 * record['offered']:.4f}" for record in of}))
            digests = len({record["digest"] for record in of})
            print(f"\n`{workload}`: {len(of)} cells, {of[0]['due']} requests each, {digests} digest of requests, offered {offered} %, "
                  f"{sum(record['wrong'] for record in of)} responses with wrong content", end="")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", default=os.path.join(HERE, "target/protocols"), help="where experiments are kept")
    parser.add_argument("--rehearse", default="20s", help="length of each schedule")
    parser.add_argument("--table", action="store_true", help="run nothing; report what is there")
    parser.add_argument("experiment", nargs="*", help=", ".join(experiments()))
    args = parser.parse_args()
    chosen = args.experiment or list(experiments())
    unknown = [name for name in chosen if name not in experiments()]
    if unknown:
        parser.error(f"there is no experiment {unknown[0]}; there are {', '.join(experiments())}")
    if not args.table:
        for name in chosen:
            run(name, args.dir, args.rehearse)
    there = [name for name in chosen if os.path.exists(os.path.join(args.dir, name, "experiment.json"))]
    records = [record for name in there for record in cells(name, args.dir)]
    table(records)
    found = list(problems(records))
    print("\n".join(found), file=sys.stderr)
    sys.exit(1 if found or not records else 0)


if __name__ == "__main__":
    main()
