//! Programs that write logs, imitated: a thousand known requests, as each of them writes these.

use std::fmt::Write;

/// A request that a log is to tell of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Since 1970, in milliseconds.
    pub time_ms: i64,
    pub duration_ms: u64,
    pub client: &'static str,
    pub host: &'static str,
    pub method: &'static str,
    /// The path with the query; every request has one of its own.
    pub target: String,
    pub status: u16,
    pub bytes: u64,
    pub is_hit: bool,
    pub agent: &'static str,
    pub referrer: &'static str,
}

/// Known requests, all different.
pub fn requests(count: u64) -> Vec<Request> {
    const CLIENTS: [&str; 4] = ["192.0.2.1", "198.51.100.17", "2001:db8:3::f", "203.0.113.201"];
    const AGENTS: [&str; 3] =
        ["curl/8.9.1", "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101", "whitelabel-permissions/1.0"];
    let request = |n: u64| Request {
        time_ms: 1_782_900_000_156 + 137 * n.cast_signed(),
        duration_ms: n * n % 977,
        client: CLIENTS[(n % 4) as usize],
        host: ["www.example.org", "static.example.org"][(n % 2) as usize],
        method: ["GET", "GET", "HEAD", "POST"][(n / 3 % 4) as usize],
        target: format!("/path/{n}?q={}", n * 7919 % 101),
        status: [200, 200, 304, 404, 301][(n / 5 % 5) as usize],
        bytes: n * 31 % 100_000,
        is_hit: n.is_multiple_of(3),
        agent: AGENTS[(n / 2 % 3) as usize],
        referrer: ["-", "https://search.example.net/?q=cache"][(n / 7 % 2) as usize],
    };
    (0..count).map(request).collect()
}

/// A program that writes a log.
pub struct Writer {
    /// The format that its lines are recognised as.
    pub format: &'static str,
    /// What comes before the first line.
    pub head: &'static str,
    pub line: fn(&Request) -> String,
    pub says: FactSet,
}

/// What lines say of requests, beside their time, method, path and status.
#[derive(Debug, Clone, Copy)]
pub struct FactSet {
    /// The unit of times.
    pub time_ms: i64,
    /// The unit of durations; none: it does not say them.
    pub duration_ms: Option<u64>,
    pub method: bool,
    pub client: bool,
    pub host: bool,
    pub bytes: bool,
    pub outcome: bool,
    pub agent: bool,
}

const COMBINED: FactSet = FactSet {
    time_ms: 1000,
    duration_ms: None,
    method: true,
    client: true,
    host: false,
    bytes: true,
    outcome: false,
    agent: true,
};
pub const COMMON: FactSet = FactSet { agent: false, ..COMBINED };
const SQUID: FactSet = FactSet {
    time_ms: 1,
    duration_ms: Some(1),
    method: true,
    client: true,
    host: true,
    bytes: true,
    outcome: true,
    agent: false,
};
const HAPROXY: FactSet = FactSet { host: false, ..SQUID };
const JSON: FactSet = FactSet {
    time_ms: 1,
    duration_ms: Some(1),
    method: true,
    client: true,
    host: true,
    bytes: true,
    outcome: false,
    agent: true,
};

