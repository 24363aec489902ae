//! A headless Chromium, steered through its own driver by the WebDriver protocol.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// One browser window. Ends with the value.
pub(crate) struct Browser {
    driver: Child,
    session: String,
    agent: ureq::Agent,
    _output: std::io::Lines<BufReader<std::process::ChildStdout>>,
    _profile: tempfile::TempDir,
}

/// The first of `names` that is on the path.
fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    names.iter().flat_map(|n| dirs.iter().map(move |d| d.join(n))).find(|p| p.is_file())
}

impl Browser {
    /// Starts one; nothing if this machine has no Chromium with its driver.
    pub(crate) fn start() -> Option<Browser> {
        let chromium = program(&["chromium", "chromium-browser", "google-chrome"])?;
        let driver = program(&["chromedriver"])?;
        let mut driver = Command::new(driver)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the driver starts");
        // Kept open: the driver goes on writing.
        let mut lines = BufReader::new(driver.stdout.take().expect("piped")).lines();
        let port = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|l| l.rsplit_once("successfully on port ").map(|(_, p)| p.trim_end_matches('.').to_owned()))
            .expect("the driver says its port");
        let agent: ureq::Agent = ureq::Agent::config_builder().proxy(None).http_status_as_error(false).build().into();
        let profile = tempfile::tempdir().expect("a folder for the profile");
        let mut args: Vec<String> = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1440,900",
        ]
        .map(str::to_owned)
        .to_vec();
        args.push(format!("--user-data-dir={}", profile.path().display()));
        let mut browser = Browser {
            driver,
            session: format!("http://127.0.0.1:{port}/session"),
            agent,
            _output: lines,
            _profile: profile,
        };
        let always = json!({
            "goog:chromeOptions": { "binary": chromium, "args": args },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        });
        let made = browser.ask("", &json!({ "capabilities": { "alwaysMatch": always } }));
        let id = made["sessionId"].as_str().expect("a session");
        browser.session = format!("{}/{id}", browser.session);
        Some(browser)
    }

    fn ask(&self, path: &str, body: &Value) -> Value {
        let mut answer = self.agent.post(format!("{}{path}", self.session)).send(body.to_string()).expect("an answer");
        let text = answer.body_mut().with_config().limit(256 << 20).read_to_string().expect("text");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert!(value["value"]["error"].is_null(), "{path}: {}", value["value"]);
        value["value"].clone()
    }

    /// Opens a file.
    pub(crate) fn open(&self, page: &Path) {
        let page = page.canonicalize().expect("the page is there");
        self.ask("/url", &json!({ "url": format!("file://{}", page.display()) }));
        self.frame();
    }

    /// Lets the page draw.
    pub(crate) fn frame(&self) {
        self.ask(
            "/execute/async",
            &json!({ "script": "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))", "args": [] }),
        );
    }

    /// The value of a script's `return`.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.ask("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// The same as text.
    pub(crate) fn text(&self, script: &str) -> String {
        match self.run(script) {
            Value::String(s) => s,
            other => other.to_string(),
        }
    }

    /// Presses and releases keys, one after the other, as WebDriver names them.
    pub(crate) fn keys(&self, keys: &[&str]) {
        let actions: Vec<Value> = keys
            .iter()
            .flat_map(|k| [json!({ "type": "keyDown", "value": k }), json!({ "type": "keyUp", "value": k })])
            .collect();
        self.ask("/actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }));
        self.frame();
    }

    /// Clicks into the middle of what `selector` finds first.
    pub(crate) fn click(&self, selector: &str) {
        // Away from the bar at the top of the page, which would get the click.
        let script = "document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })";
        self.ask("/execute/sync", &json!({ "script": script, "args": [selector] }));
        let found = self.ask("/element", &json!({ "using": "css selector", "value": selector }));
        let id = found.as_object().and_then(|o| o.values().next()).and_then(Value::as_str).expect("an element");
        self.ask(&format!("/element/{id}/click"), &json!({}));
        self.frame();
    }

    /// A command of the browser's own protocol.
    pub(crate) fn command(&self, cmd: &str, params: &Value) {
        self.ask("/goog/cdp/execute", &json!({ "cmd": cmd, "params": params }));
        self.frame();
    }

    /// Sets the theme that the system asks for.
    pub(crate) fn scheme(&self, name: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": name });
        self.command("Emulation.setEmulatedMedia", &json!({ "features": [feature] }));
    }

    fn log(&self, kind: &str) -> Vec<Value> {
        let list = self.ask("/se/log", &json!({ "type": kind }));
        list.as_array().cloned().unwrap_or_default()
    }

    /// What the page has written to the console, errors of scripts and of its policy among it.
    pub(crate) fn console(&self) -> Vec<String> {
        self.log("browser").iter().map(|e| e["message"].to_string()).collect()
    }

    /// Addresses that a page from a file has asked for since the last call.
    pub(crate) fn requests(&self) -> Vec<String> {
        let parse = |e: &Value| serde_json::from_str::<Value>(e["message"].as_str()?).ok();
        let sent = |v: &Value| v["message"]["method"] == "Network.requestWillBeSent";
        // The browser's own first page asks for a lot.
        let ours = |v: &Value| v["message"]["params"]["documentURL"].as_str().is_some_and(|u| u.starts_with("file:"));
        let url = |v: Value| v["message"]["params"]["request"]["url"].as_str().map(str::to_owned);
        self.log("performance").iter().filter_map(parse).filter(sent).filter(ours).filter_map(url).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.agent.delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
