//! What each dialect makes of a handful of definitions, in full: the tools, and what had to change.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use haft_dialect::{Dialect, Export, ExportOptions, export, export_with};

fn shown(export: &Export) -> String {
    let mut text = serde_json::to_string_pretty(&export.to_value()).unwrap();
    text.push_str("\n\nremarks:\n");
    for remark in &export.remarks {
        text.push_str(&format!("{remark}\n"));
    }
    text
}

#[test]
fn each_dialect() {
    for dialect in Dialect::ALL {
        insta::assert_snapshot!(dialect.name(), shown(&export(dialect, &common::handful())));
    }
}

#[test]
fn strict_mode() {
    let options = ExportOptions { strict: true };
    let export = export_with(Dialect::OpenAiChat, &options, &common::handful());
    insta::assert_snapshot!("openai-chat-strict", shown(&export));
}

#[test]
fn built_in_tools() {
    for dialect in Dialect::ALL {
        let export = export(dialect, &common::builtin());
        let remarks: Vec<String> = export.remarks.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(format!("built-in-remarks-{dialect}"), remarks.join("\n"));
    }
}