pub const WRITERS: [Writer; 37] = [
    Writer { format: "squid", head: "", line: squid, says: SQUID },
    Writer { format: "combined", head: "", line: combined, says: COMBINED },
    Writer { format: "common", head: "", line: common, says: COMMON },
    Writer {
        format: "vhost-combined",
        head: "",
        line: |r| format!("{}:443 {}", r.host, combined(r)),
        says: FactSet { host: true, ..COMBINED },
    },
    Writer {
        format: "host-combined",
        head: "",
        line: |r| format!("{} {}", r.host, combined(r)),
        says: FactSet { host: true, ..COMBINED },
    },
    Writer {
        format: "host-common",
        head: "",
        line: |r| format!("{} {}", r.host, common(r)),
        says: FactSet { host: true, ..COMMON },
    },
    Writer {
        format: "lighttpd",
        head: "",
        line: |r| combined(r).replacen(" - - ", &format!(" {} - ", r.host), 1),
        says: FactSet { host: true, ..COMBINED },
    },
    Writer { format: "nginx-main", head: "", line: |r| format!("{} \"-\"", combined(r)), says: COMBINED },
    Writer {
        format: "ingress-nginx",
        head: "",
        line: |r| {
            let seconds = seconds(r.duration_ms);
            format!(
                "{} 244 {seconds} [shop-whitelabel-80] [] 10.0.0.7:8080 {} {seconds} {} 5dbc8",
                combined(r),
                r.bytes,
                r.status
            )
        },
        says: FactSet { duration_ms: Some(1), ..COMBINED },
    },
    Writer {
        format: "traefik",
        head: "",
        line: |r| format!("{} 17 \"web@docker\" \"http://172.19.0.3:5601\" {}ms", combined(r), r.duration_ms),
        says: FactSet { duration_ms: Some(1), ..COMBINED },
    },
    Writer { format: "envoy", head: "", line: envoy, says: FactSet { client: true, ..JSON } },
    Writer { format: "istio", head: "", line: istio, says: JSON },
    Writer {
        format: "aws-alb",
        head: "",
        line: |r| format!("h2 {}", elb(r)),
        says: FactSet { outcome: false, ..JSON },
    },
    Writer { format: "aws-elb", head: "", line: elb, says: JSON },
    Writer { format: "aws-s3", head: "", line: s3, says: FactSet { duration_ms: Some(1), ..COMBINED } },
    Writer {
        format: "bunny",
        head: "",
        line: bunny,
        says: FactSet { duration_ms: None, method: false, outcome: true, ..JSON },
    },
    Writer {
        format: "squid-combined",
        head: "",
        line: |r| format!("{} {}:HIER_DIRECT", with_host(&combined(r), r), tcp(r)),
        says: FactSet { host: true, outcome: true, ..COMBINED },
    },
    Writer {
        format: "squid-common",
        head: "",
        line: |r| format!("{} {}:HIER_DIRECT", with_host(&common(r), r), tcp(r)),
        says: FactSet { host: true, outcome: true, ..COMMON },
    },
    Writer {
        format: "trafficserver-extended2",
        head: "",
        line: |r| {
            format!(
                "{} 200 {} 0 0 100 200 120 180 {} DIRECT FIN FIN {}",
                common(r),
                r.bytes,
                r.duration_ms / 1000,
                tcp(r)
            )
        },
        says: FactSet { duration_ms: Some(1000), outcome: true, ..COMMON },
    },
    Writer { format: "haproxy", head: "", line: haproxy, says: HAPROXY },
    Writer {
        format: "haproxy",
        head: "",
        line: |r| format!("Jul  1 10:00:31 lb1 haproxy[3]: {}", haproxy(r)),
        says: HAPROXY,
    },
    Writer {
        format: "haproxy-https",
        head: "",
        line: |r| format!("{} 0/0/0/0/0 www.example.org/TLSv1.3/TLS_AES_128_GCM_SHA256", haproxy(r)),
        says: HAPROXY,
    },
    Writer {
        format: "assay-switch",
        head: "",
        line: |r| {
            format!(
                "{} {} s1 1 20 {}",
                combined(r),
                if r.is_hit { "disk" } else { "miss" },
                r.duration_ms * 1000
            )
        },
        says: FactSet { duration_ms: Some(1), ..COMBINED },
    },
    Writer {
        format: "w3c",
        head: "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query c-ip cs(User-Agent) cs-host sc-status \
               sc-substatus sc-bytes time-taken\n",
        line: |r| {
            let (date, time) = date_and_time(r.time_ms);
            let (path, query) = r.target.split_once('?').unwrap();
            format!(
                "{date} {time} 10.0.0.1 {} {path} {query} {} {} {} {} 0 {} {}",
                r.method,
                r.client,
                r.agent.replace(' ', "+"),
                r.host,
                r.status,
                r.bytes,
                r.duration_ms
            )
        },
        says: FactSet { duration_ms: Some(1), host: true, agent: false, ..COMBINED },
    },
    Writer {
        format: "w3c",
        head: "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status \
               cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header \
               cs-protocol cs-bytes time-taken x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type\n",
        line: cloudfront,
        says: FactSet { duration_ms: Some(1), host: true, outcome: true, agent: false, ..COMBINED },
    },
    Writer { format: "caddy", head: "", line: caddy, says: JSON },
    Writer { format: "traefik-json", head: "", line: traefik_json, says: JSON },
    Writer { format: "envoy-json", head: "", line: envoy_json, says: JSON },
    Writer { format: "cloudflare", head: "", line: cloudflare, says: FactSet { outcome: true, ..JSON } },
    Writer {
        format: "akamai",
        head: "",
        line: akamai,
        says: FactSet { duration_ms: None, outcome: true, ..JSON },
    },
    Writer {
        format: "cloudfront-json",
        head: "",
        line: cloudfront_json,
        says: FactSet { time_ms: 1000, outcome: true, ..JSON },
    },
    Writer { format: "google-cloud", head: "", line: google_cloud, says: FactSet { outcome: true, ..JSON } },
    Writer { format: "azure", head: "", line: azure, says: FactSet { outcome: true, ..JSON } },
    Writer { format: "ecs", head: "", line: ecs, says: JSON },
    Writer { format: "ecs", head: "", line: open_telemetry, says: FactSet { duration_ms: None, ..JSON } },
    Writer {
        format: "json",
        head: "",
        line: |r| {
            format!(
                r#"{{"time":"{}+00:00","remote_addr":"{}","host":"{}","request":"{} {} HTTP/2.0","status":{},"body_bytes_sent":{},"http_user_agent":"{}","upstream_cache_status":"{}","request_time":{}}}"#,
                iso(r.time_ms).trim_end_matches('Z').split('.').next().unwrap(),
                r.client,
                r.host,
                r.method,
                r.target,
                r.status,
                r.bytes,
                r.agent,
                if r.is_hit { "HIT" } else { "EXPIRED" },
                seconds(r.duration_ms)
            )
        },
        says: FactSet { time_ms: 1000, outcome: true, ..JSON },
    },
    // The keys of Fastly's examples.
    Writer {
        format: "json",
        head: "",
        line: |r| {
            format!(
                r#"{{"timestamp": "{}", "client_ip": "{}", "host": "{}", "url": "{}", "request_method": "{}", "request_user_agent": "{}", "response_state": "{}", "response_status": {}, "response_body_size": {}, "fastly_is_edge": true}}"#,
                iso(r.time_ms),
                r.client,
                r.host,
                r.target,
                r.method,
                r.agent,
                if r.is_hit { "HIT-CLUSTER" } else { "MISS" },
                r.status,
                r.bytes
            )
        },
        says: FactSet { duration_ms: None, outcome: true, ..JSON },
    },
];

