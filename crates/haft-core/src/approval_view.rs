//! What a person sees of a call before they agree to it: all of it.
//!
//! There is one such view, and every channel shows it: a terminal, a page, a form. It leaves nothing out and can be
//! read back, so that no two calls look the same. A channel that has no room for all of it must not take a yes.

use crate::{ApprovalRequest, IsolationLevel, Limits, ParentGrant, Resource, Risk, text};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// What a call does and what it runs in, besides what it was called with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalDetail {
    /// What the tool says that the call would do: the whole of what the summary begins with.
    pub does: String,
    /// What it is isolated by.
    pub isolation: IsolationLevel,
    /// What programs reach at most: paths, hosts, names of variables. Null where nothing is run in a jail.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub reach: Value,
    /// The limits that the caller wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// What the sandbox around it grants, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<ParentGrant>,
    /// What the caller hands to the tool beside the arguments: metadata of the call, and context. Null where there is none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub passed: Value,
    /// Where secrets were taken out of the arguments: every sign in them that is no letter or digit. A secret of
    /// `$(touch x)` is none, and the person who is asked must be able to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<String>,
}

/// What a line of a view is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKind {
    /// Text.
    Text,
    /// A value that is no text: a number, a switch, an empty list.
    Value,
    /// A line of what would change: added.
    Added,
    /// Taken out.
    Removed,
    /// Where in a file.
    Place,
    /// A line of what would change that stays as it is, or is about it.
    Context,
}

/// One line of a view. It holds no control character, nothing invisible, and no line end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewLine {
    /// What it is; empty where the line goes on with what the one before began. Arguments begin with two blanks, so
    /// that none can pass for something else.
    pub label: String,
    /// What there is.
    pub text: String,
    /// What it is about.
    pub kind: ViewKind,
}

impl ViewLine {
    /// What stands between the label and the text.
    pub fn sign(&self) -> char {
        match self.kind {
            ViewKind::Value => '=',
            ViewKind::Text | ViewKind::Added | ViewKind::Removed | ViewKind::Place | ViewKind::Context => '│',
        }
    }
}

/// Everything that a person agrees to with a yes.
///
/// ```
/// # use haft_core::{ApprovalRequest, Arguments};
/// # fn show(request: &ApprovalRequest) {
/// let view = request.view();
/// assert!(view.to_string().starts_with("tool"));
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalView {
    /// Line by line.
    pub lines: Vec<ViewLine>,
}

impl ApprovalRequest {
    /// Everything that a yes to this covers.
    pub fn view(&self) -> ApprovalView {
        // Without `..`: what is added to a question is shown, or it is said here why not.
        let ApprovalRequest {
            id: _,           // a name for the question
            execution_id: _, // the same
            call_id: _,      // the caller's own name for the call
            tool,
            summary,
            risk,
            reason,
            arguments,
            preview,
            fingerprint,
            detail,
            asker,
            batch_id: _, // its other questions are asked beside this one
            footprint,
            offers: _, // shown where something is to be remembered
            replaces,
            expires_at: _, // of the question, not of the call
        } = self;
        let ApprovalDetail { does, isolation, reach, limits, sandbox, passed, hidden } = detail;
        let mut view = ApprovalView::default();
        view.text("tool", tool);
        view.text("does", if does.is_empty() { summary } else { does });
        view.text("why", reason);
        view.text("risk", risk_name(*risk));
        view.text("agent", &asker.agent);
        if let Some(user) = &asker.user {
            view.text("user", user);
        }
        if let Some(session) = &asker.session {
            view.text("session", session);
        }
        if replaces.is_some() {
            view.text("note", "a person changed the arguments");
        }
        match arguments.parse() {
            Ok(arguments) => view.value("arguments", "  ", &Value::Object(arguments)),
            Err(_) => view.text("arguments", arguments.as_str()),
        }
        if !passed.is_null() {
            view.value("passed", "passed.", passed);
        }
        match hidden.as_deref() {
            None => {}
            Some("") => view.text("hidden", "secrets, which are all letters and digits"),
            Some(signs) => {
                view.text("hidden", "secrets; besides letters and digits they hold these signs:");
                view.line("", text::spelled_line(signs), ViewKind::Text);
            }
        }
        for (label, resources) in [("reads", &footprint.reads), ("writes", &footprint.writes)] {
            resources.iter().for_each(|resource| view.text(label, &resource_name(resource)));
        }
        view.text("isolation", isolation_name(*isolation));
        // Without a jail only the folder is known, which says something where a program runs.
        let is_open = footprint.reads.iter().chain(&footprint.writes).any(|one| *one == Resource::Anything);
        if *isolation != IsolationLevel::None || is_open && !reach.is_null() {
            view.value("reach", "reach.", reach);
        }
        if let Some(limits) = limits {
            view.value("limits", "limits.", &serde_json::to_value(limits).unwrap_or(Value::Null));
        }
        if let Some(sandbox) = sandbox {
            view.value("sandbox", "sandbox.", &serde_json::to_value(sandbox).unwrap_or(Value::Null));
        }
        view.text("call", fingerprint);
        if let Some(preview) = preview {
            view.change(preview);
        }
        view
    }
}

