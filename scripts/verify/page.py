"""Writes the manual's page on what was checked by independent means, from the results of a run."""

import json
import pathlib
import re
import sys

from lab import ROOT

sys.path.append(str(ROOT / "scripts"))
import kept_json

RESULTS = ROOT / "bench/verify.json"
PAGE = ROOT / "docs/explanation/verified.md"
TEXT = """# What was checked by others' means

A program that counts wrongly and checks itself with the same code finds nothing. So each kind of figure is also
found by code that shares nothing with Assay but file formats: Python with numpy and pandas, formulas of textbooks, and servers
that know what they did. `make verify` runs all of it on loopback, in a quarter of an hour, and writes the results below;
`scripts/verify.sh --list` names the checks, `--only NAME` runs one.

Whether a check *can* fail is tested, too: `scripts/verify.sh --self-test` feeds each one data that is right, which it must accept, and data
that is wrong in several ways (a request less, a normal law in place of Student's, evenly spaced arrivals), which it must refuse.

Statistical bounds are set so that a right implementation is refused by one row in ten thousand. Runs follow from their seeds, so the
same build gives the same results, but for what is timed. Where a row stands for many comparisons, it says how many of them hold, and
which do not.

Not measured is a real queue with a fixed rate of service: its 99th percentile moves by more than any error of Assay's would when anything
else runs on the machine. Its arithmetic is checked in virtual time (`queue-md1`), the clock by [other means](measured.md#how-exactly-does-assay-send).

| check | what is claimed | holds |
|---|---|---|
{overview}

This page is written by `make verify`, not by hand. Last: {date}, {processors} processors, {system}, Assay {assay}.

{checks}

## What tests in Rust check by independent means

These run with `make test` and `make test-real`. Each holds a result against a closed form, a table in print, a brute force, or another program.

| test | held against |
|---|---|
{tests}
"""
CHECK = """## {name}

{claim}

*How:* {method}. *Command:* `{command}`.

| what | expected | found | |
|---|---|---|---|
{rows}"""

# File and test: against what. A page is not made as long as one is named that is not there any more.
TESTS = {
    ("crates/model/cluster/tests/it/simulate/theory.rs", "rand_makes_a_row_of_m_m_1_queues"): "M/M/1: mean and tail",
    ("crates/model/cluster/tests/it/simulate/theory.rs", "one_node_with_several_workers_is_an_m_m_c_queue"): "Erlang's C",
    (
        "crates/model/cluster/tests/it/simulate/theory.rs",
        "the_power_of_two_has_its_double_exponential_tail",
    ): "the tail of the power of two choices",
    ("crates/run/report/src/compare/student.rs", "quantiles_are_those_of_the_tables"): "printed tables of Student's law",
    (
        "crates/run/report/src/compare/paired.rs",
        "students_own_example_comes_out_as_it_is_known",
    ): "Student's example of 1908",
    ("crates/run/report/src/compare/paired.rs", "holm_corrects_as_by_hand"): "Holm's procedure by hand",
    (
        "crates/run/report/src/compare/verdict.rs",
        "without_the_correction_most_tables_would_have_a_false_verdict",
    ): "tables of a subject against itself",
    (
        "crates/run/report/tests/real/recompute.rs",
        "every_figure_of_the_summary_is_recomputed_from_the_tables_and_equals_it",
    ): "pandas over the tables",
    (
        "crates/model/cache/src/lru.rs",
        "it_does_what_the_naive_model_does_and_never_exceeds_its_bound",
    ): "a list that is searched",
    ("crates/data/logs/src/analysis/tests.rs", "the_figures_of_a_small_log_are_those_counted_by_hand"): "a count by hand",
    ("crates/data/logs/src/sketch/distinct.rs", "counts_are_exact_first_and_then_within_four_standard_errors"): "exact sets",
    ("crates/model/workload/src/popularity.rs", "the_newest_is_the_most_popular_under_zipf"): "the law's formula",
    (
        "crates/run/lab/src/search/mod.rs",
        "a_token_bucket_of_known_limit_is_found_within_three_percent_ten_times_of_ten",
    ): "a known limit",
    (
        "crates/model/workload/src/distribution.rs",
        "samples_have_the_stated_moments",
    ): "means and deviations from their formulas",
    (
        "crates/bin/assay/tests/real/taking_along.rs",
        "a_real_run_is_taken_along_in_every_form_and_its_figures_are_recomputed",
    ): "pandas, DuckDB and HdrHistogram's own reader",
    (
        "crates/bin/assay/tests/real/caught.rs",
        "a_flipped_byte_is_wrong_bytes",
    ): "a forwarder that does one thing wrong (and five more such tests beside it)",
    (
        "crates/bin/assay/tests/real/browsing.rs",
        "a_browser_and_curl_see_a_site_through_a_forward_evaluation_as_they_see_it_directly",
    ): "Chromium and curl, with and without an evaluation between",
    ("crates/model/cluster/src/dispatch/policies/lard.rs", "the_published_limit_of_admission"): "the number in print",
}


def cell(text):
    """Text within a table."""
    return re.sub(r"\s+", " ", str(text)).replace("|", "\\|").replace("<", "&lt;").replace("](", "] (")


def kept():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"checks": {}}


def keep(checks, found, about):
    """Results in place of those of the same checks; checks that are no more are left out."""
    results = {name: rows for name, rows in kept()["checks"].items() if name in checks}
    anywhere = lambda text: text.replace(str(ROOT), "…").replace(str(pathlib.Path.home()), "~")
    results |= {
        name: [vars(row) | {"found": anywhere(row.found), "ok": bool(row.ok)} for row in rows]
        for name, rows in found.items()
    }
    RESULTS.write_text(kept_json.text(about | {"checks": {name: results[name] for name in checks if name in results}}) + "\n")
    write(checks)


def write(checks):
    results = kept()
    sections, overview = [], []
    for name, rows in results["checks"].items():
        holds = all(row["ok"] for row in rows)
        overview.append(f"| [{name}](#{name}) | {cell(checks[name].claim)} | {'yes' if holds else '**no**'} |")
        lines = [
            f"| {cell(row['what'])} | {cell(row['expected'])} | {cell(row['found'])} | {'' if row['ok'] else '**not so**'} |"
            for row in rows
        ]
        sections.append(
            CHECK.format(
                name=name,
                claim=checks[name].claim,
                method=checks[name].method,
                command=checks[name].command,
                rows="\n".join(lines),
            )
        )
    tests = [f"| `{file}`: {name.replace('_', ' ')} | {against} |" for (file, name), against in TESTS.items()]
    PAGE.write_text(
        TEXT.format_map(
            {**results, "overview": "\n".join(overview), "checks": "\n\n".join(sections), "tests": "\n".join(tests)}
        )
    )


def missing_tests():
    """Tests that the page names, and that are not there any more."""
    return [
        f"{name} in {file}"
        for file, name in TESTS
        if not ((ROOT / file).exists() and re.search(rf"fn {name}\(", (ROOT / file).read_text()))
    ]