fn date_and_time(time_ms: i64) -> (String, String) {
    let (days, second) = (time_ms.div_euclid(86_400_000), time_ms.div_euclid(1000).rem_euclid(86_400));
    // The first of July of 2026; the requests are of that day.
    let day = days - 20_635 + 1;
    (format!("2026-07-{day:02}"), format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60))
}

fn iso(time_ms: i64) -> String {
    let (date, time) = date_and_time(time_ms);
    format!("{date}T{time}.{:03}Z", time_ms.rem_euclid(1000))
}

fn clf_time(time_ms: i64) -> String {
    let (date, time) = date_and_time(time_ms);
    format!("{}/Jul/2026:{time}", &date[8..])
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

fn tcp(r: &Request) -> &'static str {
    if r.is_hit { "TCP_HIT" } else { "TCP_MISS" }
}

fn common(r: &Request) -> String {
    format!(
        "{} - - [{} +0000] \"{} {} HTTP/1.1\" {} {}",
        r.client,
        clf_time(r.time_ms),
        r.method,
        r.target,
        r.status,
        r.bytes
    )
}

fn combined(r: &Request) -> String {
    format!("{} \"{}\" \"{}\"", common(r), r.referrer, r.agent)
}

/// A line whose URL is absolute.
fn with_host(line: &str, r: &Request) -> String {
    line.replacen(&format!(" {} HTTP/", r.target), &format!(" http://{}{} HTTP/", r.host, r.target), 1)
}

fn squid(r: &Request) -> String {
    format!(
        "{}.{:03} {:>6} {} {}/{} {} {} http://{}{} - HIER_DIRECT/10.0.0.7 text/html",
        r.time_ms / 1000,
        r.time_ms % 1000,
        r.duration_ms,
        r.client,
        tcp(r),
        r.status,
        r.bytes,
        r.method,
        r.host,
        r.target
    )
}

