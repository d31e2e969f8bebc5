//! Real Chromium over WebDriver, for tests of pages. Chromium and chromedriver must be in PATH; `cargo xtask test`
//! installs them.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::Client;
use crate::{eventually, try_eventually};

/// Longest wait for a page to become as expected.
const WAIT_MAX: Duration = Duration::from_secs(15);
/// Time zone of the browser: not UTC, so that tests find pages that mix up time zones.
const TIME_ZONE: &str = "America/New_York";
/// Name of the field with an element's id: the "web element identifier" of WebDriver.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// One window of a browser with its own profile. Closed when dropped.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    address: String,
    client: Client,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// Panics if Chromium cannot be started.
    pub async fn start() -> Self {
        let profile = TempDir::new().expect("the temporary folder is writable");
        let (driver, port) = (0..3).find_map(|_| start_driver()).expect("chromedriver says its port");
        let address = format!("127.0.0.1:{port}");
        let client = Client::new(&format!("http://{address}")).with_timeout(Duration::from_mins(1));
        let folder = profile.path().display().to_string();
        let mut browser = Self { driver, address, client, session: String::new(), _profile: profile };
        // Scrollbars are hidden, because a screenshot of the whole page removes them: elements would move, and clicks
        // would miss them.
        let request = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": { "browser": "ALL" },
            "goog:chromeOptions": { "args": [
                "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--disable-extensions", "--lang=en-US", "--window-size=1280,900", "--hide-scrollbars", format!("--user-data-dir={folder}"),
            ] },
        } } });
        let created = browser.post("/session", &request).await;
        created["sessionId"].as_str().expect("a session has an id").clone_into(&mut browser.session);
        browser
    }

    pub async fn open(&self, url: &str) {
        self.command("/url", &json!({ "url": url })).await;
    }

    pub async fn url(&self) -> String {
        let answer = self.get("/url").await;
        answer.as_str().expect("a page has a URL").to_owned()
    }

    pub async fn title(&self) -> String {
        self.get("/title").await.as_str().unwrap_or_default().to_owned()
    }

    pub async fn reload(&self) {
        self.command("/refresh", &json!({})).await;
    }

    pub async fn back(&self) {
        self.command("/back", &json!({})).await;
    }

    /// Opens an empty tab and goes there; returns the tab that was shown before.
    pub async fn new_tab(&self) -> String {
        let before = self.get("/window").await.as_str().expect("a window has a handle").to_owned();
        let new = self.command("/window/new", &json!({ "type": "tab" })).await;
        self.go_to_tab(new["handle"].as_str().expect("a tab has a handle")).await;
        before
    }

    /// Shows another tab.
    pub async fn go_to_tab(&self, tab: &str) {
        self.command("/window", &json!({ "handle": tab })).await;
        self.devtools("Page.bringToFront", &json!({})).await;
    }

    /// Whether an element of the page matches the selector.
    pub async fn has(&self, selector: &str) -> bool {
        !self.find_all(selector).await.is_empty()
    }

    pub async fn count(&self, selector: &str) -> usize {
        self.find_all(selector).await.len()
    }

    /// Waits until an element matches the selector.
    pub async fn until(&self, selector: &str) {
        let found = try_eventually(WAIT_MAX, async || {
            if self.has(selector).await { Ok(()) } else { Err(format!("nothing fits {selector}")) }
        });
        self.expect_found(found.await).await;
    }

    /// Waits until the page's text contains `text`.
    pub async fn until_text(&self, text: &str) {
        let found = try_eventually(WAIT_MAX, async || {
            let is_there = self.page_text().await.contains(text);
            if is_there { Ok(()) } else { Err(format!("the page does not say {text:?}")) }
        });
        self.expect_found(found.await).await;
    }

    /// Reloads the page until its text contains `text`.
    pub async fn reload_until_text(&self, text: &str) {
        eventually(async || {
            let page_text = self.page_text().await;
            if page_text.contains(text) {
                return Ok(());
            }
            self.reload().await;
            Err(format!("the page does not say {text:?}: {page_text}"))
        })
        .await;
    }

    async fn expect_found(&self, found: Result<(), String>) {
        if let Err(problem) = found {
            let (url, text) = (self.url().await, self.page_text().await);
            panic!("{problem} on {url} within {WAIT_MAX:?}; it says:\n{text}");
        }
    }

    /// Visible text of the page.
    pub async fn page_text(&self) -> String {
        match self.find_all("body").await.pop() {
            Some(body) => self.text_of(&body).await,
            None => String::new(),
        }
    }

    /// Visible text of the first element that matches.
    pub async fn text(&self, selector: &str) -> String {
        let element = self.find(selector).await;
        self.text_of(&element).await
    }

    pub async fn attribute(&self, selector: &str, name: &str) -> Option<String> {
        let element = self.find(selector).await;
        let value = self.get(&format!("/element/{element}/attribute/{name}")).await;
        value.as_str().map(ToOwned::to_owned)
    }

    pub async fn click(&self, selector: &str) {
        // A page that updates itself may replace an element between finding and clicking it.
        loop {
            let element = self.find(selector).await;
            let path = format!("/session/{}/element/{element}/click", self.session);
            let headers = [("content-type", "application/json")];
            let reply = self.client.request(Method::POST, &path, &headers, Bytes::from("{}")).await;
            let reply = reply.expect("chromedriver answers").json();
            if reply["value"]["error"] != "stale element reference" {
                value_of(&path, &reply);
                return;
            }
        }
    }

    /// Replaces the content of a field.
    pub async fn fill(&self, selector: &str, text: &str) {
        let element = self.find(selector).await;
        self.command(&format!("/element/{element}/clear"), &json!({})).await;
        self.command(&format!("/element/{element}/value"), &json!({ "text": text })).await;
    }

    /// Presses keys where the focus is.
    pub async fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() }))
            })
            .collect();
        let keyboard = json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] });
        self.command("/actions", &keyboard).await;
    }

    /// Accepts the confirmation dialog of the page.
    pub async fn accept_confirmation(&self) {
        self.command("/alert/accept", &json!({})).await;
    }

    /// Result of a script, which ends in `return …`.
    pub async fn run(&self, script: &str) -> Value {
        self.command("/execute/sync", &json!({ "script": script, "args": [] })).await
    }

    /// Like `run`; the script calls its last argument with the result.
    pub async fn run_async(&self, script: &str) -> Value {
        self.command("/execute/async", &json!({ "script": script, "args": [] })).await
    }

    /// Messages on the console since the last call.
    pub async fn console(&self) -> Vec<String> {
        let entries = self.command("/se/log", &json!({ "type": "browser" })).await;
        let entries = entries.as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    pub async fn set_dark(&self, is_dark: bool) {
        let value = if is_dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": value }]);
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": features })).await;
    }

    /// Sets the size of the page, in CSS pixels.
    pub async fn set_size(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.devtools("Emulation.setDeviceMetricsOverride", &size).await;
    }

    /// Allows or forbids scripts, for pages that are opened from now on.
    pub async fn set_scripts(&self, are_on: bool) {
        self.devtools("Emulation.setScriptExecutionDisabled", &json!({ "value": !are_on })).await;
    }

    /// Writes the whole page as PNG.
    pub async fn screenshot(&self, file: &Path) {
        let params = json!({ "format": "png", "captureBeyondViewport": true });
        let taken = self.devtools("Page.captureScreenshot", &params).await;
        let bytes = decode_base64(taken["data"].as_str().expect("a picture comes as text"));
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).expect("the folder is writable");
        }
        std::fs::write(file, bytes).expect("the folder is writable");
    }

    async fn devtools(&self, command: &str, params: &Value) -> Value {
        self.command("/goog/cdp/execute", &json!({ "cmd": command, "params": params })).await
    }

    async fn find(&self, selector: &str) -> String {
        self.until(selector).await;
        self.find_all(selector).await.swap_remove(0)
    }

    async fn find_all(&self, selector: &str) -> Vec<String> {
        let found = self.command("/elements", &json!({ "using": "css selector", "value": selector })).await;
        let found = found.as_array().cloned().unwrap_or_default();
        found.iter().filter_map(|element| element[ELEMENT].as_str().map(ToOwned::to_owned)).collect()
    }

    async fn text_of(&self, element: &str) -> String {
        // The page may replace an element between finding and reading it; its text is then empty.
        let path = format!("/session/{}/element/{element}/text", self.session);
        let reply = self.client.get(&path).await.expect("chromedriver answers");
        reply.json()["value"].as_str().unwrap_or_default().to_owned()
    }

    async fn get(&self, path: &str) -> Value {
        let reply = self.client.get(&format!("/session/{}{path}", self.session)).await;
        value_of(path, &reply.expect("chromedriver answers").json())
    }

    async fn command(&self, path: &str, body: &Value) -> Value {
        self.post(&format!("/session/{}{path}", self.session), body).await
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let headers = [("content-type", "application/json")];
        let reply = self.client.request(Method::POST, path, &headers, Bytes::from(body.to_string())).await;
        value_of(path, &reply.expect("chromedriver answers").json())
    }
}

