//! Definitions come back from their files, in both forms, whatever is in them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_core::{
    Annotations, Category, Constraints, IsolationLevel, Parameter, ParameterType, Parameters, Risk, Source,
    Tier, ToolDefinition,
};
use haft_definition::{FILE_SCHEMA, Format, check, read, read_checked, write};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// The example of the definition's JSON form.
fn example() -> Value {
    json!({
        "name": "read_file",
        "description": "Read the contents of a file",
        "category": "FileSystem",
        "parameters": [
            {"name": "path", "description": "The file path to read", "type": "String", "required": true},
            {
                "name": "encoding", "description": "File encoding (default: utf-8)", "type": "String", "required": false,
                "default": "utf-8", "enum": ["utf-8", "ascii", "utf-16"]
            }
        ],
        "outputSchema": {
            "type": "object",
            "properties": {"content": {"type": "string"}, "size": {"type": "integer"}, "encoding": {"type": "string"}}
        },
        "constraints": {
            "maxExecutionTime": "PT30S", "maxOutputSize": 10_485_760, "allowSideEffects": false,
            "requiredIsolation": "Standard"
        },
        "requiredPermissions": ["tool.filesystem.read"],
        "requiresConfirmation": false,
        "version": "1.0.0",
        "metadata": {"riskLevel": "low", "category": "file_operations"}
    })
}

#[test]
fn the_example_comes_back_unchanged() {
    let definition = read_checked(&example().to_string(), Format::Json).unwrap();
    let json: Value = serde_json::from_str(&write(&definition, Format::Json)).unwrap();
    assert_eq!(json, example());
    let toml = write(&definition, Format::Toml);
    assert_eq!(read_checked(&toml, Format::Toml).unwrap(), definition, "{toml}");
    insta::assert_snapshot!("the_example_in_toml", toml);
}

#[test]
fn toml_as_people_write_it() {
    let text = r#"
        name = "list_directory"
        description = """
Lists a directory"""
        category = "FileSystem"
        required_permissions = ["tool.filesystem.read"]
        aliases = ["ListFiles", "ls"]
        constraints = { max_execution_time = "PT30S", allow_side_effects = false }
        annotations.open_world = false

        [[parameters]]
        name = "path"
        description = "Where"
        type = "String"
        required = true

        [[parameters]]
        name = "kinds"
        description = "What to list"
        type = "Array"
        schema.items = { type = "string", enum = ["file", "folder"] }

        [output_schema]
        type = "array"
        items.type = "string"
    "#;
    let definition = read_checked(text, Format::Toml).unwrap();
    assert_eq!(definition.constraints.max_execution_time, Duration::from_secs(30));
    assert_eq!(definition.annotations.open_world, Some(false));
    assert_eq!(definition.parameters.names(), ["path", "kinds"], "in the order of the file");
    assert_eq!(definition.output_schema, Some(json!({"type": "array", "items": {"type": "string"}})));

    let schema = "name = 'x'\ndescription = 'X'\n[parameters]\ntype = 'object'\nrequired = ['a_b']\n\
                  [parameters.properties.a_b]\ntype = 'integer'\nmaximum = 5\n";
    let definition = read_checked(schema, Format::Toml).unwrap();
    let expected = json!({"type": "object", "required": ["a_b"], "properties": {"a_b": {"type": "integer", "maximum": 5}}});
    assert_eq!(
        definition.parameters,
        Parameters::Schema(expected),
        "names inside of a schema stay as they are"
    );
}

// --- by chance ------------------------------------------------------------------------------------------------------

fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => ".{0,12}", 1 => select(vec!["", "'''", "\"\"\"", "a\nb", "\u{0}\u{1b}\r\n", "\\", "🦀", "$json"]).prop_map(Into::into)]
}

/// Numbers, texts and names in all the forms that a file could get wrong.
fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("JSON has no infinity", |float| Some(Value::Number(
            serde_json::Number::from_f64(float)?
        ))),
        text().prop_map(Value::from),
    ];
    scalar.prop_recursive(3, 20, 4, |inner| {
        let name = prop_oneof![text(), Just("$json".to_owned()), "[a-z-]{1,5}"];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name, inner), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    vec((text(), value()), 0..4).prop_map(|members| members.into_iter().collect())
}

