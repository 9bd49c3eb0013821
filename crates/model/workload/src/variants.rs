//! Variants of objects: the stored responses for one URL that `Vary` tells apart (RFC 9111, 4.1).

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

use assay_base::random::{FNV_START, fnv1a, fold};

use crate::model::{Coding, HeaderRule, RobotIndex, Workload};
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

/// A request field by which `Vary` keeps the stored response to one request from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaryConflict {
    /// Name of the field in lower case, or `*`.
    pub field: String,
    /// Values in the request that the response was made for.
    pub made_for: Vec<String>,
    /// Values in the request that got the response.
    pub requested: Vec<String>,
}

impl Display for VaryConflict {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self { field, made_for, requested } = self;
        if field == "*" {
            return out.write_str(
                "the response was fetched for another request and varies by everything (`Vary: *`): only a validation allows it",
            );
        }
        let value = |values: &[String]| match values {
            [] => format!("no {field}"),
            values => format!("`{field}: {}`", values.join(", ")),
        };
        write!(
            out,
            "the response varies by {field} and was fetched for a client that sent {}; this one sent {}",
            value(made_for),
            value(requested)
        )
    }
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
        let codings = self.varies(object.id.content).then(|| "accept-encoding".to_owned());
        let names: BTreeSet<String> = self.vary_names(object).chain(codings).collect();
        if names.contains("*") {
            return None;
        }
        Some(names.iter().fold(object.key, |key, name| fold(key, self.field_hash(xact, name))))
    }

    /// Field by which `Vary` keeps the stored response to the request `made_for` from serving another one without a validation,
    /// as far as it is known what both have sent. None: there is none.
    ///
    /// With `Vary: *`, each other request is in conflict. Not known are cookies and credentials, which a robot learns as it goes.
    /// Codings are left out: a cache may treat all requests that accept gzip alike, or decode what it has stored, and whether a
    /// coding is acceptable shows in the response.
    pub fn vary_conflict(
        &self,
        made_for: XactId,
        requested: XactId,
        object: &Object,
    ) -> Option<VaryConflict> {
        if !self.has_variants || made_for == requested || made_for == XactId::NOBODY {
            return None;
        }
        let is_conflict = |name: &String| match name.as_str() {
            "*" => true,
            "accept-encoding" => false,
            "cookie" if [made_for, requested].iter().any(|xact| self.keeps_cookies(xact.robot)) => false,
            "authorization" if [made_for, requested].iter().any(|xact| self.has_credentials(xact.robot)) => {
                false
            }
            name => self.meaning(made_for, name) != self.meaning(requested, name),
        };
        let field = self.vary_names(object).find(is_conflict)?;
        let values = |xact| self.added_values(xact, &field).map(str::to_owned).collect();
        Some(VaryConflict { made_for: values(made_for), requested: values(requested), field })
    }

    /// Items of all values that the workload adds to a request in a field, as caches may normalise them (RFC 9111, 4.1): they join
    /// fields, leave out blanks, and know that capitals make no difference. Preferences (`Accept`, `Accept-Language`) have no order, and
    /// their weights are numbers (RFC 9110, 12.4.2).
    fn meaning(&self, xact: XactId, name: &str) -> Vec<String> {
        let are_preferences = matches!(name, "accept" | "accept-language" | "accept-charset");
        let items = self.added_values(xact, name).flat_map(|value| value.split(','));
        let items = items.map(|item| item.trim().to_ascii_lowercase()).filter(|item| !item.is_empty());
        if !are_preferences {
            return items.collect();
        }
        let preference = |item: String| {
            let parameters = item.split(';').map(str::trim);
            let is_weight = |parameter: &&str| parameter.starts_with("q=");
            let weight = parameters.clone().find(is_weight).and_then(|weight| weight[2..].parse().ok());
            let others: Vec<&str> = parameters.filter(|parameter| !is_weight(parameter)).collect();
            format!("{};q={:.3}", others.join(";"), weight.unwrap_or(1.0f64))
        };
        let mut preferences: Vec<String> = items.map(preference).collect();
        preferences.sort_unstable();
        preferences
    }

    /// The names, in lower case, in the `Vary` fields that the workload adds to a response about an object.
    fn vary_names(&self, object: &Object) -> impl Iterator<Item = String> {
        let added = self.server_headers(object).chain(self.content_headers(object));
        let lists = added.filter(|(name, _)| name.eq_ignore_ascii_case("vary")).map(|(_, value)| value);
        let names = lists.flat_map(|list| list.split(',')).map(|name| name.trim().to_ascii_lowercase());
        names.filter(|name| !name.is_empty())
    }

    /// Values of a field in the fields that the workload adds to a request.
    fn added_values<'a>(&'a self, xact: XactId, name: &str) -> impl Iterator<Item = &'a str> {
        let added = self.request_headers(xact).filter(move |(field, _)| field.eq_ignore_ascii_case(name));
        added.map(|(_, value)| value.trim())
    }

    fn has_credentials(&self, robot: RobotIndex) -> bool {
        let group = self.group_of(robot).map(|group| &self.workload().robots[group]);
        group.is_some_and(|group| !group.credentials.users.is_empty())
    }

    /// A hash of the name and of the meaning of one field of a request.
    fn field_hash(&self, xact: XactId, name: &str) -> u64 {
        let mut hash = fnv1a(FNV_START, name.as_bytes());
        let Some(group) = self.group_of(xact.robot).map(|group| &self.workload().robots[group]) else {
            return hash;
        };
        let mut add = |item: &[u8]| hash = fnv1a(fnv1a(hash, b"\n"), item);
        self.meaning(xact, name).iter().for_each(|item| add(item.as_bytes()));
        match name {
            "accept-encoding" => {
                let codings: BTreeSet<_> = group.accepts.iter().copied().collect();
                for coding in codings {
                    add(match coding {
                        Coding::Identity => b"identity",
                        Coding::Gzip => b"gzip",
                    });
                }
            }
            "cookie" if self.keeps_cookies(xact.robot) => add(&xact.robot.to_be_bytes()),
            "authorization" if self.has_credentials(xact.robot) => add(&xact.robot.to_be_bytes()),
            _ => {}
        }
        hash
    }
}
