//! Requests that try to make an intermediary which stands for one server send requests to another one.

use std::net::SocketAddr;

use tokio::io::AsyncReadExt;

use crate::Client;

/// Requests to an intermediary that stands for `named`, each of which names `other` in some form. No two have the same path,
/// and each ends its connection.
pub fn elsewhere(named: SocketAddr, other: SocketAddr) -> Vec<String> {
    let port = other.port();
    let targets = [
        format!("http://{other}/"),
        format!("HTTP://{other}/"),
        format!("hTtP://{other}"),
        format!("http://{other}?q"),
        format!("http://localhost:{port}/"),
        format!("http://localhost.:{port}/"),
        format!("http://LOCALHOST:{port}/"),
        format!("http://%6cocalhost:{port}/"),
        format!("http://127.1:{port}/"),
        format!("http://0:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0x7f000001:{port}/"),
        format!("http://127.0.0.1:0{port}/"),
        format!("http://127.0.0.1:{port}:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://[::ffff:7f00:1]:{port}/"),
        format!("http://user@{other}/"),
        format!("http://user:word@{other}/"),
        format!("http://{named}@{other}/"),
        format!("http://{named}%40{other}/"),
        format!("http://{named}#@{other}/"),
        format!("http://{named}?@{other}/"),
        format!("http://{named}/@{other}/"),
        format!("http://{named}\\@{other}/"),
        format!("http://{named}/../../{other}/"),
        format!("http:\\\\{other}\\"),
        format!("http:/{other}/"),
        format!("http:{other}/"),
        format!("http:///{other}/"),
        format!("https://{other}/"),
        format!("ftp://{other}/"),
        format!("//{other}/"),
        format!("///{other}/"),
        format!("/\\{other}/"),
        format!("/http://{other}/"),
        format!("{other}/"),
        format!("{other}"),
        format!("/?url=http://{other}/"),
        "/".to_owned(),
    ];
    let hosts = [
        format!("Host: {named}\r\n"),
        format!("Host: {other}\r\n"),
        format!("Host: localhost.:{port}\r\n"),
        format!("Host: user@{other}\r\n"),
        format!("Host: {named}@{other}\r\n"),
        format!("Host: {named}, {other}\r\n"),
        format!("Host: {named}\r\nHost: {other}\r\n"),
        format!("Host: {other}\r\nHost: {named}\r\n"),
        format!("Host: {named}\r\nX-Forwarded-Host: {other}\r\nForwarded: host=\"{other}\"\r\n"),
        "Host: \r\n".to_owned(),
    ];
    let mut all = Vec::new();
    let ends = "Connection: close\r\n\r\n";
    for target in &targets {
        for host in &hosts {
            let number = all.len();
            let end = if target.contains(['?', '#']) { "&" } else { "/" };
            all.push(format!("GET {target}{end}{number} HTTP/1.1\r\n{host}{ends}"));
        }
    }
    for host in &hosts {
        all.push(format!("CONNECT {other} HTTP/1.1\r\n{host}{ends}"));
        all.push(format!("OPTIONS http://{other} HTTP/1.1\r\n{host}{ends}"));
        let number = all.len();
        all.push(format!("POST http://{other}/{number} HTTP/1.1\r\n{host}Content-Length: 2\r\n{ends}hi"));
        all.push(format!("HEAD http://{other}/{number} HTTP/1.1\r\n{host}{ends}"));
    }
    all.push(format!("CONNECT {named} HTTP/1.1\r\nHost: {named}\r\n{ends}"));
    all.push(format!("CONNECT http://{other}/ HTTP/1.1\r\nHost: {named}\r\n{ends}"));
    all.push(format!("GET http://{other}/ten HTTP/1.0\r\n\r\n"));
    all.push("GET /ten HTTP/1.0\r\n\r\n".to_owned());
    all
}

/// The response to a request on a connection of its own, read until that ends: status, and all bytes.
pub async fn response_to(address: SocketAddr, request: &str) -> (u16, String) {
    let mut client = Client::connect(address).await;
    client.send(request).await;
    let mut bytes = Vec::new();
    // A connection that is reset has said nothing more.
    let _ = client.stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or(0), text)
}