fn envoy(r: &Request) -> String {
    format!(
        "[{}] \"{} {} HTTP/2\" {} - 0 {} {} {} \"{}, 10.0.0.1\" \"{}\" \"cc21d9b0-cf5c\" \"{}\" \"10.0.2.1:80\"",
        iso(r.time_ms),
        r.method,
        r.target,
        r.status,
        r.bytes,
        r.duration_ms,
        r.duration_ms,
        r.client,
        r.agent,
        r.host
    )
}

fn istio(r: &Request) -> String {
    format!(
        "[{}] \"{} {} HTTP/1.1\" {} - via_upstream - \"-\" 0 {} {} {} \"-\" \"{}\" \"cc21d9b0-cf5c\" \"{}\" \
         \"127.0.0.1:80\" inbound|8000|| 127.0.0.1:41854 10.44.1.23:80 {} \
         outbound_.8000_._.httpbin.foo.svc.cluster.local default",
        iso(r.time_ms),
        r.method,
        r.target,
        r.status,
        r.bytes,
        r.duration_ms,
        r.duration_ms,
        r.agent,
        r.host,
        with_port(r, 37652)
    )
}

/// The client with a port, without brackets around IPv6.
fn with_port(r: &Request, port: u16) -> String {
    format!("{}:{port}", r.client)
}

fn elb(r: &Request) -> String {
    // A millisecond for the balancer, where there is one.
    let own = r.duration_ms.min(1);
    format!(
        "{}.{:03}000Z app/lb/50dc6c495c0c9188 {} 10.0.0.3:80 {} {} 0 {} {} 697 {} \"{} https://{}:443{} HTTP/2.0\" \
         \"{}\" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2",
        iso(r.time_ms).split('.').next().unwrap(),
        r.time_ms % 1000,
        with_port(r, 443 + (r.bytes % 60_000) as u16),
        seconds(own),
        seconds(r.duration_ms - own),
        r.status,
        r.status,
        r.bytes,
        r.method,
        r.host,
        r.target,
        r.agent
    )
}

fn s3(r: &Request) -> String {
    format!(
        "79a59df900b949e5 bucket [{} +0000] {} - 3E57427F3EXAMPLE REST.GET.OBJECT key \"{} {} HTTP/1.1\" {} - {} {} {} 5 \
         \"{}\" \"{}\" - s9lzHYrFp76ZVxRcpX9+5cjAnEH2ROuNkd2BHfIa6UkFVdtjf5mKR3/eTPFvsiP/XV/VLi31234= SigV4 - AuthHeader",
        clf_time(r.time_ms),
        r.client,
        r.method,
        r.target,
        r.status,
        r.bytes,
        r.bytes,
        r.duration_ms,
        r.referrer,
        r.agent
    )
}

fn bunny(r: &Request) -> String {
    format!(
        "{}|{}|{}|{}|1234567|{}|{}|https://{}{}|DE|{}|1c51c9ddc93e927c|DE",
        if r.is_hit { "HIT" } else { "MISS" },
        r.status,
        r.time_ms,
        r.bytes,
        r.client,
        r.referrer,
        r.host,
        r.target,
        r.agent
    )
}

fn haproxy(r: &Request) -> String {
    format!(
        "{} [{}.{:03}] fe be/{} 0/0/1/{}/{} {} {} - - ---- 3/3/0/0/0 0/0 \"{} {} HTTP/1.1\"",
        with_port(r, 8211),
        clf_time(r.time_ms),
        r.time_ms % 1000,
        if r.is_hit { "<CACHE>" } else { "app1" },
        r.duration_ms,
        r.duration_ms,
        r.status,
        r.bytes,
        r.method,
        r.target
    )
}

fn cloudfront(r: &Request) -> String {
    let (date, time) = date_and_time(r.time_ms);
    let (path, query) = r.target.split_once('?').unwrap();
    [
        date.as_str(),
        &time,
        "FRA56-P4",
        &r.bytes.to_string(),
        r.client,
        r.method,
        "d111111abcdef8.cloudfront.net",
        path,
        &r.status.to_string(),
        r.referrer,
        &r.agent.replace(' ', "%20"),
        query,
        "-",
        if r.is_hit { "Hit" } else { "Miss" },
        "SOX4xwn4XV6Q4rgb7XiVGOHms_BGlTAC4KyHmureZmBNrjGdRLiNIQ==",
        r.host,
        "https",
        "23",
        &seconds(r.duration_ms),
        "-",
        "TLSv1.3",
        "TLS_AES_128_GCM_SHA256",
        "Error",
    ]
    .join("\t")
}