fn value_of(path: &str, reply: &Value) -> Value {
    let value = reply["value"].clone();
    assert!(value.get("error").is_none(), "{path}: {}: {}", value["error"], value["message"]);
    value
}

/// Starts chromedriver; returns the port in its greeting. `None` if it ended at once: chromedriver takes a free IPv4
/// port, and ends if another program has that port on IPv6.
fn start_driver() -> Option<(Child, u16)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .env("TZ", TIME_ZONE)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromedriver starts: `cargo xtask test` installs it (Debian: chromium-driver)");
    let output = driver.stdout.take().expect("standard output is piped");
    let mut lines = BufReader::new(output).lines();
    let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let (_, port) = line.split_once("started successfully on port ")?;
        port.trim_end_matches('.').parse().ok()
    });
    if port.is_none() {
        driver.wait().expect("chromedriver has ended");
    }
    // Read the rest, so that the pipe never fills.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    Some((driver, port?))
}

fn decode_base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'=').map(value).collect();
    let bits = |chunk: &[u8]| chunk.iter().fold(0_u32, |sum, digit| (sum << 6) | u32::from(*digit));
    digits
        .chunks(4)
        .flat_map(|chunk| {
            let whole = bits(chunk) << (6 * (4 - chunk.len()));
            whole.to_be_bytes()[1..chunk.len()].to_vec()
        })
        .collect()
}

impl Drop for Browser {
    /// Ends the session, which closes Chromium, and then its driver.
    fn drop(&mut self) {
        if let Ok(mut stream) = TcpStream::connect(&self.address) {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            let request = format!(
                "DELETE /session/{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
                self.session, self.address
            );
            // The answer does not matter: the driver is killed below.
            let _ = stream.write_all(request.as_bytes());
            let _ = stream.read_to_end(&mut Vec::new());
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::decode_base64;

    #[test]
    fn base64_is_decoded() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("YWI=", "ab"), ("Zm9v", "foo"), ("Zm9vYg==", "foob")]
        {
            assert_eq!(decode_base64(text), bytes.as_bytes());
        }
        assert_eq!(decode_base64("+/+/"), [0xfb, 0xff, 0xbf]);
    }
}
