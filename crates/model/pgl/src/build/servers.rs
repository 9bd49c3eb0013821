//! Servers and their origins.

use std::collections::HashMap;

use assay_workload::model::{ContentIndex, Origin, OriginIndex, Server, Weighted};

use super::Builder;
use crate::diagnostic::{Code, Diagnostic};
use crate::schema::OmittedFeature;
use crate::source::Span;
use crate::value::array::Run;
use crate::value::{Record, Value};

impl Builder<'_> {
    /// Adds a kind of server, with an origin for each of its addresses.
    pub(super) fn add_server(&mut self, record: &Record, span: Span) {
        let Some(runs) = self.agent_runs(record, span) else { return };
        let Some(index) = self.next_server_index(span) else { return };
        self.warn_unsupported_fields(record);
        let usable =
            self.require(record, "contents", span, "list its content types: `contents = [ cntImage ];`");
        let contents = self.content_choices(record, "contents");
        if usable
            && contents.is_empty()
            && self.array(record, "contents").is_some_and(|(array, _)| array.count() == 0)
        {
            let at = record.get("contents").map_or(span, |slot| slot.span);
            self.error(Code::Required, at, "this server has nothing to serve", "expected content types");
        }
        let direct_access = self.direct_access(record, &contents);
        self.resolve_embedded();
        self.protocol(record);
        let popularity = self.popularity(record, span);
        let server = Server {
            kind: self.text(record, "kind").unwrap_or_else(|| "server".to_owned()),
            contents,
            direct_access,
            think_s: self.distribution(record, "xact_think"),
            connection_use_limit: self.distribution(record, "pconn_use_lmt"),
            idle_timeout: self.duration(record, "idle_pconn_tout", false),
            http_versions: self.versions(record),
            redirect_share: self.redirect_share(record),
            popularity,
            cookies: self.cookie_setting(record, span),
            body_allowed: self.share(record, "req_body_allowed").unwrap_or(1.0),
            authentication: self.auth_demand(record),
            abort_share: self.share(record, "abort_prob").unwrap_or(0.0),
            headers: self.header_rules(record, "http_headers"),
            faults: self.faults(record),
        };
        self.servers.push(server);
        self.server_spans.push(span);
        self.add_origins(record, &runs, index, span);
    }

    /// `protocol`; warns about FTP.
    fn protocol(&mut self, record: &Record) {
        let known = [("HTTP", false), ("FTP", true)];
        let protocols = self.keywords(record, "protocol", &known).unwrap_or_default();
        if protocols.items().iter().any(|(ftp, share)| *ftp && *share > 0.0) {
            self.diagnostics.out_of_scope(OmittedFeature::Ftp, self.field_span(record, "protocol"));
        }
    }

    /// Share of "302 Found" in `rep_types`.
    fn redirect_share(&mut self, record: &Record) -> f64 {
        let known = [("Basic", false), ("302 Found", true)];
        let types = self.keywords(record, "rep_types", &known).unwrap_or_default();
        let redirects = types.items().iter().filter(|(redirect, _)| *redirect);
        let share = redirects.fold(0.0, |sum, (_, share)| sum + share);
        if share > 0.0 {
            let at = self.field_span(record, "rep_types");
            let help = "say which objects redirections lead to: `pop_model = { pop_distr = popUnif(); };`";
            self.require(record, "pop_model", at, help);
        }
        share
    }

    /// Content types that robots request directly, with the probabilities of `contents` unless they have their own.
    fn direct_access(
        &mut self,
        record: &Record,
        contents: &Weighted<ContentIndex>,
    ) -> Weighted<ContentIndex> {
        let Some((array, at)) = self.array(record, "direct_access").filter(|(array, _)| array.count() > 0)
        else {
            return contents.clone();
        };
        let own = array.weighted();
        let content_weights: HashMap<ContentIndex, f64> = contents.items().iter().copied().collect();
        let mut weights: Vec<(ContentIndex, f64)> = Vec::new();
        let mut places: HashMap<ContentIndex, usize> = HashMap::new();
        for choice in self.choices(record, "direct_access") {
            let Value::Record(content) = &choice.value else { continue };
            let index = self.known_contents.get(&content.fingerprint()).copied();
            let known = index.and_then(|index| Some((index, *content_weights.get(&index)?)));
            let Some((index, content_weight)) = known else {
                if !contents.is_empty() {
                    let kind = self.text(content, "kind").unwrap_or_else(|| "some-content".to_owned());
                    self.diagnostics.add(
                        Diagnostic::error(
                            Code::UnknownOrigin,
                            choice.span,
                            format!("`{kind}` is not among the contents"),
                        )
                        .label("expected a type that `contents` of this server lists")
                        .help(
                            "a type that was changed after it was listed is another type: assigning copies",
                        ),
                    );
                }
                continue;
            };
            let weight = if own { choice.probability } else { content_weight };
            let place = *places.entry(index).or_insert(weights.len());
            match weights.get_mut(place) {
                Some((_, sum)) if own => *sum += weight,
                Some(_) => {}
                None => weights.push((index, weight)),
            }
        }
        if !weights.is_empty() && weights.iter().all(|(_, weight)| *weight <= 0.0) {
            self.error(
                Code::Probabilities,
                at,
                "nothing would ever be requested",
                "all of these have a weight of zero",
            );
        }
        Weighted::new(weights)
    }

    fn add_origins(&mut self, record: &Record, runs: &[Run], server: u16, span: Span) {
        let at = record.get("addresses").map_or(span, |slot| slot.span);
        let total: u64 = runs.iter().map(|run| run.value.count().saturating_mul(run.times)).sum();
        if total.saturating_add(self.origins.len() as u64) > u64::from(OriginIndex::MAX) + 1 {
            self.error(
                Code::TooMany,
                at,
                "too many servers",
                format!("{total} here; at most 65536 in a workload"),
            );
            return;
        }
        for run in runs {
            let Value::Address(range) = &run.value else { continue };
            if range.ports.is_none() {
                self.diagnostics.add(
                    Diagnostic::error(Code::BadAddress, at, "the address of a server has no port")
                        .label(format!("`{range}` does not say where to listen"))
                        .help(format!("write '{range}:80', or `setAddrPort(addresses, 80)`")),
                );
                return;
            }
            for address in (0..run.times).flat_map(|_| range.iter()) {
                let authority = address.authority();
                if let Some((_, before)) = self.origins_by_address.get(&authority) {
                    let diagnostic = Diagnostic::error(
                        Code::Duplicate,
                        at,
                        format!("two servers have the address {authority}"),
                    )
                    .label("only one can listen there")
                    .secondary(*before, "used here already");
                    self.diagnostics.add(diagnostic);
                    return;
                }
                self.origins_by_address.insert(authority.clone(), (self.origins.len(), at));
                self.origins.push(Origin { authority, server });
            }
        }
    }
}
