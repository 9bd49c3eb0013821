"""What one learns from each page of the gallery, in sentences that are made from the documents of its runs.

No number is typed here, and no outcome is presumed: where a figure may be larger or smaller, the sentence has a form for either, and
where a run leaves a figure open, the interval is given.
"""

import json

NAMES = {"varnish": "Varnish", "trafficserver": "Traffic Server", "squid": "Squid", "nginx": "nginx", "haproxy": "HAProxy",
         "httpd": "httpd", "builtin": "the built-in proxy", "lru": "LRU", "fifo": "FIFO", "s3-fifo": "S3-FIFO", "gdsf": "GDSF"}


def document(path):
    """A JSON document."""
    with open(path) as file:
        return json.load(file)


def figures(run):
    """The headline figures of a run."""
    return document(run / "summary.json")["headline"]["figures"]


def named(label):
    return NAMES.get(label, label)


def capital(text):
    return text[:1].upper() + text[1:]


def listed(items):
    """`a, b and c`."""
    items = list(items)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def digits(value):
    """Three significant digits."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def time(ms):
    """A time with its unit."""
    if ms < 0.9995:
        return f"{ms * 1000:.0f} µs"
    return f"{digits(ms)} ms" if ms < 1000 else f"{digits(ms / 1000)} s"


def percent(share):
    return f"{share * 100:.1f} %"


def size(count):
    """Bytes, in powers of 1,024."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024 or unit == "GB":
            return f"{count:.0f} {unit}" if count >= 10 or unit == "B" else f"{count:.1f} {unit}"
        count /= 1024


def known(stats, name):
    """A percentile, or the interval that it lies in if that is wider than a tenth of it."""
    value, own = stats[name], stats.get("own", {}).get(name)
    if value is None:
        return "an unknown time"
    if own is None or own["high"] - own["low"] <= 0.1 * value:
        return time(value)
    if own["low"] < 0.05 * own["high"]:
        return f"at most {time(own['high'])}"
    return f"between {time(own['low'])} and {time(own['high'])}"


def certainly_least(runs, name):
    """The label whose figure is smaller than all others whatever disturbed the runs, or None."""
    def bounds(stats):
        own = stats.get("own", {}).get(name)
        return (own["low"], own["high"]) if own else (stats[name], stats[name])
    best = min(runs, key=lambda label: runs[label][name])
    others = [bounds(stats)[0] for label, stats in runs.items() if label != best]
    return best if bounds(runs[best])[1] < min(others) else None


def row(comparison, metric):
    """The means of a metric in the first table of a comparison, by subject."""
    rows = [row for row in comparison["tables"][0]["rows"] if row["metric"] == metric]
    return {subject["label"]: value["mean"] for subject, value in zip(comparison["subjects"], rows[0]["values"])}


def phases(comparison):
    names = comparison["tables"][0]["phases"]
    return f"phase {names[0]}" if len(names) == 1 else f"the phases {listed(names)}"


def which_proxy(place):
    comparison = document(place / "images.json")
    hits = {run["subject"]: figures(place / "images/cells" / run["directory"].rsplit("/", 1)[-1])["response_time_ms"]["hit"]
            for run in comparison["runs"]}
    cost, ratio, memory = (row(comparison, metric) for metric in ("cpu_us_per_request", "dhr", "rss_peak_bytes"))
    fastest = certainly_least(hits, "p50")
    order = sorted(cost, key=cost.get)
    least, most = percent(min(ratio.values())), percent(max(ratio.values()))
    served = f"all proxies served {most}" if least == most else f"the proxies served between {least} and {most}"
    said = [f"In {phases(comparison)}, {served} of the requests from their stores; an infinite cache would have served "
            f"{percent(max(row(comparison, 'dhr_ideal').values()))}."]
    if fastest:
        said.append(f"{capital(named(fastest))} was the fastest: its median hit took {known(hits[fastest], 'p50')}.")
    else:
        times = listed(f"{named(label)} {known(hits[label], 'p50')}" for label in sorted(hits, key=lambda one: hits[one]["p50"]))
        said.append(f"Which one was the fastest cannot be told from one run each on this machine: the median hit took {times}.")
    said.append(f"A request cost {named(order[0])} {cost[order[0]]:.0f} µs of processor time, and {named(order[-1])} "
                f"{cost[order[-1]]:.0f} µs; memory ranged from {size(min(memory.values()))} ({named(min(memory, key=memory.get))}) to "
                f"{size(max(memory.values()))} ({named(max(memory, key=memory.get))}).")
    return said


