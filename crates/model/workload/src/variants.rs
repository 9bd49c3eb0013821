//! Variants of objects: the stored responses for one URL that `Vary` tells apart (RFC 9111, 4.1).

use std::collections::BTreeSet;

use assay_base::random::{FNV_START, fnv1a, fold};

use crate::model::{Coding, HeaderRule, Workload};
use crate::object::Object;
use crate::universe::Universe;
use crate::xact::XactId;

/// True if some response may say `Vary`.
pub(crate) fn has_variants(workload: &Workload) -> bool {
    let says_vary = |rule: &HeaderRule| rule.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("vary"));
    workload
        .contents
        .iter()
        .any(|content| content.body.codings.len() > 1 || content.headers.iter().any(says_vary))
        || workload.servers.iter().any(|server| server.headers.iter().any(says_vary))
}

impl Universe {
    /// Key of the stored response that serves a request: the object's key, or that of the variant which the request selects by the
    /// fields that the origin's `Vary` names. None: it varies by everything (`*`), and no stored response serves another request.
    ///
    /// Codings have no order in `Accept-Encoding`. Cookies and credentials are taken to be a robot's own, and all of its requests to
    /// carry the same ones.
    pub fn response_key(&self, xact: XactId, object: &Object) -> Option<u64> {
        if !self.has_variants {
            return Some(object.key);
        }
        let names = self.varies_by(object);
        if names.contains("*") {
            return None;
        }
        Some(names.iter().fold(object.key, |key, name| fold(key, self.field_hash(xact, name))))
    }

    /// The names, in lower case, in all `Vary` fields of a response about an object.
    fn varies_by(&self, object: &Object) -> BTreeSet<String> {
        let added = self.server_headers(object).chain(self.content_headers(object));
        let lists = added.filter(|(name, _)| name.eq_ignore_ascii_case("vary")).map(|(_, value)| value);
        let codings = self.varies(object.id.content).then_some("accept-encoding");
        let names = lists
            .chain(codings)
            .flat_map(|list| list.split(','))
            .map(|name| name.trim().to_ascii_lowercase());
        names.filter(|name| !name.is_empty()).collect()
    }

    /// A hash of the name and of all values of one field of a request.
    fn field_hash(&self, xact: XactId, name: &str) -> u64 {
        let hash = fnv1a(FNV_START, name.as_bytes());
        let Some(group) = self.group_of(xact.robot).map(|group| &self.workload().robots[group]) else {
            return hash;
        };
        let added = self.request_headers(xact).filter(|(field, _)| field.eq_ignore_ascii_case(name));
        let mut values: Vec<&[u8]> = added.map(|(_, value)| value.trim().as_bytes()).collect();
        let robot = xact.robot.to_be_bytes();
        match name {
            "accept-encoding" => {
                let codings: BTreeSet<_> = group.accepts.iter().copied().collect();
                values.extend(codings.into_iter().map(|coding| match coding {
                    Coding::Identity => &b"identity"[..],
                    Coding::Gzip => b"gzip",
                }));
            }
            "cookie" if self.keeps_cookies(xact.robot) => values.push(&robot),
            "authorization" if !group.credentials.users.is_empty() => values.push(&robot),
            _ => {}
        }
        values.into_iter().fold(hash, |hash, value| fnv1a(fnv1a(hash, b"\n"), value))
    }
}
