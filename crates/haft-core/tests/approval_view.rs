//! What a person agrees to: everything is there, and no two calls look the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A test may panic: that is how it fails.

use haft_core::{
    ApprovalDetail, ApprovalId, ApprovalRequest, Arguments, Asker, BatchId, ExecutionId, Footprint,
    GrantOffer, IsolationLevel, Limits, ParentGrant, Resource, Risk, ViewKind,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use spelling::{hostile, read_back};

mod spelling;

fn request(arguments: Value) -> ApprovalRequest {
    ApprovalRequest {
        id: ApprovalId::from_text("apr_1"),
        execution_id: ExecutionId::at(jiff::Timestamp::UNIX_EPOCH),
        call_id: "call_1".into(),
        tool: "run_command".into(),
        summary: "Run command: ls".into(),
        risk: Risk::High,
        reason: "this tool always asks".into(),
        arguments: Arguments::from(arguments),
        preview: None,
        fingerprint: "00".into(),
        detail: ApprovalDetail {
            does: "Run command: ls".into(),
            isolation: IsolationLevel::Strict,
            reach: json!({"hosts": ["example.com"], "writable": ["/work"]}),
            limits: None,
            sandbox: None,
            passed: Value::Null,
            hidden: None,
        },
        asker: Asker { tenant: "t".into(), agent: "helper".into(), user: Some("ada".into()), session: None },
        batch_id: None,
        footprint: Footprint::writes([Resource::path("/work")]),
        offers: Vec::new(),
        replaces: None,
        expires_at: None,
    }
}

fn sandbox() -> ParentGrant {
    ParentGrant { sandbox_id: "s".into(), ..ParentGrant::default() }
}

/// One step into a value.
#[derive(Debug, PartialEq)]
enum Step {
    Member(String),
    Item(usize),
}

/// Reads the label of an argument.
fn steps(label: &str) -> Vec<Step> {
    let (mut steps, mut rest) = (Vec::new(), label);
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(item) = rest.strip_prefix('[') {
            let (place, after) = item.split_once(']').unwrap();
            steps.push(Step::Item(place.parse().unwrap()));
            rest = after;
        } else if rest.starts_with('"') {
            // A name in quotation marks ends at the first one that no backslash stands before.
            let bytes = rest.as_bytes();
            let mut end = 1;
            while bytes[end] != b'"' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            let name = read_back(&rest[..=end], true);
            steps.push(Step::Member(serde_json::from_str(&name).unwrap()));
            rest = &rest[end + 1..];
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            steps.push(Step::Member(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    steps
}

fn put(at: &mut Value, steps: &[Step], value: Value) {
    match steps.split_first() {
        None => *at = value,
        Some((Step::Member(name), rest)) => {
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            put(at.as_object_mut().unwrap().entry(name.clone()).or_insert(Value::Null), rest, value);
        }
        Some((Step::Item(place), rest)) => {
            if at.is_null() {
                *at = Value::Array(Vec::new());
            }
            let items = at.as_array_mut().unwrap();
            if items.len() == *place {
                items.push(Value::Null);
            }
            put(&mut items[*place], rest, value);
        }
    }
}

/// The arguments, read back from what a person sees: lines of text, and nothing else.
fn arguments_read_back(shown: &str) -> Value {
    let mut entries: Vec<(String, char, Vec<String>)> = Vec::new();
    for line in shown.lines() {
        // The label may hold the signs only inside of quotation marks.
        let mut quoted = false;
        let mut before = ' ';
        let at = line
            .char_indices()
            .find(|(_, c)| {
                quoted ^= *c == '"' && before != '\\';
                before = if before == '\\' { ' ' } else { *c };
                !quoted && matches!(c, '│' | '=')
            })
            .unwrap()
            .0;
        let sign = line[at..].chars().next().unwrap();
        let (label, text) = (line[..at].trim_end(), line[at + sign.len_utf8()..].strip_prefix(' ').unwrap());
        match label.is_empty() {
            true => entries.last_mut().unwrap().2.push(text.to_owned()),
            false => entries.push((label.to_owned(), sign, vec![text.to_owned()])),
        }
    }
    let mut arguments = Value::Null;
    for (label, sign, texts) in entries {
        let Some(label) = label.strip_prefix("  ") else { continue };
        let value = match sign {
            '=' => serde_json::from_str(&read_back(&texts[0], true)).unwrap(),
            _ => Value::String(read_back(&texts.join("\n"), false)),
        };
        put(&mut arguments, &steps(label), value);
    }
    if arguments.is_null() { json!({}) } else { arguments }
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec!["command", "env", "stdin", "working_dir", "isolation", "a.b", "a[0]", "│", "=", "\""])
            .prop_map(str::to_owned),
        1 => hostile(),
        1 => any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        hostile().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!("")),
        Just(json!("[\"x\"]")),
        Just(json!("{}")),
        Just(json!("null\n  env          │ x")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn arguments() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(name(), value(), 0..5)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// What is seen can be read back to what was sent, so two different calls never look the same.
    #[test]
    fn arguments_can_be_read_back_from_what_is_seen(arguments in arguments()) {
        let shown = request(arguments.clone()).view().to_string();
        prop_assert_eq!(arguments_read_back(&shown), arguments, "{}", shown);
        prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{:?}", shown);
    }

    #[test]
    fn two_calls_never_look_the_same(a in arguments(), b in arguments()) {
        prop_assert_eq!(request(a.clone()).view() == request(b.clone()).view(), a == b);
    }

    /// No text of one place passes for another place.
    #[test]
    fn no_text_leaves_its_place(text in hostile()) {
        let plain = request(json!({"command": "ls"}));
        for changed in [
            ApprovalRequest { tool: text.as_str().into(), ..plain.clone() },
            ApprovalRequest { reason: text.clone(), ..plain.clone() },
            ApprovalRequest { arguments: json!({ text.as_str(): "ls" }).into(), ..plain.clone() },
            ApprovalRequest { preview: Some(text.clone()), ..plain.clone() },
        ] {
            let labels = |request: &ApprovalRequest| {
                let view = request.view();
                let labels = view.lines.iter().map(|line| line.label.clone());
                labels.filter(|label| !label.is_empty() && !label.starts_with("  ") && label != "change").collect::<Vec<_>>()
            };
            prop_assert_eq!(labels(&changed), labels(&plain));
            prop_assert!(!changed.view().to_string().chars().any(|c| c.is_control() && c != '\n'));
        }
    }
}

/// The signs of hidden secrets are one line, whatever they are.
#[test]
fn hidden_signs_are_one_line() {
    let mut request = request(json!({}));
    request.detail.hidden = Some("$\n(\u{1b}".into());
    let shown = request.view().to_string();
    assert!(shown.contains("│ $⏎(⟨ESC⟩\n"), "{shown}");
}

/// Whatever of a question is changed, the view changes, unless it is a mere name of it.
#[test]
fn everything_that_a_yes_covers_is_seen() {
    let plain = request(json!({"command": "ls"}));
    // Without `..`: a new field does not compile until it is here.
    let ApprovalRequest {
        id: _,
        execution_id: _,
        call_id: _,
        tool: _,
        summary: _,
        risk: _,
        reason: _,
        arguments: _,
        preview: _,
        fingerprint: _,
        detail:
            ApprovalDetail { does: _, isolation: _, reach: _, limits: _, sandbox: _, passed: _, hidden: _ },
        asker: Asker { tenant: _, agent: _, user: _, session: _ },
        batch_id: _,
        footprint: Footprint { reads: _, writes: _ },
        offers: _,
        replaces: _,
        expires_at: _,
    } = plain.clone();
    type Change = fn(&mut ApprovalRequest);
    let seen: [(&str, Change); 18] = [
        ("tool", |request| request.tool = "other".into()),
        ("risk", |request| request.risk = Risk::Low),
        ("reason", |request| request.reason = "other".into()),
        ("arguments", |request| {
            request.arguments = json!({"command": "ls", "env": {"PATH": "./bin"}}).into()
        }),
        ("preview", |request| request.preview = Some("+x".into())),
        ("fingerprint", |request| request.fingerprint = "11".into()),
        ("does", |request| request.detail.does = "other".into()),
        ("isolation", |request| request.detail.isolation = IsolationLevel::None),
        ("reach", |request| request.detail.reach = json!({"hosts": ["*"]})),
        ("limits", |request| {
            request.detail.limits = Some(Limits { processes: Some(1), ..Limits::default() })
        }),
        ("sandbox", |request| request.detail.sandbox = Some(sandbox())),
        ("passed", |request| request.detail.passed = json!({"metadata": {"a": 1}})),
        ("hidden", |request| request.detail.hidden = Some("$()".into())),
        ("agent", |request| request.asker.agent = "other".into()),
        ("user", |request| request.asker.user = None),
        ("session", |request| request.asker.session = Some("s".into())),
        ("footprint", |request| request.footprint.reads = vec![Resource::Host("example.com".into())]),
        ("replaces", |request| request.replaces = Some(ApprovalId::from_text("apr_0"))),
    ];
    for (what, change) in seen {
        let mut changed = plain.clone();
        change(&mut changed);
        assert_ne!(changed.view(), plain.view(), "{what} is not seen");
    }
    let unseen: [Change; 6] = [
        |request| request.id = ApprovalId::from_text("apr_2"),
        |request| request.execution_id = ExecutionId::at(jiff::Timestamp::UNIX_EPOCH),
        |request| request.call_id = "call_2".into(),
        |request| request.batch_id = Some(BatchId::at(jiff::Timestamp::UNIX_EPOCH)),
        |request| request.offers = vec![GrantOffer { covers: Value::Null, words: String::new() }],
        |request| request.expires_at = Some("2026-03-02T12:00:00Z".parse().unwrap()),
    ];
    for change in unseen {
        let mut changed = plain.clone();
        change(&mut changed);
        assert_eq!(changed.view(), plain.view());
    }
}

#[test]
fn as_it_is_read() {
    let arguments = json!({
        "command": "git status \x1b]0;touch X;\x07",
        "env": {"PATH": "./bin", "A B": "x"},
        "stdin": "one\n\ttwo \n",
        "timeout": 5,
        "codes": [0, 1],
        "empty": "",
    });
    let mut request = request(arguments);
    request.preview = Some("--- a\n+++ b\n@@ -1 +1 @@\n-old\n+            new\u{202e}\n same".into());
    insta::assert_snapshot!(request.view());
    let kinds: Vec<ViewKind> =
        request.view().lines.iter().rev().take(4).rev().map(|line| line.kind).collect();
    assert_eq!(kinds, [ViewKind::Place, ViewKind::Removed, ViewKind::Added, ViewKind::Context]);
}