def cache_size(place):
    result = document(place / "size.json")
    curves = {curve["policy"]: curve["points"] for curve in result["curves"]}
    sizes = [point["size_bytes"] for point in curves["lru"]]
    share = {policy: [point["hits"] / point["requests"] for point in points] for policy, points in curves.items()}
    others = [policy for policy in share if policy != "lru"]
    gap, at, other = max((share[other][at] - share["lru"][at], at, other) for other in others for at in range(len(sizes)))
    said = result["advice"][:1]
    if gap > 0:
        said.append(f"The choice of a policy matters most in a small cache: with {size(sizes[at])}, {named(other)} serves "
                    f"{percent(share[other][at])} and LRU {percent(share['lru'][at])}.")
    infinite = result["infinite"]
    said.append(f"No cache can serve more than {percent(infinite['hits'] / infinite['requests'])} of these requests: the others are "
                "for objects that were not requested before, or have changed since.")
    return said


def vcl_change(place):
    comparison = document(place / "comparison.json")
    ratio, kept = row(comparison, "dhr"), row(comparison, "offload_bytes")
    fall = (ratio["before"] - ratio["after"]) * 100
    outcomes = figures(place / "after")["outcomes"]
    said = [f"{'Yes' if fall > 1 else 'No'}: in {phases(comparison)} the hit ratio was {percent(ratio['before'])} before and "
            f"{percent(ratio['after'])} after the change, where one point less was allowed. "
            + ("`assay compare` ends with exit code 99, which fails a job in CI."
               if comparison["gate"]["outcome"] == "regressed" else "`assay compare` ends with exit code 0.")]
    if outcomes["revalidated"] > 0:
        said.append(f"{capital(percent(outcomes['revalidated'] / sum(outcomes.values())))} of the requests after the change were "
                    "revalidations: the stored object had expired, and the origin confirmed it with 304.")
    said.append(f"Such responses still save bytes ({percent(kept['before'])} kept from the origins before, {percent(kept['after'])} "
                f"after), but each waits for the origin: the median response took {time(row(comparison, 'response_p50_ms')['before'])} "
                f"before, and {time(row(comparison, 'response_p50_ms')['after'])} after.")
    return said


def tls(place):
    comparison = document(place / "comparison.json")
    cost = row(comparison, "cpu_us_per_request")
    hit = {name: figures(place / name)["response_time_ms"]["hit"] for name in ("clear", "tls")}
    total = figures(place / "tls")
    handshakes = total["tls_full"] + total["tls_resumed"]
    return [f"A request cost nginx {cost['clear']:.0f} µs of processor time in the clear, and {cost['tls']:.0f} µs over TLS: "
            f"{cost['tls'] / cost['clear']:.1f} times as much.",
            f"The {total['requests']:,} requests of phase {document(place / 'tls/summary.json')['headline']['phases'][0]} took "
            f"{handshakes:,} handshakes, of which {total['tls_resumed']:,} resumed an earlier session: connections that are kept "
            "open longer would lower the cost.",
            f"The median hit took {known(hit['clear'], 'p50')} in the clear and {known(hit['tls'], 'p50')} over TLS."]


def right(place):
    result = document(place / "conform.json")
    targets = [target["label"] for target in result["targets"]]
    failed = {label: [one for one in result["results"] if one["target"] == label and one["level"] == "MUST"
                      and one["verdict"] in ("fail", "sometimes")] for label in targets}
    cases = {one["case"] for one in result["results"]}
    musts = {one["case"] for one in result["results"] if one["level"] == "MUST"}
    counts = listed(f"{named(label)} {len(failed[label])}" for label in targets)
    said = [f"Each of {len(cases)} cases was tried on each of {len(targets)} caches. {len(musts)} cases are a MUST of the "
            f"specifications; of these are not met: {counts}."]
    for label in targets:
        # What is easiest to understand: a response that came from the store and must not.
        from_store = [one for one in failed[label] if "came from the store" in one["reason"]]
        if failed[label]:
            one = (from_store or failed[label])[0]
            said.append(f"An example, of {named(label)}: \"{one['rule']}\" ({one['section']}), and here {one['reason']}.")
            break
    said.append("The page has the bytes that were exchanged for every case that does not hold.")
    return said


def key(place):
    before, after = (document(place / name)["infinite"] for name in ("size.json", "dropped.json"))
    suggestions = document(place / "size.json")["suggestions"]
    best = max(suggestions, key=lambda one: one["gained_points"])
    said = [f"The parameter that costs most is the one in `--key '{best['rule']}'`: without it, a cache without bounds would gain "
            f"{best['gained_points']:.1f} points of hits."]
    unsafe = [one for one in suggestions if not one["is_safe"]]
    if unsafe:
        said.append(f"`{unsafe[0]['rule']}` is reported with a warning: {unsafe[0]['different_length']:,} responses would have had another "
                    "length, so that parameter selects content and must stay.")
    said.append(f"With both parameters of campaigns out of the key, hits rise from {percent(before['hits'] / before['requests'])} to "
                f"{percent(after['hits'] / after['requests'])}; with them in it, no cache is large enough.")
    return said