fn parameter() -> impl Strategy<Value = Parameter> {
    use ParameterType::{Array, Boolean, Integer, Number, Object, String};
    let kind = select(vec![String, Integer, Number, Boolean, Array, Object]);
    // A default of null is read as none.
    let default = option::of(value().prop_filter("null is none", |value| !value.is_null()));
    (text(), text(), kind, any::<bool>(), default, option::of(vec(value(), 0..3)), option::of(object()))
        .prop_map(|(name, description, kind, required, default, choices, schema)| {
            let schema = schema.map(Value::Object);
            Parameter { name, description, kind, required, default, choices, schema }
        })
}

fn parameters() -> impl Strategy<Value = Parameters> {
    prop_oneof![
        vec(parameter(), 0..3).prop_map(Parameters::List),
        object().prop_map(|schema| Parameters::Schema(Value::Object(schema))),
    ]
}

fn constraints() -> impl Strategy<Value = Constraints> {
    use IsolationLevel::{None, Restricted, Standard, Strict};
    let time = || (0..10_000_000u64).prop_map(Duration::from_millis);
    (
        option::of(time()),
        time(),
        any::<u64>(),
        option::of(any::<u64>()),
        any::<bool>(),
        select(vec![None, Standard, Strict, Restricted]),
    )
        .prop_map(
            |(
                default_timeout,
                max_execution_time,
                max_output_size,
                max_argument_size,
                allow_side_effects,
                required_isolation,
            )| {
                Constraints {
                    default_timeout,
                    max_execution_time,
                    max_output_size,
                    max_argument_size,
                    allow_side_effects,
                    required_isolation,
                }
            },
        )
}

fn definition() -> impl Strategy<Value = ToolDefinition> {
    let texts =
        (text(), option::of(text()), text(), option::of(text()), vec(text(), 0..3), vec(text(), 0..3));
    let flags =
        (any::<bool>(), any::<bool>(), any::<bool>(), option::of(any::<bool>()), option::of(any::<bool>()));
    let words = (
        select(categories().to_vec()),
        option::of(select(vec![Risk::Low, Risk::Medium, Risk::High])),
        select(sources().to_vec()),
    );
    let output =
        option::of(prop_oneof![any::<bool>().prop_map(Value::from), object().prop_map(Value::Object)]);
    let schemas = (parameters(), output, object());
    (texts, flags, words, schemas, constraints()).prop_map(
        |(
            (name, title, description, version, aliases, required_permissions),
            flags,
            (category, risk, source),
            schemas,
            constraints,
        )| {
            let (requires_confirmation, idempotent, cacheable, destructive, open_world) = flags;
            let (parameters, output_schema, metadata) = schemas;
            let annotations = Annotations { destructive, open_world };
            let command = idempotent.then(|| Box::new(full_command()));
            let http = cacheable.then(|| Box::new(full_http()));
            ToolDefinition {
                name,
                title,
                description,
                category,
                parameters,
                output_schema,
                constraints,
                required_permissions,
                requires_confirmation,
                risk,
                idempotent,
                retry: requires_confirmation.then(|| Box::new(full_retry())),
                cacheable,
                tier: Tier::Teams,
                version,
                source,
                command,
                http,
                mcp: destructive.is_some().then(|| Box::new(full_mcp())),
                flow: requires_confirmation.then(|| Box::new(json!({"nodes": [{"tool": "a"}]}))),
                settings_schema: requires_confirmation
                    .then(|| json!({"properties": {"a": {"type": "string"}}})),
                aliases,
                annotations,
                metadata,
            }
        },
    )
}

/// Every field of how a tool is retried.
fn full_retry() -> haft_core::Retry {
    haft_core::Retry {
        max_retries: 4,
        base: Duration::from_millis(250),
        on: vec![haft_core::ErrorCode::ExecutionFailed],
    }
}

/// Every field of the HTTP service behind a tool.
fn full_http() -> haft_core::HttpSource {
    haft_core::HttpSource {
        url: "https://api.example.com/{id}".to_owned(),
        method: haft_core::HttpMethod::Patch,
        query: vec!["page".to_owned()],
        body: haft_core::HttpBody::Form,
        headers: [("X-Key".to_owned(), "env:KEY".to_owned())].into(),
    }
}

