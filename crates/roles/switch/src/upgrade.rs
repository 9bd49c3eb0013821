//! Upgrades (RFC 9110, 7.8): whether a client requests another protocol on its connection, may have it, and the server agrees.
//!
//! Only protocols that the settings name are passed on: with any other one (h2c is the known case) a client could speak to a
//! server past all checks of the switch.

use assay_http::field::{has_token, tokens};
use assay_http::framing::BodyFraming;
use assay_http::head::{RequestHead, ResponseHead, Version};
use assay_net::fields;

/// Protocol that a client requests, if it is among `allowed` and the request is one that can lead there: HTTP/1.1, without a
/// body, and with `Upgrade` listed in `Connection`.
pub fn requested<'a>(head: &RequestHead<'_>, body: BodyFraming, allowed: &'a [String]) -> Option<&'a str> {
    let may = head.facts.version == Version::Http11 && body == BodyFraming::None;
    // Hardly any request lists fields in `Connection`; only those are searched.
    if !may || !head.headers().names_others() || !names_upgrade(head.headers()) {
        return None;
    }
    let wanted = head.header("upgrade")?;
    tokens(wanted)
        .find_map(|member| allowed.iter().find(|known| member.eq_ignore_ascii_case(known.as_bytes())))
        .map(String::as_str)
}

/// Whether a 101 response agrees to this protocol and no other.
pub fn agrees(head: &ResponseHead<'_>, protocol: &str) -> bool {
    let mut named = head.header("upgrade").into_iter().flat_map(tokens);
    let is_it = named.next().is_some_and(|member| member.eq_ignore_ascii_case(protocol.as_bytes()));
    is_it && named.next().is_none() && names_upgrade(head.headers())
}

/// Appends the upgrade fields to a complete head.
pub fn append(out: &mut Vec<u8>, protocol: &str) {
    out.truncate(out.len().saturating_sub(2));
    fields::append(out, b"Connection", b"Upgrade");
    fields::append(out, b"Upgrade", protocol.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn names_upgrade(mut all: assay_http::field::Fields<'_>) -> bool {
    all.any(|field| field.is("connection") && has_token(field.value, "upgrade"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(version: &str, rest: &str) -> Option<String> {
        let text = format!("GET / HTTP/{version}\r\nHost: a\r\n{rest}\r\n");
        let (head, _) = RequestHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
        requested(&head, head.body(), &["websocket".to_owned(), "x/2".to_owned()]).map(str::to_owned)
    }

    #[test]
    fn only_an_allowed_and_properly_requested_upgrade_is_passed_on() {
        let upgrade = "Connection: keep-alive, Upgrade\r\n";
        assert_eq!(wants("1.1", &format!("{upgrade}Upgrade: WebSocket\r\n")), Some("websocket".into()));
        assert_eq!(wants("1.1", &format!("{upgrade}Upgrade: h2c, x/2\r\n")), Some("x/2".into()));
        assert_eq!(wants("1.1", &format!("{upgrade}Upgrade: h2c\r\n")), None);
        assert_eq!(wants("1.1", upgrade), None);
        assert_eq!(wants("1.1", "Upgrade: websocket\r\n"), None, "Connection does not name it");
        assert_eq!(wants("1.0", &format!("{upgrade}Upgrade: websocket\r\n")), None);
        let body = format!("{upgrade}Upgrade: websocket\r\nContent-Length: 1\r\n");
        assert_eq!(wants("1.1", &body), None, "what comes behind it would have two meanings");
    }

    #[test]
    fn a_server_agrees_to_the_requested_protocol_only() {
        let agreed = |rest: &str| {
            let text = format!("HTTP/1.1 101 Switching\r\n{rest}\r\n");
            let (head, _) = ResponseHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
            agrees(&head, "websocket")
        };
        assert!(agreed("Connection: upgrade\r\nUpgrade: WebSocket\r\n"));
        assert!(!agreed("Connection: upgrade\r\nUpgrade: h2c\r\n"));
        assert!(!agreed("Connection: upgrade\r\nUpgrade: websocket, h2c\r\n"));
        assert!(!agreed("Connection: upgrade\r\n") && !agreed("Upgrade: websocket\r\n"));
        let mut out = b"HTTP/1.1 101 X\r\nA: b\r\n\r\n".to_vec();
        append(&mut out, "websocket");
        assert!(out.ends_with(b"A: b\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
    }
}
