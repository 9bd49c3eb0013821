//! Tables of the resources that robots, origins, the proxy and the machine used in each phase.

use crate::document::{Disk, Figures, Resources, Seeks, Summary};
use crate::format::{bytes, count, opt_number, percent};
use crate::page::{TableView, phase_table};

fn cpu(figures: &Figures, role: &str) -> String {
    opt_number(figures.cpu_us_per_request.get(role).copied().flatten())
}

fn cores(figures: &Figures, role: &str) -> String {
    opt_number(figures.resources.get(role).and_then(|used| used.cpu_cores))
}

fn proxy(figures: &Figures) -> Option<&Resources> {
    figures.resources.get("proxy")
}

fn proxy_bytes(figures: &Figures, of: fn(&Resources) -> Option<u64>) -> String {
    proxy(figures).and_then(of).map_or_else(|| "–".into(), bytes)
}

fn disk(figures: &Figures, of: fn(&Disk) -> f64) -> String {
    opt_number(figures.disk.as_ref().map(of))
}

pub(crate) fn resources(summary: &Summary) -> TableView {
    phase_table(
        summary,
        "resources-table",
        "Resources",
        "Processor time per request, processors used on average, and the highest levels at any second's end.",
        &[
            (
                "CPU per request, µs",
                &[
                    ("proxy", |f| cpu(f, "proxy")),
                    ("robots", |f| cpu(f, "robots")),
                    ("origins", |f| cpu(f, "origins")),
                ],
            ),
            (
                "processors",
                &[
                    ("proxy", |f| cores(f, "proxy")),
                    ("robots", |f| cores(f, "robots")),
                    ("origins", |f| cores(f, "origins")),
                ],
            ),
            ("proxy memory", &[("peak", |f| proxy_bytes(f, |used| Some(used.rss_peak_bytes)))]),
            (
                "peaks",
                &[
                    ("connections", |f| count(f.connections.client_peak)),
                    ("under way", |f| count(f.in_flight_peak)),
                    ("waiting", |f| count(f.waiting_peak)),
                ],
            ),
            ("lateness, µs", &[("p99", |f| f.lateness_us.p99.map_or_else(|| "–".to_owned(), count))]),
        ],
    )
}

/// The proxy and the machine under it, where that was measured.
pub(crate) fn host(summary: &Summary) -> Option<TableView> {
    let told = |f: &Figures| proxy(f).is_some_and(|used| used.user_cores.is_some()) || f.disk.is_some();
    if !told(&summary.total) {
        return None;
    }
    Some(phase_table(
        summary,
        "host-table",
        "The proxy and its disk",
        "Of the proxy's processes: processor time in programs and in the kernel, threads that had to wait or were taken \
         off their processors, the highest memory (PSS counts shared pages in parts; page cache where it has a control \
         group of its own). Of the disk that its files are on: means, by whomever; seeks where it was traced.",
        &[
            (
                "processors",
                &[
                    ("user", |f| opt_number(proxy(f).and_then(|used| used.user_cores))),
                    ("system", |f| opt_number(proxy(f).and_then(|used| used.system_cores))),
                ],
            ),
            (
                "switches per second",
                &[
                    ("waited", |f| opt_number(proxy(f).and_then(|used| used.voluntary_switches_per_s))),
                    ("taken off", |f| opt_number(proxy(f).and_then(|used| used.involuntary_switches_per_s))),
                ],
            ),
            (
                "memory",
                &[
                    ("resident", |f| proxy_bytes(f, |used| Some(used.rss_peak_bytes))),
                    ("PSS", |f| proxy_bytes(f, |used| used.pss_peak_bytes)),
                    ("page cache", |f| proxy_bytes(f, |used| used.cache_peak_bytes)),
                ],
            ),
            (
                "disk, MB/s",
                &[
                    ("read", |f| disk(f, |disk| disk.read_mb_s)),
                    ("written", |f| disk(f, |disk| disk.written_mb_s)),
                ],
            ),
            (
                "disk",
                &[
                    ("requests/s", |f| disk(f, |disk| disk.reads_per_s + disk.writes_per_s)),
                    ("queue", |f| disk(f, |disk| disk.queue)),
                    ("busy, %", |f| percent(f.disk.as_ref().map(|disk| disk.busy_share))),
                ],
            ),
            (
                "seeks",
                &[
                    ("in sequence, %", |f| percent(seeks(f).map(|seeks| seeks.sequential_share))),
                    ("half up to, MB", |f| opt_number(seeks(f).and_then(|seeks| seeks.p50_mb))),
                ],
            ),
        ],
    ))
}

fn seeks(figures: &Figures) -> Option<&Seeks> {
    figures.disk.as_ref()?.seeks.as_ref()
}
