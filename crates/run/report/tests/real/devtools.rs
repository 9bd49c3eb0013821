//! A real browser under control of a test, over the pipe that Chromium has for it.
//!
//! Messages are JSON, each ended by a zero byte, on descriptors 3 and 4. Nothing listens on a port. Waiting is done in
//! the page itself, until something has become true.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use assay_testbed::Browser;
use serde_json::{Value, json};

/// A machine may be busy: this is when to give up, not how long anything should take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A page in a headless browser. The browser ends with it.
pub struct Page {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    session: Option<String>,
    calls: u64,
    /// Everything that the browser said unasked, in order.
    pub events: Vec<Value>,
    pub downloads: tempfile::TempDir,
    _browser: Browser,
}

impl Page {
    /// An empty page that reports whatever it logs, throws, or requests from the network.
    pub fn new(chromium: &Path) -> Self {
        let (browser, downloads) = (Browser::new(), tempfile::tempdir().unwrap());
        // A shell puts the pipes where the browser looks for them.
        let mut command = Command::new("sh");
        command.args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null"#]).arg(chromium);
        let mut child = browser
            .set_up(command)
            .args(["--hide-scrollbars", "--remote-debugging-pipe", "about:blank"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (send, from) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { break };
                message.clear();
                if send.send(value).is_err() {
                    break;
                }
            }
        });
        let mut page = Self {
            child,
            to,
            from,
            session: None,
            calls: 0,
            events: Vec::new(),
            downloads,
            _browser: browser,
        };
        let target = page.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = page.call("Target.attachToTarget", attach);
        page.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        let path = page.downloads.path().display().to_string();
        page.call(
            "Browser.setDownloadBehavior",
            json!({"behavior": "allow", "downloadPath": path, "eventsEnabled": true}),
        );
        page
    }

    /// Calls a method and waits for its response.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.to.as_mut().unwrap().write_all(&bytes).unwrap();
        loop {
            let response =
                self.from.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no response to {method}"));
            if response["id"] == id {
                assert!(response["error"].is_null(), "{method}: {}", response["error"]);
                return response["result"].clone();
            }
            self.events.push(response);
        }
    }

    /// What an expression comes to in the page; a promise is waited for.
    pub fn js(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let response = self.call("Runtime.evaluate", params);
        assert!(response["exceptionDetails"].is_null(), "{expression}: {}", response["exceptionDetails"]);
        response["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, condition: &str) {
        let patience = PATIENCE.as_millis() / 2;
        let reached = self.js(&format!(
            "new Promise((done) => {{ const end = Date.now() + {patience}; const look = () => {{ \
             if ({condition}) done(true); else if (Date.now() > end) done(false); else setTimeout(look, 15); \
             }}; look(); }})"
        ));
        assert_eq!(reached, true, "it did not come to: {condition}");
    }

    /// Waits until something has been said unasked.
    pub fn event(&mut self, of: impl Fn(&Value) -> bool) -> Value {
        if let Some(seen) = self.events.iter().find(|event| of(event)) {
            return seen.clone();
        }
        loop {
            let event = self.from.recv_timeout(PATIENCE).expect("the browser goes on");
            self.events.push(event.clone());
            if of(&event) {
                return event;
            }
        }
    }

    /// Opens an address and waits until all charts are drawn.
    pub fn visit(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": url}));
        self.event(|event| event["method"] == "Page.loadEventFired");
        self.until("document.documentElement.dataset.drawnMs");
    }

    /// The size of the window, and whether it is a telephone's.
    pub fn window(&mut self, width: u32, height: u32, phone: bool) {
        let params = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone});
        self.call("Emulation.setDeviceMetricsOverride", params);
    }

    /// What the system says about colours: `light` or `dark`.
    pub fn system_theme(&mut self, theme: &str) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        self.call("Emulation.setEmulatedMedia", features);
    }

    /// A place in an element, as shares of its width and height; it is scrolled to the middle of the window.
    pub fn place(&mut self, selector: &str, across: f64, down: f64) -> (f64, f64) {
        let place = self.js(&format!(
            "(() => {{ document.documentElement.style.scrollBehavior = 'auto'; \
             const it = document.querySelector({selector:?}); it.scrollIntoView({{ block: 'center' }}); \
             const box = it.getBoundingClientRect(); \
             return [box.left + box.width * {across}, box.top + box.height * {down}]; }})()"
        ));
        (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
    }

    /// Something that a mouse does.
    pub fn mouse(&mut self, kind: &str, (x, y): (f64, f64), clicks: u32) {
        let held = u32::from(kind != "mouseReleased" && clicks > 0);
        let button = if clicks > 0 { "left" } else { "none" };
        let params =
            json!({"type": kind, "x": x, "y": y, "button": button, "buttons": held, "clickCount": clicks});
        self.call("Input.dispatchMouseEvent", params);
    }

    /// A click in the middle of an element.
    pub fn click(&mut self, selector: &str) {
        let at = self.place(selector, 0.5, 0.5);
        self.mouse("mouseMoved", at, 0);
        self.mouse("mousePressed", at, 1);
        self.mouse("mouseReleased", at, 1);
    }

    /// Presses a key and lets it go.
    pub fn key(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        let text = if key == "Enter" { "\r" } else { text };
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            _ => 0,
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let params = json!({"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code});
            self.call("Input.dispatchKeyEvent", params);
        }
    }

    /// What went wrong in the page: exceptions, anything on the console, anything in the browser's log.
    pub fn complaints(&self) -> Vec<&Value> {
        let complains = |event: &&Value| {
            ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"]
                .iter()
                .any(|method| event["method"] == *method)
        };
        self.events.iter().filter(complains).collect()
    }

    /// Every address that the page requested.
    pub fn requests(&self) -> Vec<&str> {
        let requested = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        requested.filter_map(|event| event["params"]["request"]["url"].as_str()).collect()
    }

    /// Waits for a download, and gives its text.
    pub fn downloaded(&mut self) -> String {
        let is = |event: &Value, method: &str| event["method"] == method;
        self.event(|e| is(e, "Browser.downloadProgress") && e["params"]["state"] == "completed");
        let begun = self.event(|event| is(event, "Browser.downloadWillBegin"));
        let name = begun["params"]["suggestedFilename"].as_str().unwrap();
        self.events.retain(|event| !event["method"].as_str().unwrap_or("").starts_with("Browser.download"));
        std::fs::read_to_string(PathBuf::from(self.downloads.path()).join(name)).unwrap()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // Closing its pipe ends the browser with all its processes.
        drop(self.to.take());
        let _ = self.child.wait();
    }
}