fn caddy(r: &Request) -> String {
    format!(
        r#"{{"level":"info","ts":{}.{:03},"logger":"http.log.access","msg":"handled request","request":{{"remote_ip":"10.0.0.1","remote_port":"5678","client_ip":"{}","proto":"HTTP/2.0","method":"{}","host":"{}","uri":"{}","headers":{{"User-Agent":["{}"],"Accept":["*/*","x"]}},"tls":{{"resumed":false,"version":772}}}},"bytes_read":0,"user_id":"","duration":{},"size":{},"status":{},"resp_headers":{{"Server":["Caddy"],"Content-Type":["text/html"]}}}}"#,
        r.time_ms / 1000,
        r.time_ms % 1000,
        r.client,
        r.method,
        r.host,
        r.target,
        r.agent,
        seconds(r.duration_ms),
        r.bytes,
        r.status
    )
}

fn traefik_json(r: &Request) -> String {
    let mut line = String::new();
    write!(
        line,
        r#"{{"ClientAddr":"{}","ClientHost":"{}","ClientUsername":"-","DownstreamContentSize":{},"DownstreamStatus":{},"Duration":{},"OriginDuration":1,"Overhead":122442,"RequestAddr":"{}","RequestHost":"{}","RequestMethod":"{}","RequestPath":"{}","RequestProtocol":"HTTP/2.0","RequestScheme":"https","ServiceAddr":"172.19.0.3:5601","StartLocal":"2026-01-01T00:00:00Z","StartUTC":"{}","level":"info","msg":"","request_User-Agent":"{}","time":"2026-07-01T10:00:00Z"}}"#,
        with_port(r, 52458),
        r.client,
        r.bytes,
        r.status,
        r.duration_ms * 1_000_000,
        r.host,
        r.host,
        r.method,
        r.target.replace('&', "\\u0026"),
        iso(r.time_ms),
        r.agent
    )
    .unwrap();
    line
}

fn envoy_json(r: &Request) -> String {
    format!(
        r#"{{"start_time":"{}","method":"{}","path":"{}","protocol":"HTTP/2","response_code":{},"response_flags":"-","bytes_received":0,"bytes_sent":{},"duration":{},"x_forwarded_for":"{}, 10.0.0.1","user_agent":"{}","authority":"{}","upstream_host":"10.0.2.1:80"}}"#,
        iso(r.time_ms),
        r.method,
        r.target,
        r.status,
        r.bytes,
        r.duration_ms,
        r.client,
        r.agent,
        r.host
    )
}

fn cloudflare(r: &Request) -> String {
    format!(
        r#"{{"CacheCacheStatus":"{}","ClientIP":"{}","ClientRequestHost":"{}","ClientRequestMethod":"{}","ClientRequestURI":"{}","ClientRequestUserAgent":"{}","EdgeEndTimestamp":{},"EdgeResponseBytes":{},"EdgeResponseStatus":{},"EdgeStartTimestamp":{},"EdgeTimeToFirstByteMs":3,"RayID":"4a6050ff9d5f1b7e"}}"#,
        if r.is_hit { "hit" } else { "dynamic" },
        r.client,
        r.host,
        r.method,
        r.target,
        r.agent,
        (r.time_ms + r.duration_ms.cast_signed()) * 1_000_000,
        r.bytes,
        r.status,
        r.time_ms * 1_000_000
    )
}

fn akamai(r: &Request) -> String {
    let (path, query) = r.target[1..].split_once('?').unwrap();
    format!(
        r#"{{"version": 1, "cp": "123456", "reqTimeSec": "{}.{:03}", "bytes": "{}", "cliIP": "{}", "statusCode": "{}", "proto": "HTTPS", "reqHost": "{}", "reqMethod": "{}", "reqPath": "{path}", "rspContentLen": "1", "UA": "{}", "queryStr": "{query}", "totalBytes": "7", "cacheStatus": "{}"}}"#,
        r.time_ms / 1000,
        r.time_ms % 1000,
        r.bytes,
        r.client,
        r.status,
        r.host,
        r.method,
        r.agent,
        u8::from(r.is_hit)
    )
}

