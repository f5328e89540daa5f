//! A schema is never completed from the network or the disk.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_schema::{ArgumentSchema, Checker, Documents, Options, Schema, check_defaults};
use serde_json::{Value, json};
use std::{fs, io::ErrorKind, net::TcpListener};

/// Every way in which a schema can name another document.
fn ways(address: &str) -> Vec<Value> {
    let (folder, file) = address.rsplit_once('/').unwrap();
    vec![
        json!({"$ref": address}),
        json!({"$ref": format!("{address}#/$defs/x")}),
        json!({"$dynamicRef": format!("{address}#meta")}),
        json!({"$schema": address}),
        json!({"$schema": address, "type": "object"}),
        json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": address}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": address}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "id": format!("{folder}/"), "$ref": file}),
        json!({"$id": format!("{folder}/"), "$ref": file}),
        json!({"$id": format!("{folder}/root.json"), "properties": {"a": {"$ref": file}}}),
        json!({"$id": format!("{folder}/root.json"), "$defs": {"unused": {"$ref": file}}}),
        json!({"properties": {"a": {"$id": format!("{folder}/"), "items": {"$ref": file}}}}),
        json!({"anyOf": [true, {"not": {"$ref": address}}]}),
        json!({"properties": {"a": {"default": 1, "allOf": [{"$ref": address}]}}}),
        json!({"$defs": {"x": {"$id": "x", "$schema": address}}, "$ref": "#/$defs/x"}),
        json!({"$vocabulary": {address: true}}),
        // A reference only in looks: it is data.
        json!({"enum": [{"$ref": address}]}),
        json!({"const": {"$ref": address}, "default": {"$ref": address}}),
    ]
}

/// Compiles in every way that there is; whether each says no is not what this is about.
fn compile(schema: &Value, options: &Options) -> bool {
    let _ = (
        Checker::new(schema),
        Schema::compile(schema),
        ArgumentSchema::compile(schema),
        check_defaults(schema),
    );
    let refused = Checker::with_options(schema, options).is_err();
    if let Ok(schema) = Schema::compile_with(schema, options) {
        let value = json!({"a": [1]});
        let _ = (schema.is_valid(&value), schema.explain(&value));
    }
    refused
}

#[test]
fn nobody_is_called() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    // A document that was given, and that refers to one that was not.
    let mut documents = Documents::new();
    let given = format!("http://127.0.0.1:{port}/given.json");
    documents.add(&given, json!({"$ref": "missing.json"})).unwrap();
    let options = Options { documents, ..Options::default() };
    for scheme in ["http", "https"] {
        for host in ["127.0.0.1", "localhost"] {
            for schema in ways(&format!("{scheme}://{host}:{port}/missing.json")) {
                compile(&schema, &options);
            }
        }
    }
    let error = Checker::with_options(&json!({"$ref": given}), &options).unwrap_err();
    assert_eq!(error.pointer, format!("{given}#/$ref"));
    assert!(error.message.contains("references to other documents are not fetched"), "{error}");
    match listener.accept() {
        Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        Ok((_, caller)) => panic!("{caller} called"),
    }
}

#[test]
fn no_file_is_read() {
    // A file that would make every schema say no, if it were read.
    let path = std::env::temp_dir().join(format!("haft-schema-offline-{}.json", std::process::id()));
    fs::write(&path, "{\"$defs\": {\"x\": false}, \"not\": {}}").unwrap();
    let address = format!("file://{}", path.display());
    let outcomes: Vec<(bool, Value)> =
        ways(&address).into_iter().map(|schema| (compile(&schema, &Options::default()), schema)).collect();
    fs::remove_file(&path).unwrap();
    let (refused, taken): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|(refused, _)| *refused);
    // References that nothing applies are not followed, and data is data.
    assert_eq!(refused.len(), 14, "{taken:#?}");
    for (_, schema) in taken {
        let schema = Schema::compile(&schema).unwrap();
        let source = schema.source();
        let value = source.get("const").or_else(|| source.pointer("/enum/0")).cloned();
        assert!(schema.is_valid(&value.unwrap_or(json!({}))), "{:?}", schema.source());
    }
    for form in [
        "/etc/passwd",
        "file:///etc/passwd",
        "../x.json",
        "x.json",
        "//host/x.json",
        "\\\\host\\x",
        "C:\\x.json",
    ] {
        let error = Checker::new(&json!({"$ref": form})).unwrap_err();
        assert!(error.message.contains("into this schema"), "{form}: {error}");
    }
}