impl ApprovalView {
    fn line(&mut self, label: &str, text: String, kind: ViewKind) {
        self.lines.push(ViewLine { label: label.to_owned(), text, kind });
    }

    /// A text of any number of lines.
    fn text(&mut self, label: &str, text: &str) {
        if text.is_empty() {
            return self.line(label, "\"\"".to_owned(), ViewKind::Value);
        }
        let mut label = label;
        for line in text::spelled(text).split('\n') {
            self.line(label, line.to_owned(), ViewKind::Text);
            label = "";
        }
    }

    /// A value, one line for each text in it. `label` is what it is called where it is shown as one; its members have
    /// `prefix` before their names.
    fn value(&mut self, label: &str, prefix: &str, value: &Value) {
        match value {
            Value::String(text) => self.text(label, text),
            Value::Object(members) if !members.is_empty() => {
                for (name, member) in members {
                    let label = format!("{prefix}{}", member_name(name));
                    self.value(&label, &format!("{label}."), member);
                }
            }
            Value::Array(items) if items.iter().any(holds_text) => {
                for (place, item) in items.iter().enumerate() {
                    let label = format!("{label}[{place}]");
                    self.value(&label, &format!("{label}."), item);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                self.line(label, text::spelled_line(&value.to_string()), ViewKind::Value);
            }
        }
    }

    /// What would change, such as a diff: its first column says what becomes of a line.
    fn change(&mut self, change: &str) {
        let mut label = "change";
        for line in change.split('\n') {
            let kind = match line.as_bytes().first() {
                Some(b'+') => ViewKind::Added,
                Some(b'-') => ViewKind::Removed,
                Some(b'@') => ViewKind::Place,
                _ => ViewKind::Context,
            };
            // The column is no text: blanks after it are how the line is indented.
            let column = line.split_at_checked(1).filter(|(column, _)| ["+", "-", " "].contains(column));
            let (column, rest) = column.unwrap_or(("", line));
            self.line(label, format!("{column}{}", text::spelled_line(rest)), kind);
            label = "";
        }
    }

    /// How many characters it has when it is written out.
    pub fn chars(&self) -> usize {
        self.to_string().chars().count()
    }
}

/// As text: a line for each line, its label before it.
impl fmt::Display for ApprovalView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(f, "{:<LABEL$} {} {}", line.label, line.sign(), line.text)?;
        }
        Ok(())
    }
}

/// How wide labels are, where they are not wider.
pub(crate) const LABEL: usize = 12;

/// Whether there is a text in it, which would be hard to read as JSON.
fn holds_text(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Array(items) => items.iter().any(holds_text),
        Value::Object(members) => !members.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A name as it is, or in quotation marks where it could be read as something else.
fn member_name(name: &str) -> String {
    let is_plain =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if is_plain { name.to_owned() } else { text::spelled_line(&Value::from(name).to_string()) }
}

fn resource_name(resource: &Resource) -> String {
    match resource {
        Resource::Anything => "anything".to_owned(),
        Resource::Path(path) => format!("path {path}"),
        Resource::Host(host) => format!("host {host}"),
        Resource::Named(name) => format!("named {name}"),
    }
}

fn risk_name(risk: Risk) -> &'static str {
    match risk {
        Risk::Low => "low",
        Risk::Medium => "medium",
        Risk::High => "high",
    }
}

fn isolation_name(level: IsolationLevel) -> &'static str {
    match level {
        IsolationLevel::None => "none: in haft's own process",
        IsolationLevel::Standard => "standard",
        IsolationLevel::Strict => "strict",
        IsolationLevel::Restricted => "restricted",
    }
}
