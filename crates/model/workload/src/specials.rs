//! Parts of a workload that can make a request or its response more than a GET of a whole object. Decided once for each
//! group of robots, content type and server, so that plain requests, nearly all, pass no code for anything else.
//!
//! Each struct is taken apart field by field: a field that is added to the model does not compile before it is decided
//! here whether it concerns requests or responses. Were it forgotten, robots or origins would leave it out in silence.

use crate::model::{
    BodySpec, ClientBehaviour, Coding, Content, Expectation, Faults, RequestType, RobotGroup, Server,
    Weighted,
};

/// Requests for a content type, or to a server, that need more than a target and a mark; and responses of it that are
/// more than an object with its fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Specials {
    pub requests: bool,
    pub responses: bool,
}

impl RobotGroup {
    /// True if requests of the group can be special whatever they are for.
    pub fn makes_special_requests(&self) -> bool {
        let Self {
            request_types,
            expectation,
            accepts,
            headers,
            credentials,
            abort_share,
            lifetime_s,
            // Decided with the launch, for every xact.
            methods: _,
            ranges: _,
            post_contents: _,
            put_contents: _,
            body_recurrence: _,
            recurrence: _,
            embedded_recurrence: _,
            popularity: _,
            private_share: _,
            foreign_share: _,
            // Those that are set come from servers that set them.
            cookies: _,
            // Of robots and connections, not of requests.
            kind: _,
            addresses: _,
            origins: _,
            proxies: _,
            pace: _,
            streams: _,
            priorities: _,
            launch_window: _,
            private_cache: _,
            session: _,
            substitution: _,
            connection_use_limit: _,
            idle_timeout: _,
            open_connection_limit: _,
            waiting_limit: _,
            pipeline_depth: _,
            http_versions: _,
        } = self;
        has_ranges(request_types)
            || *expectation != Expectation::Never
            || !accepts.is_empty()
            || !headers.is_empty()
            || !credentials.users.is_empty()
            || *abort_share > 0.0
            || lifetime_s.is_some()
    }
}

impl Content {
    pub fn specials(&self) -> Specials {
        let Self {
            // Whatever the bytes are, both sides know them.
            body: BodySpec { codings, source: _, unique: _, injection: _ },
            headers,
            // The others are decided with the launch.
            behaviour: ClientBehaviour { request_types, methods: _, recurrence: _, popularity: _, ranges: _ },
            // Facts of each object, which every response shows.
            kind: _,
            mime_type: _,
            extensions: _,
            prefixes: _,
            size_bytes: _,
            life_cycle: _,
            cachable: _,
            checksum: _,
            embedded: _,
        } = self;
        Specials {
            requests: !codings.is_empty()
                || !headers.is_empty()
                || request_types.as_ref().is_some_and(has_ranges),
            responses: !headers.is_empty() || codings.iter().any(|coding| *coding != Coding::Identity),
        }
    }
}

impl Server {
    pub fn specials(&self) -> Specials {
        let Self {
            redirect_share,
            cookies,
            body_allowed,
            authentication,
            abort_share,
            headers,
            faults,
            // Of origins and connections, not of exchanges.
            kind: _,
            contents: _,
            direct_access: _,
            think_s: _,
            connection_use_limit: _,
            idle_timeout: _,
            http_versions: _,
            popularity: _,
        } = self;
        let sets_cookies = cookies.as_ref().is_some_and(|cookies| cookies.share > 0.0);
        let demands_login = authentication.as_ref().is_some_and(|demand| demand.share > 0.0);
        let either = *redirect_share > 0.0
            || sets_cookies
            || demands_login
            || *abort_share > 0.0
            || faults.can_occur();
        Specials {
            // A refused body (417) is a response to `Expect`, whatever the request is for.
            requests: either || *body_allowed < 1.0,
            responses: either || !headers.is_empty(),
        }
    }
}

impl Faults {
    fn can_occur(&self) -> bool {
        let Self {
            error_share,
            reset_share,
            slow_start_share,
            slow_body_share,
            lifetime_s,
            // How a fault looks, once it occurs.
            statuses: _,
            slow_start_s: _,
            slow_body_bytes_per_s: _,
            // Think time.
            delay_per_active_s: _,
        } = self;
        let shares = [error_share, reset_share, slow_start_share, slow_body_share];
        shares.into_iter().any(|share| *share > 0.0) || lifetime_s.is_some()
    }
}

fn has_ranges(types: &Weighted<RequestType>) -> bool {
    types.items().iter().any(|(request_type, _)| *request_type == RequestType::Range)
}

#[cfg(test)]
mod tests {
    use crate::model::{CookieSetting, Distribution, HeaderRule};

    use super::*;

    fn rule() -> HeaderRule {
        HeaderRule { fields: vec![("X".into(), "y".into())], probability: 0.5 }
    }

    #[test]
    fn fields_that_a_server_adds_concern_its_responses_alone() {
        let plain = Server { body_allowed: 1.0, ..Server::default() };
        assert_eq!(plain.specials(), Specials::default());
        let adds = Server { headers: vec![rule()], ..plain.clone() };
        assert_eq!(adds.specials(), Specials { requests: false, responses: true });
        let refuses = Server { body_allowed: 0.5, ..plain.clone() };
        assert_eq!(refuses.specials(), Specials { requests: true, responses: false });
        let is_patient = Faults { delay_per_active_s: 1.0, ..Faults::default() };
        assert_eq!(Server { faults: is_patient, ..plain.clone() }.specials(), Specials::default());
        let resets = Faults { reset_share: 0.1, ..Faults::default() };
        let both = Specials { requests: true, responses: true };
        assert_eq!(Server { faults: resets, ..plain.clone() }.specials(), both);
        let one = Distribution::Constant(1.0);
        let never = CookieSetting { senders: 1.0, share: 0.0, count: one.clone(), value_bytes: one };
        assert_eq!(Server { cookies: Some(never), ..plain }.specials(), Specials::default());
    }
}
