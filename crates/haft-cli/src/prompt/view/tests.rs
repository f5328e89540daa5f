use super::*;
use haft::{ApprovalId, ExecutionId, Footprint, GrantOffer, Resource};
use std::time::Duration;

fn request() -> ApprovalRequest {
    ApprovalRequest {
        id: ApprovalId::from_text("apr_1"),
        execution_id: ExecutionId::from_uuid(Default::default()),
        call_id: "c1".into(),
        tool: "edit_file".into(),
        summary: "Replace one place in src/a_rather_long_name_of_a_module.rs, and then say in many words that it was done"
            .into(),
        risk: Risk::Medium,
        reason: "it has side effects, and policy asks about those".into(),
        arguments: serde_json::json!({"path": "src/main.rs", "old": "a\nb", "n": 3}).into(),
        preview: Some("--- a/src/main.rs\n+++ b/src/main.rs\n@@ -1,2 +1,2 @@\n fn main() {\n-    old();\n+\tnew();\n".into()),
        fingerprint: "00".into(),
        detail: haft_core::ApprovalDetail {
            does: "Replace one place in src/main.rs, and then say in many words that it was done".into(),
            isolation: haft::IsolationLevel::None,
            ..Default::default()
        },
        asker: haft::Asker {
            tenant: "local".into(),
            agent: "helper".into(),
            user: Some("ada".into()),
            session: Some("s1".into()),
        },
        batch_id: None,
        footprint: Footprint { reads: vec![], writes: vec![Resource::path("/work/src/main.rs")] },
        offers: ["only this very call", "every call that touches only what is in `/work/src`"]
            .map(|words| GrantOffer { covers: serde_json::Value::Null, words: format!("`edit_file`, {words}") })
            .into(),
        replaces: None,
        expires_at: None,
    }
}

fn view(request: &ApprovalRequest) -> View<'_> {
    View { request, number: (1, 3), asked: 12, spared: vec![1, 9] }
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn screens() -> [Screen; 8] {
    let keep = Keep::For(Duration::from_secs(7200));
    [
        Screen::Ask,
        Screen::Help,
        Screen::Reason("not now".into()),
        Screen::HowLong("2h".into()),
        Screen::Which(Keep::Always),
        Screen::Confirm(Memory { offer: 1, keep }),
        Screen::Confirm(Memory { offer: 0, keep: Keep::Session }),
        Screen::Rest,
    ]
}

/// Everything that can be on the screen, at one width.
fn all(request: &ApprovalRequest, width: usize) -> String {
    let size = Size { width, height: 24 };
    let view = view(request);
    let mut out = plain(&view.approval(size));
    for screen in screens() {
        out.push_str(&format!("----\n{}\n", plain(&view.screen(&screen, size)).trim_end()));
    }
    out
}

#[test]
fn at_eighty_columns() {
    insta::assert_snapshot!(all(&request(), 80));
}

#[test]
fn at_forty_columns() {
    insta::assert_snapshot!(all(&request(), 40));
}

#[test]
fn no_line_is_wider_than_the_terminal_where_words_allow() {
    for width in [30, 40, 60, 80, 120] {
        for line in all(&request(), width).lines() {
            let longest = line.split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
            let room = width.max(longest + 11);
            assert!(line.chars().count() <= room, "{width}: {line:?}");
        }
    }
}

#[test]
fn what_would_deceive_is_shown_by_name() {
    let hostile = "ls\u{202e}fr- mr\u{200b}\u{1b}[2J\r rm";
    let mut request = ApprovalRequest {
        summary: hostile.into(),
        reason: hostile.into(),
        preview: Some(format!("+{hostile}\n")),
        footprint: Footprint {
            reads: vec![Resource::Host(hostile.into())],
            writes: vec![Resource::path(hostile)],
        },
        offers: vec![GrantOffer { covers: serde_json::Value::Null, words: hostile.into() }],
        ..request()
    };
    request.asker.agent = hostile.into();
    for preview in [true, false] {
        if !preview {
            request.preview = None;
            request.arguments = serde_json::json!({hostile: hostile, "list": [hostile]}).into();
        }
        let text = all(&request, 80) + &plain(&view(&request).everything(Size { width: 80, height: 24 }));
        let bad = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{200b}');
        assert!(!text.contains(bad), "{text:?}");
        assert!(text.contains("⟨U+202E⟩"), "{text}");
    }
}

/// A summary comes spelled out from where it is made: spelled once more, nobody could read it.
#[test]
fn a_summary_is_spelled_once() {
    let spelled = haft_core::text::spelled_summary("Run ls \u{1b}[2J\n", 200);
    let mut request = ApprovalRequest { summary: spelled.clone(), ..request() };
    request.detail.does = "Run ls \u{1b}[2J\n".into();
    let text = all(&request, 80);
    assert!(text.contains(&format!("  {spelled}\n")) && text.contains("⟨ESC⟩[2J"), "{text}");
    assert!(!text.contains("⟨U+27E8⟩"), "{text}");
}

/// Whatever does not fit the screen is printed all the same, before the keys.
#[test]
fn a_long_change_is_shown_whole() {
    let lines: String = (0..500).map(|line| format!("+line {line}\n")).collect();
    let request = ApprovalRequest { preview: Some(lines), ..request() };
    let size = Size { width: 80, height: 24 };
    let (view, text) = (view(&request), plain(&view(&request).approval(size)));
    for line in 0..500 {
        assert!(text.contains(&format!("│ +line {line}\n")), "{line}: {text}");
    }
    assert!(view.can(size).more, "so it can be shown again");
    let short = ApprovalRequest { preview: None, ..request };
    assert!(!self::view(&short).can(Size { width: 80, height: 40 }).more);
}

/// What would have been out of sight stands there.
#[test]
fn nothing_of_a_call_is_out_of_sight() {
    let spaces = format!("ls{}; touch X", " ".repeat(200));
    let letters = format!("ls {}; touch X", "hello ".repeat(900));
    for command in ["ls \u{1b}]0;; touch X\u{7}", &spaces, &letters] {
        let arguments = serde_json::json!({"command": command, "env": {"A": "touch Y"}, "stdin": "touch Z"});
        let request = ApprovalRequest { arguments: arguments.into(), preview: None, ..request() };
        for width in [40, 80] {
            let shown = plain(&view(&request).approval(Size { width, height: 24 }));
            let joined: String = shown
                .lines()
                .map(|row| row.split_once(['│', '┆']).map_or("", |(_, text)| &text[1..]))
                .collect();
            for part in ["; touch X", "touch Y", "touch Z"] {
                assert!(joined.contains(part), "{part}: {shown}");
            }
        }
    }
}

#[test]
fn secrets_that_are_not_shown_cannot_be_edited() {
    let mut request = request();
    assert!(view(&request).can(Size { width: 80, height: 24 }).edit, "the control");
    request.detail.hidden = Some(String::new());
    let size = Size { width: 80, height: 24 };
    assert!(
        !view(&request).can(size).edit
            && !plain(&view(&request).screen(&Screen::Ask, size)).contains("e edit")
    );
}