fn cloudfront_json(r: &Request) -> String {
    let (date, time) = date_and_time(r.time_ms);
    let (path, query) = r.target.split_once('?').unwrap();
    format!(
        r#"{{"date":"{date}","time":"{time}","x-edge-location":"HIO52-P4","sc-bytes":"{}","c-ip":"{}","cs-method":"{}","cs(Host)":"d111111abcdef8.cloudfront.net","cs-uri-stem":"{path}","sc-status":"{}","cs(Referer)":"-","cs(User-Agent)":"{}","cs-uri-query":"{query}","cs(Cookie)":"-","x-edge-result-type":"{}","x-edge-request-id":"Kx==","x-host-header":"{}","cs-protocol":"https","cs-bytes":"411","time-taken":"{}","x-edge-response-result-type":"Error"}}"#,
        r.bytes,
        r.client,
        r.method,
        r.status,
        r.agent,
        if r.is_hit { "Hit" } else { "Miss" },
        r.host,
        seconds(r.duration_ms)
    )
}

fn google_cloud(r: &Request) -> String {
    let hit = if r.is_hit { r#""cacheHit":true,"# } else { "" };
    format!(
        r#"{{"httpRequest":{{{hit}"cacheLookup":true,"latency":"{}s","remoteIp":"{}","requestMethod":"{}","requestSize":"697","requestUrl":"https://{}{}","responseSize":"{}","status":{},"userAgent":"{}"}},"insertId":"1oek5rg3l3fxj7","jsonPayload":{{"statusDetails":"response_sent_by_backend"}},"receiveTimestamp":"2026-07-02T10:00:00Z","resource":{{"type":"http_load_balancer"}},"severity":"INFO","timestamp":"{}"}}"#,
        seconds(r.duration_ms),
        r.client,
        r.method,
        r.host,
        r.target,
        r.bytes,
        r.status,
        r.agent,
        iso(r.time_ms)
    )
}

fn azure(r: &Request) -> String {
    format!(
        r#"{{"time":"{}","resourceId":"/SUBSCRIPTIONS/A","category":"FrontDoorAccessLog","operationName":"Microsoft.Cdn/Profiles/AccessLog/Write","properties":{{"trackingReference":"0tvDyYQ","httpMethod":"{}","httpVersion":"2.0.0.0","requestUri":"https://{}:443{}","sni":"{}","requestBytes":"1048","responseBytes":"{}","userAgent":"{}","clientIp":"{}","clientPort":"58007","socketIp":"10.0.0.1","timeToFirstByte":"0.003","timeTaken":"{}","requestProtocol":"HTTPS","httpStatusCode":"{}","pop":"LON","cacheStatus":"{}","hostName":"{}"}}}}"#,
        iso(r.time_ms),
        r.method,
        r.host,
        r.target,
        r.host,
        r.bytes,
        r.agent,
        r.client,
        seconds(r.duration_ms),
        r.status,
        if r.is_hit { "REMOTE_HIT" } else { "CACHE_NOCONFIG" },
        r.host
    )
}

fn ecs(r: &Request) -> String {
    let (path, query) = r.target.split_once('?').unwrap();
    format!(
        r#"{{"@timestamp":"2026-07-01T12:00:00Z","agent":{{"type":"filebeat"}},"event":{{"start":"{}","duration":{}}},"host":{{"name":"web-1"}},"http":{{"request":{{"method":"{}","bytes":5}},"response":{{"status_code":{},"body":{{"bytes":{}}},"bytes":9}},"version":"1.1"}},"source":{{"ip":"{}"}},"url":{{"domain":"{}","path":"{path}","query":"{query}"}},"user_agent":{{"name":"x","original":"{}"}}}}"#,
        iso(r.time_ms),
        r.duration_ms * 1_000_000,
        r.method,
        r.status,
        r.bytes,
        r.client,
        r.host,
        r.agent
    )
}

/// The names of OpenTelemetry, each a key of its own.
fn open_telemetry(r: &Request) -> String {
    let (path, query) = r.target.split_once('?').unwrap();
    format!(
        r#"{{"timestamp":"{}","http.request.method":"{}","url.path":"{path}","url.query":"{query}","server.address":"{}","client.address":"{}","http.response.status_code":{},"http.response.body.size":{},"user_agent.original":"{}"}}"#,
        iso(r.time_ms),
        r.method,
        r.host,
        r.client,
        r.status,
        r.bytes,
        r.agent
    )
}
