"""Compares results of `assay conform` with those of the public suite http-cache-tests (npm), on requirements that both test.

PAIRS has a test of that suite and the case that tries the same: the same fields from the origin, the same request, the same thing looked
for. `!` marks pairs that look for opposite things: they agree if one holds and the other does not. (The suite wants a response with an
`Age` that is no number to count as stale; RFC 9111, 5.1, says that such an `Age` should be ignored.) Only pairs that both decide are counted: a
test that failed in its set-up or one whose dependencies (`depends_on`) failed, and a case that is inconclusive or lacks what it depends on,
say nothing. TESTS.json is the suite's own list, from its `export.mjs`; results are made by its `cli.mjs` with the proxy in front of its server,
configured as Assay configures it.

Usage: conform_agreement.py CONFORM.json TESTS.json LABEL=SUITE.json...
"""

import json
import sys

PAIRS = {
    "age-parse-negative": "!age-invalid/negative",
    "age-parse-nonnumeric": "!age-invalid/letters",
    "cc-resp-no-cache": "no-cache-response/plain",
    "cc-resp-no-store": "no-store-response/plain",
    "cc-resp-no-store-fresh": "no-store-response/with-max-age",
    "cc-resp-no-store-case-insensitive": "no-store-response/upper-case",
    "cc-resp-no-cache-case-insensitive": "no-cache-response/upper-case",
    "cc-resp-private-shared": "private/plain",
    "ccreq-ma0": "request-max-age-zero",
    "ccreq-max-stale": "request-max-stale/number",
    "ccreq-no-cache": "request-no-cache/plain",
    "ccreq-no-store": "!request-no-store-from-store",
    "ccreq-oic": "only-if-cached-not-stored",
    "conditional-etag-precedence": "if-none-match-over-if-modified-since",
    "conditional-etag-strong-generate": "validates-etag",
    "conditional-etag-strong-respond": "if-none-match-on-fresh/same",
    "conditional-etag-strong-respond-multiple-second": "if-none-match-compared/second-of-list",
    "conditional-etag-weak-respond": "if-none-match-compared/weak-against-weak",
    "conditional-lm-fresh": "if-modified-since-on-fresh/same",
    "conditional-lm-fresh-rfc850": "if-modified-since-on-fresh/same-rfc850",
    "freshness-expires-future": "fresh-by/expires",
    "freshness-expires-invalid": "invalid-expires/zero",
    "freshness-expires-past": "zero-lifetime/expires-past",
    "freshness-expires-present": "zero-lifetime/expires-now",
    "freshness-max-age": "stores",
    "freshness-max-age-0": "zero-lifetime/max-age",
    "freshness-max-age-age": "age-of-origin-counts/older-than-lifetime",
    "freshness-max-age-case-insenstive": "fresh-by/max-age-upper-case",
    "freshness-max-age-date": "date-counts-towards-age/max-age",
    "freshness-max-age-expires": "max-age-over-past-expires/past",
    "freshness-max-age-expires-invalid": "max-age-over-past-expires/invalid",
    "freshness-max-age-0-expires": "max-age-over-expires",
    "freshness-max-age-leading-zero": "fresh-by/max-age-leading-zeros",
    "freshness-max-age-max-plus-1": "fresh-by/max-age-2-to-the-31",
    "freshness-max-age-quoted": "max-age-quoted",
    "freshness-max-age-s-maxage-shared-longer": "stale-max-age/s-maxage-above-max-age",
    "freshness-max-age-s-maxage-shared-longer-reversed": "stale-max-age/s-maxage-first",
    "freshness-s-maxage-shared": "fresh-by/s-maxage",
    "headers-omit-headers-listed-in-Connection": "connection-of-response-not-stored",
    "heuristic-201-not_cached": "unknown-status-without-freshness/201",
    "heuristic-202-not_cached": "unknown-status-without-freshness/202",
    "heuristic-403-not_cached": "unknown-status-without-freshness/403",
    "heuristic-502-not_cached": "unknown-status-without-freshness/502",
    "heuristic-503-not_cached": "unknown-status-without-freshness/503",
    "heuristic-504-not_cached": "unknown-status-without-freshness/504",
    "heuristic-200-cached": "heuristic",
    "invalidate-DELETE": "invalidates/delete",
    "invalidate-POST": "invalidates/post",
    "invalidate-PUT": "invalidates/put",
    "invalidate-M-SEARCH": "invalidates-unknown-method",
    "other-age-gen": "age-sent",
    "other-age-update-max-age": "age-adds-to-arrival",
    "other-authorization": "authorization/max-age",
    "other-authorization-must-revalidate": "authorization-allowed/must-revalidate",
    "other-authorization-public": "authorization-allowed/public",
    "other-authorization-smaxage": "authorization-allowed/s-maxage",
    "other-cookie": "cookie-from-store",
    "other-set-cookie": "set-cookie-stored",
    "partial-store-complete-reuse-partial": "range-from-store/middle",
    "partial-store-complete-reuse-partial-no-last": "range-from-store/to-the-end",
    "partial-store-complete-reuse-partial-suffix": "range-from-store/suffix",
    "query-args-different": "key-has/query",
    "stale-close-must-revalidate": "must-revalidate-with-broken-origin/must-revalidate",
    "stale-close-proxy-revalidate": "must-revalidate-with-broken-origin/proxy-revalidate",
    "stale-close-s-maxage=2": "must-revalidate-with-broken-origin/s-maxage",
    "stale-503": "stale-when-origin-fails/503",
    "status-203-fresh": "stores-status/203",
    "status-301-fresh": "stores-status/301",
    "status-308-fresh": "stores-status/308",
    "status-404-fresh": "stores-status/404",
    "status-410-fresh": "stores-status/410",
    "status-302-fresh": "stores-explicit-status/302",
    "status-303-fresh": "stores-explicit-status/303",
    "status-307-fresh": "stores-explicit-status/307",
    "status-400-fresh": "stores-explicit-status/400",
    "status-500-fresh": "stores-explicit-status/500",
    "status-502-fresh": "stores-explicit-status/502",
    "status-503-fresh": "stores-explicit-status/503",
    "status-504-fresh": "stores-explicit-status/504",
    "vary-no-match": "vary-differs/unknown",
    "vary-match": "vary-stores",
    "vary-omit": "vary-field-missing/first-missing",
    "vary-star": "vary-star/alone",
    "vary-syntax-star-foo": "vary-star/first",
    "vary-syntax-foo-star": "vary-star/second",
    "304-etag-update-stored-Test-Header": "304-updates/unknown",
}
DECIDED = {"pass": True, "yes": True, "fail": False, "sometimes": False, "no": False}