/// Every field of the MCP server behind a tool.
fn full_mcp() -> haft_core::McpSource {
    haft_core::McpSource {
        server: "clock".to_owned(),
        tool: "now".to_owned(),
        program: Some("/opt/clock server".to_owned()),
        args: vec!["-q".to_owned(), String::new()],
        env: vec!["CI".to_owned()],
        hosts: vec!["*.example.com".to_owned()],
        presets: vec![haft_core::port::Preset::Node],
        files: vec!["/opt/clock".to_owned()],
        limits: full_command().limits,
        url: Some("https://clock.example.com/mcp".to_owned()),
        headers: [("X-Key".to_owned(), "env:KEY".to_owned())].into(),
    }
}

/// Every field of the program behind a tool.
fn full_command() -> haft_core::CommandSource {
    haft_core::CommandSource {
        program: "./a b.py".to_owned(),
        args: vec!["-q".to_owned(), String::new()],
        input: haft_core::CommandInput::Flags,
        flags: [("a_b".to_owned(), "-a".to_owned())].into(),
        positional: vec!["path".to_owned()],
        output: haft_core::CommandOutput::Json,
        env: vec!["CI".to_owned()],
        hosts: vec!["*.example.com".to_owned()],
        presets: vec![haft_core::port::Preset::Python],
        files: vec!["lib".to_owned()],
        working_dir: Some("sub".to_owned()),
        limits: haft_core::Limits {
            memory_bytes: Some(1 << 20),
            cpu_millicores: Some(500),
            cpu_time: Some(Duration::from_millis(1500)),
            wall_time: Some(Duration::from_secs(30)),
            processes: Some(4),
            open_files: Some(64),
            file_bytes: Some(1 << 30),
            scratch_bytes: Some(0),
            output_bytes: Some(1000),
            read_bytes: Some(1 << 20),
            written_bytes: Some(0),
            io_operations: Some(1000),
            io_bytes_per_second: Some(1 << 20),
        },
        reads: Some(Vec::new()),
        writes: Some(vec!["path".to_owned(), "git-index:".to_owned()]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_definition_comes_back_from_its_json(definition in definition()) {
        let text = write(&definition, Format::Json);
        let back = read(&text, Format::Json).map_err(|errors| TestCaseError::fail(format!("{errors}\n{text}")))?;
        prop_assert_eq!(back, definition);
    }

    #[test]
    fn every_definition_comes_back_from_its_toml(definition in definition()) {
        let text = write(&definition, Format::Toml);
        let back = read(&text, Format::Toml).map_err(|errors| TestCaseError::fail(format!("{errors}\n{text}")))?;
        prop_assert_eq!(back, definition);
    }

    /// Anything may be in a file.
    #[test]
    fn nothing_panics(text in ".{0,60}") {
        for format in [Format::Json, Format::Toml] {
            if let Err(errors) = read_checked(&text, format) {
                prop_assert!(!errors.errors().is_empty() && !errors.to_string().is_empty());
            }
        }
    }

    /// Neither does a file with a few bytes lost or doubled, and every mistake is in it somewhere.
    #[test]
    fn mistakes_are_within_the_text(definition in definition(), cut in any::<prop::sample::Index>(), length in 0..9usize, twice in any::<bool>()) {
        for format in [Format::Json, Format::Toml] {
            let mut text: Vec<char> = write(&definition, format).chars().collect();
            let start = cut.index(text.len());
            let end = (start + length).min(text.len());
            let piece: Vec<char> = text.drain(start..end).collect();
            if twice {
                text.splice(start..start, piece.iter().chain(&piece).copied());
            }
            let text: String = text.into_iter().collect();
            if let Err(errors) = read_checked(&text, format) {
                for error in errors.errors() {
                    prop_assert!(error.position.line <= text.split('\n').count() + 1, "{}", error);
                }
            }
        }
    }

    /// What is read is what core reads.
    #[test]
    fn agrees_with_serde(definition in definition()) {
        let value = serde_json::to_value(&definition).unwrap();
        let by_serde: ToolDefinition = serde_json::from_value(value.clone()).unwrap();
        prop_assert_eq!(read(&value.to_string(), Format::Json).unwrap(), by_serde);
    }
}

// --- the schema of the file -----------------------------------------------------------------------------------------

fn categories() -> [Category; 8] {
    use Category::{
        CodeExecution, Communication, Database, ExternalApi, FileSystem, Knowledge, Network, System,
    };
    // A new one must be added to the list, and to the schema of the file.
    match System {
        FileSystem | Network | Database | CodeExecution | ExternalApi | Knowledge | Communication
        | System => {}
    }
    [FileSystem, Network, Database, CodeExecution, ExternalApi, Knowledge, Communication, System]
}

fn sources() -> [Source; 7] {
    use Source::{BuiltIn, Command, Declared, Flow, Http, Mcp, Wasm};
    match BuiltIn {
        BuiltIn | Command | Http | Wasm | Mcp | Flow | Declared => {}
    }
    [BuiltIn, Command, Http, Wasm, Mcp, Flow, Declared]
}

/// The schema for editors says what the code does.
#[test]
fn the_schema_of_the_file_names_every_field_and_choice() {
    let schema: Value = serde_json::from_str(FILE_SCHEMA).unwrap();
    assert!(haft_schema::Checker::new(&schema).is_ok());
    assert_eq!(schema["properties"]["category"]["enum"], json!(categories()));
    assert_eq!(schema["properties"]["source"]["enum"], json!(sources()));
    assert_eq!(schema["properties"]["risk"]["enum"], json!([Risk::Low, Risk::Medium, Risk::High, null]));
    assert_eq!(
        schema["properties"]["tier"]["enum"],
        json!([Tier::Core, Tier::WriterPro, Tier::Teams, Tier::Enterprise])
    );
    let levels =
        [IsolationLevel::None, IsolationLevel::Standard, IsolationLevel::Strict, IsolationLevel::Restricted];
    assert_eq!(schema["$defs"]["constraints"]["properties"]["requiredIsolation"]["enum"], json!(levels));

    let full: ToolDefinition = serde_json::from_value(json!({
        "name": "a", "title": "A", "description": "A", "category": "Network",
        "parameters": [{"name": "p", "description": "P", "type": "Array", "required": true, "default": 1, "enum": [1], "schema": {}}],
        "outputSchema": {}, "settingsSchema": {}, "requiredPermissions": ["x"], "requiresConfirmation": true, "risk": "high", "idempotent": true,
        "cacheable": true, "tier": "Teams", "version": "1.0.0", "source": "command", "aliases": ["b"], "metadata": {"a": 1},
        "command": full_command(), "http": full_http(), "mcp": full_mcp(), "flow": {"nodes": []},
        "annotations": {"destructive": true, "openWorld": true}, "retry": full_retry(),
        "constraints": {"defaultTimeout": "PT1S", "maxExecutionTime": "PT2S", "maxOutputSize": 1, "maxArgumentSize": 1,
            "allowSideEffects": false, "requiredIsolation": "None"},
    }))
    .unwrap();
    let written = serde_json::to_value(&full).unwrap();
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for (fields, described) in [
        (&written, &schema["properties"]),
        (&written["constraints"], &schema["$defs"]["constraints"]["properties"]),
        (&written["retry"], &schema["$defs"]["retry"]["properties"]),
        (&written["annotations"], &schema["$defs"]["annotations"]["properties"]),
        (&written["parameters"][0], &schema["$defs"]["parameter"]["properties"]),
        (&written["command"], &schema["$defs"]["command"]["properties"]),
        (&written["http"], &schema["$defs"]["http"]["properties"]),
        (&written["mcp"], &schema["$defs"]["mcp"]["properties"]),
        (&written["command"]["limits"], &schema["$defs"]["limits"]["properties"]),
    ] {
        assert_eq!(names(fields), names(described));
    }
}

#[test]
fn checking_takes_no_time() {
    let definition = read(&example().to_string(), Format::Json).unwrap();
    let started = Instant::now();
    (0..20).for_each(|_| assert!(check(&definition).is_empty()));
    assert!(
        started.elapsed() < Duration::from_millis(20 * 50),
        "{:?} without optimisation",
        started.elapsed() / 20
    );
}
