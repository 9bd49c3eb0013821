//! The formats that have a name. Those that proxies write by default, and those of Assay's own descriptions.

use super::{Dialect, Format};

/// A format with a name.
#[derive(Debug, Clone, Copy)]
pub struct KnownFormat {
    /// Names, the preferred one first.
    pub names: &'static [&'static str],
    pub about: &'static str,
    pub dialect: Dialect,
    pub text: &'static str,
}

const SQUID: &str = "%ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru %[un %Sh/%<a %mt";
const COMMON: &str = r#"%h %l %u %t "%r" %>s %b"#;
const COMBINED: &str = r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i""#;
const SQUID_COMBINED: &str =
    r#"%>a %ui %un [%tl] "%rm %ru HTTP/%rv" %>Hs %<st "%{Referer}>h" "%{User-Agent}>h" %Ss:%Sh"#;
const SQUID_COMMON: &str = r#"%>a %ui %un [%tl] "%rm %ru HTTP/%rv" %>Hs %<st %Ss:%Sh"#;
const EXTENDED: &str = concat!(
    r#"%<chi> - %<caun> [%<cqtn>] "%<cqtx>" %<pssc> %<pscl> %<sssc> %<sscl> %<cqcl> %<pqcl> %<cqhl> %<pshl> "#,
    "%<pqhl> %<sshl> %<tts>"
);
const EXTENDED2: &str = concat!(
    r#"%<chi> - %<caun> [%<cqtn>] "%<cqtx>" %<pssc> %<pscl> %<sssc> %<sscl> %<cqcl> %<pqcl> %<cqhl> %<pshl> "#,
    "%<pqhl> %<sshl> %<tts> %<phr> %<cfsc> %<pfsc> %<crc>"
);
const HTTPLOG: &str = concat!(
    "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq ",
    "%hr %hs %{+Q}r"
);
const HTTPSLOG: &str = concat!(
    "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq ",
    "%hr %hs %{+Q}r %[fc_err]/%[ssl_fc_err,hex]/%[ssl_c_err]/%[ssl_c_ca_err]/%[ssl_fc_is_resumed] ",
    "%[ssl_fc_sni]/%sslv/%sslc"
);
const HAPROXY_CLF: &str = concat!(
    r#"%{+Q}o %{-Q}ci - - [%trg] %r %ST %B "" "" %cp %ms %ft %b %s %TR %Tw %Tc %Tr %Ta %tsc "#,
    "%ac %fc %bc %sc %rc %sq %bq %CC %CS %hrl %hsl"
);

/// The format of lines whose second word is the host that was asked for, where Combined has the name of a user.
pub(super) const WITH_HOST_SECOND: &str = "lighttpd";

/// Formats, and those whose lines differ from theirs by a host before them. Most lines of the second fit the first too: the host is
/// taken for the client then.
pub(super) const WITH_HOST_FIRST: [(&str, &str); 3] =
    [("combined", "host-combined"), ("common", "host-common"), ("nginx-main", "host-nginx-main")];