def results_of(path, cases):
    """By target and case; none: a case of a pair is in none of them, which is said."""
    with open(path) as file:
        results = {(one["target"], one["case"]): one for one in json.load(file)["results"]}
    there = {case for _, case in results}
    unknown = [case for case in cases if case not in there]
    if unknown:
        print(f"no such case: {', '.join(unknown)}", file=sys.stderr)
        return None
    return results


def main():
    results = results_of(sys.argv[1], [case.lstrip("!") for case in PAIRS.values()])
    if results is None:
        return 2
    with open(sys.argv[2]) as file:
        sets = json.load(file)
    depends = {test["id"]: test.get("depends_on", []) for one in sets for test in one["tests"]}
    all_same = all_decided = 0
    print("| target | requirements that both decide | same | share |\n|---|--:|--:|--:|")
    differences = []
    for pair in sys.argv[3:]:
        label, path = pair.split("=", 1)
        with open(path) as file:
            suite = json.load(file)
        same = decided = 0
        for test, case in PAIRS.items():
            result = results.get((label, case.lstrip("!")))
            theirs = suite.get(test)
            if result is None or result["verdict"] not in DECIDED or theirs is None:
                continue
            is_undecided = theirs is not True and theirs[0] != "Assertion"
            if is_undecided or not all(suite.get(other) is True for other in depends.get(test, [])):
                continue
            decided += 1
            if DECIDED[result["verdict"]] == ((theirs is True) != case.startswith("!")):
                same += 1
            else:
                said = "passes" if theirs is True else theirs[1]
                differences.append(f"{label}: `{test}` {said}; `{case}` {result['verdict']} {result.get('reason', '')}")
        all_same, all_decided = all_same + same, all_decided + decided
        print(f"| {label} | {decided} | {same} | {same / max(decided, 1):.1%} |")
    print(f"| all | {all_decided} | {all_same} | {all_same / max(all_decided, 1):.1%} |\n")
    print("\n".join(differences))
    return 0


if __name__ == "__main__":
    sys.exit(main())