def limit(place):
    peak = document(place / "peak/peak.json")
    promise = ", ".join(peak["promise"])
    if peak["peak_per_s"] is None:
        return [f"No rate that was tried kept {promise}: the page shows what was seen at each."]
    said = [f"nginx kept {promise} up to {peak['peak_per_s']:,.0f} requests a second"
            + (f", and not at {peak['broken_per_s']:,.0f}." if peak["broken_per_s"] else ".")]
    full = [one["seen"] for one in peak["suspects"] if one["is_full"]]
    said.append(f"Used up first: {full[0]}." if full else "No resource was used up: what limits it is not known.")
    said.append("The search had time to confirm the limit." if peak["is_confirmed"] else
                f"A search of this length gives a first reading only ({peak['ended']}); half an hour, the default, narrows it down to 4.5 %.")
    return said


def users(place):
    log = document(place / "log.json")
    everything = log["all"]
    classes = sorted(log["by_class"], key=lambda one: -one["figures"]["requests"])
    slow = max((one for one in classes if one["figures"]["requests"] > 10),
               key=lambda one: one["figures"]["response"]["p50_ms"])
    return [f"Of {everything['requests']:,} requests, {percent(everything['dhr'])} were hits, and of {size(everything['bytes'])} that "
            f"were sent, {percent(everything['bhr'])} came from the cache.",
            f"Half of the users had their response within {time(everything['response']['p50_ms'])}, and one in a hundred waited "
            f"{time(everything['response']['p99_ms'])} or longer.",
            f"The slowest common outcome was \"{slow['name']}\" ({slow['figures']['requests']:,} requests), with a median of "
            f"{time(slow['figures']['response']['p50_ms'])}."]


def balancing(place):
    points = document(place / "policies.json")["points"]
    rate = max(point["rate_per_s"] for point in points)
    tail = {point["policy"]: point["response_us"]["p99"] / 1000 for point in points if point["rate_per_s"] == rate}
    order = sorted(tail, key=tail.get)
    low = min(point["rate_per_s"] for point in points)
    easy = {point["policy"]: point["response_us"]["p99"] / 1000 for point in points if point["rate_per_s"] == low}
    return [f"At {rate:.0f} requests a second, the 99th percentile lies between {time(tail[order[0]])} (`{order[0]}`) and "
            f"{time(tail[order[-1]])} (`{order[-1]}`).",
            f"At {low:.0f} a second the same policies are between {time(min(easy.values()))} and {time(max(easy.values()))}: what a "
            "policy is worth shows under load.",
            f"The three with the shortest tail under load are {listed(f'`{name}`' for name in order[:3])}."]


def siblings(place):
    comparison = document(place / "pair.json")
    ratio, joint = row(comparison, "dhr"), row(comparison, "sibling_hits")
    gain = (ratio["siblings"] - ratio["separate"]) * 100
    ideal = max(row(comparison, "dhr_ideal").values())
    said = [f"{'Yes' if gain > 1 else 'Hardly'}: in {phases(comparison)}, two separate caches of 8 MB served "
            f"{percent(ratio['separate'])} of the requests, and the same two as siblings {percent(ratio['siblings'])}.",
            f"{percent(joint['siblings'])} of the requests were for objects that the other cache had."]
    # Where much was late, it can be below what was measured, and says nothing.
    if ideal >= max(ratio.values()):
        said.append(f"An infinite cache would have served {percent(ideal)}.")
    return said


def live_traffic(place):
    result = document(place / "live.json")
    targets = {target["label"]: target for target in result["targets"]}
    proxies = [label for label in targets if label != "direct"]
    saved = listed(f"{named(label)} {percent(targets[label]['requests_saved'])}" for label in proxies)
    wrong = sum(targets[label]["not_matching"]["value"] > 0 for label in proxies)
    said = [f"Each proxy got the same {result['requests']:,} requests as the clients' server. Of the requests to the origin were saved: {saved}.",
            "All responses of all proxies were the same as those that the clients had." if wrong == 0 else
            f"{wrong} of the proxies sent responses that differ from those that the clients had; the page lists them."]
    fastest = next(one["text"] for one in result["verdict"] if one["question"].startswith("Which was the fastest"))
    return [*said, f"Which was the fastest? {fastest}"]


def slow_link(place):
    near, far = (figures(place / name) for name in ("near", "far"))
    summary = document(place / "far/summary.json")
    speed = next(one["text"] for one in summary["verdict"] if one["about"] == "speed")
    return [f"Over the link: {speed}",
            f"The median hit took {known(near['response_time_ms']['hit'], 'p50')} without the link, and "
            f"{known(far['response_time_ms']['hit'], 'p50')} over it; a round trip alone is 80 ms.",
            f"The headline phase without the link sent {near['bandwidth_mbit_s']['client_in']:.1f} Mbit/s to clients; the link carries 10."]