/// All of them. Where two fit a log equally well, the one with more fields is taken, then the earlier.
pub const KNOWN_FORMATS: &[KnownFormat] = &[
    KnownFormat {
        names: &["squid"],
        about: "the native format of Squid, which Traffic Server writes too",
        dialect: Dialect::Squid,
        text: SQUID,
    },
    KnownFormat {
        names: &["combined", "varnishncsa", "nginx"],
        about: "Combined, as httpd, nginx and varnishncsa write it by default",
        dialect: Dialect::Ncsa,
        text: COMBINED,
    },
    KnownFormat {
        names: &["common", "clf", "trafficserver-common"],
        about: "Common, as httpd, Traffic Server and many others write it",
        dialect: Dialect::Ncsa,
        text: COMMON,
    },
    KnownFormat {
        names: &["vhost-combined"],
        about: "Combined with the host before it, as Debian's httpd writes it",
        dialect: Dialect::Ncsa,
        text: r#"%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i""#,
    },
    KnownFormat {
        names: &[WITH_HOST_SECOND],
        about: "Combined with the host behind the client, as lighttpd writes it by default",
        dialect: Dialect::Ncsa,
        text: r#"%h %V %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i""#,
    },
    KnownFormat {
        names: &["nginx-main"],
        about: "Combined and the forwarded address, as packages of nginx configure it",
        dialect: Dialect::Nginx,
        text: concat!(
            r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "#,
            r#""$http_referer" "$http_user_agent" "$http_x_forwarded_for""#
        ),
    },
    KnownFormat {
        names: &["ingress-nginx", "nginx-ingress"],
        about: "what ingress-nginx, a controller of Kubernetes, writes by default (`upstreaminfo`)",
        dialect: Dialect::Nginx,
        text: concat!(
            r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "#,
            r#""$http_referer" "$http_user_agent" $request_length $request_time [$proxy_upstream_name] "#,
            "[$proxy_alternative_upstream_name] $upstream_addr $upstream_response_length ",
            "$upstream_response_time $upstream_status $req_id"
        ),
    },
    KnownFormat {
        names: &["traefik"],
        about: "what Traefik writes by default",
        dialect: Dialect::Ncsa,
        text: concat!(
            r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %{count}n "%{router}n" "%{server}n" "#,
            "%{ms}Tms"
        ),
    },
    KnownFormat {
        names: &["envoy"],
        about: "what Envoy writes by default",
        dialect: Dialect::Assay,
        text: concat!(
            r#"[{time-iso}] "{request}" {status} {other} {other} {body} {duration-ms} {other} "{forwarded}" "#,
            r#""{user-agent}" "{other}" "{host}" "{origin}""#
        ),
    },
    KnownFormat {
        names: &["istio"],
        about: "what the Envoy of Istio writes by default",
        dialect: Dialect::Assay,
        text: concat!(
            r#"[{time-iso}] "{request}" {status} {other} {other} {other} "{other}" {other} {body} {duration-ms} "#,
            r#"{other} "{forwarded}" "{user-agent}" "{other}" "{host}" "{origin}" {other} {other} {other} {client} "#,
            "{other} {other}"
        ),
    },
    KnownFormat {
        names: &["aws-alb", "alb"],
        about: "what Application Load Balancers of AWS write",
        dialect: Dialect::Assay,
        text: concat!(
            "{other} {time-iso} {other} {client}:{other} {origin} {part-s} {part-s} {part-s} {status} {other} ",
            r#"{other} {bytes} "{request}" "{user-agent}"{rest}"#
        ),
    },
    KnownFormat {
        names: &["aws-elb", "elb"],
        about: "what Classic Load Balancers of AWS write",
        dialect: Dialect::Assay,
        text: concat!(
            "{time-iso} {other} {client}:{other} {origin} {part-s} {part-s} {part-s} {status} {other} {other} ",
            r#"{bytes} "{request}" "{user-agent}"{rest}"#
        ),
    },
    KnownFormat {
        names: &["aws-s3", "s3"],
        about: "what S3 writes of requests to a bucket",
        dialect: Dialect::Assay,
        text: concat!(
            r#"{other} {other} [{time-common}] {client} {other} {other} {other} {other} "{request}" {status} {other} "#,
            r#"{body} {other} {duration-ms} {other} "{referrer}" "{user-agent}"{rest}"#
        ),
    },
    KnownFormat {
        names: &["bunny"],
        about: "what bunny.net writes",
        dialect: Dialect::Assay,
        text: concat!(
            "{outcome}|{status}|{time-ms}|{bytes}|{other}|{client}|{referrer}|{url}|{other}|{user-agent}|{other}|",
            "{other}"
        ),
    },
    KnownFormat {
        names: &["host-combined"],
        about: "Combined with the host before it, without a port",
        dialect: Dialect::Ncsa,
        text: r#"%v %h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i""#,
    },
    KnownFormat {
        names: &["host-common"],
        about: "Common with the host before it, without a port",
        dialect: Dialect::Ncsa,
        text: r#"%v %h %l %u %t "%r" %>s %b"#,
    },
    KnownFormat {
        names: &["host-nginx-main"],
        about: "nginx-main with the host before it",
        dialect: Dialect::Nginx,
        text: concat!(
            r#"$host $remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "#,
            r#""$http_referer" "$http_user_agent" "$http_x_forwarded_for""#
        ),
    },
    KnownFormat {
        names: &["squid-combined"],
        about: "Combined and what became of it, as Squid's `combined` has it",
        dialect: Dialect::Squid,
        text: SQUID_COMBINED,
    },
    KnownFormat {
        names: &["squid-common"],
        about: "Common and what became of it, as Squid's `common` has it",
        dialect: Dialect::Squid,
        text: SQUID_COMMON,
    },
    KnownFormat {
        names: &["trafficserver-extended"],
        about: "Traffic Server's Netscape Extended",
        dialect: Dialect::TrafficServer,
        text: EXTENDED,
    },
    KnownFormat {
        names: &["trafficserver-extended2"],
        about: "Traffic Server's Netscape Extended-2",
        dialect: Dialect::TrafficServer,
        text: EXTENDED2,
    },
    KnownFormat {
        names: &["haproxy", "httplog"],
        about: "what HAProxy writes with `option httplog`",
        dialect: Dialect::Haproxy,
        text: HTTPLOG,
    },
    KnownFormat {
        names: &["haproxy-https", "httpslog"],
        about: "what HAProxy writes with `option httpslog`",
        dialect: Dialect::Haproxy,
        text: HTTPSLOG,
    },
    KnownFormat {
        names: &["haproxy-tcp", "tcplog"],
        about: "what HAProxy writes of connections with `option tcplog`: there are no requests in it",
        dialect: Dialect::Haproxy,
        text: "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq",
    },
    KnownFormat {
        names: &["haproxy-clf"],
        about: "what HAProxy writes with `option httplog clf`",
        dialect: Dialect::Haproxy,
        text: HAPROXY_CLF,
    },
    KnownFormat {
        names: &["assay-switch"],
        about: "Combined, class, server and times, as `assay switch` writes it",
        dialect: Dialect::Ncsa,
        text: r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %{class}n %{server}n %{queue}n %{first}n %D"#,
    },
    KnownFormat {
        names: &["assay-trafficserver"],
        about: "what Traffic Server writes when Assay runs it",
        dialect: Dialect::Assay,
        text: "{time-s} {duration-ms} {client} {outcome}/{status} {bytes} {method} {url}",
    },
    KnownFormat {
        names: &["assay-haproxy"],
        about: "what HAProxy writes when Assay runs it",
        dialect: Dialect::Assay,
        text: "{time-s} {duration-ms} {client} {server}/{status} {bytes} {method} {url}",
    },
    KnownFormat {
        names: &["assay-httpd"],
        about: "what Apache httpd writes when Assay runs it",
        dialect: Dialect::Assay,
        text: r#"{time-s} {duration-us} {client} "{outcome}"/{status} {bytes} {method} {url}"#,
    },
    KnownFormat {
        names: &["assay-varnish"],
        about: "what varnishncsa writes when Assay runs Varnish",
        dialect: Dialect::Assay,
        text: "{time-s} {outcome}/{status} {bytes} {method} {url} {duration-us} {other}",
    },
    KnownFormat {
        names: &["assay-nginx"],
        about: "what nginx writes when Assay runs it",
        dialect: Dialect::Assay,
        text: "{time-s} {outcome}/{status} {bytes} {method} {url} {duration-s} {other}",
    },
    KnownFormat {
        names: &["assay-squid-xact"],
        about: "the native format of Squid with the robots' name of each request, as Squid writes it when Assay runs it",
        dialect: Dialect::Assay,
        text: concat!(
            "{time-s} {duration-ms} {client} {outcome}/{status} {bytes} {method} {url} {other} ",
            "{hierarchy}/{origin} {other} {xact}"
        ),
    },
    KnownFormat {
        names: &["assay-builtin"],
        about: "what the built-in proxy writes",
        dialect: Dialect::Assay,
        text: "{time-s} {duration-us} {client} {outcome}/{status} {bytes} {method} {url} {hierarchy} {xact}",
    },
    KnownFormat {
        names: &["assay-trafficserver-xact"],
        about: "what Traffic Server writes when Assay runs it, with the robots' name of each request",
        dialect: Dialect::Assay,
        text: "{time-s} {duration-ms} {client} {outcome}/{status} {bytes} {method} {url} {xact}",
    },
    KnownFormat {
        names: &["assay-haproxy-xact"],
        about: "what HAProxy writes when Assay runs it, with the robots' name of each request",
        dialect: Dialect::Assay,
        text: "{time-s} {duration-ms} {client} {server}/{status} {bytes} {method} {url} {xact}",
    },
    KnownFormat {
        names: &["assay-httpd-xact"],
        about: "what Apache httpd writes when Assay runs it, with the robots' name of each request",
        dialect: Dialect::Assay,
        text: r#"{time-s} {duration-us} {client} "{outcome}"/{status} {bytes} {method} {url} {xact}"#,
    },
    KnownFormat {
        names: &["assay-varnish-xact"],
        about: "what varnishncsa writes when Assay runs it, with the robots' name of each request",
        dialect: Dialect::Assay,
        text: "{time-s} {outcome}/{status} {bytes} {method} {url} {duration-us} {xact} {other}",
    },
    KnownFormat {
        names: &["assay-nginx-xact"],
        about: "what nginx writes when Assay runs it, with the robots' name of each request",
        dialect: Dialect::Assay,
        text: "{time-s} {outcome}/{status} {bytes} {method} {url} {duration-s} {xact} {other}",
    },
];

impl KnownFormat {
    pub fn format(&self) -> Format {
        let mut format = Format::compile(self.dialect, self.text)
            .expect("formats of our own compile; a test goes through all of them")
            .ending_at_word();
        self.names[0].clone_into(&mut format.name);
        self.about.clone_into(&mut format.about);
        format
    }
}
