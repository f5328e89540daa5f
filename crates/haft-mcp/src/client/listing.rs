//! What a server says it has, as definitions. Pure.
//!
//! A server is not believed: what it says of its tools is shown to models and people as its words, and loosens nothing.
//! Every tool of a server may change things, is of high risk, is neither idempotent nor cacheable, and has no other
//! name than the one with the server's name before it.

use haft_core::{Category, IsolationLevel, McpSource, Risk, Source, ToolDefinition, text};
use rmcp::model::Tool;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::{collections::BTreeMap, fmt::Write as _};

/// The longest name of a tool.
const LONGEST: usize = 64;
/// What a fingerprint takes: an underscore and eight digits.
const FINGERPRINT: usize = 9;

/// The tools of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// What each tool would be here, by its name there.
    pub tools: BTreeMap<String, ToolDefinition>,
    /// What cannot be a tool here, and why.
    pub unusable: Vec<String>,
}

impl Listing {
    /// What the tools of a server are here.
    pub fn of(server: &McpSource, tools: &[Tool]) -> Self {
        let mut listing = Listing::default();
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for tool in tools {
            let shown = text::one_line(&tool.name, 80);
            let definition = match defined(server, tool) {
                Ok(definition) => definition,
                Err(why) => {
                    listing.unusable.push(format!("`{shown}`: {why}"));
                    continue;
                }
            };
            if let Some(other) = names.get(&definition.name) {
                let other = text::one_line(other, 80);
                listing.unusable.push(format!("`{shown}`: `{other}` has the same name here"));
                continue;
            }
            names.insert(definition.name.clone(), tool.name.to_string());
            listing.tools.insert(tool.name.to_string(), definition);
        }
        listing
    }
}

/// What a tool of a server is called here: the server's name, two underscores, and its own name as haft has names.
///
/// ```
/// assert_eq!(haft_mcp::client::tool_name("clock", "get_time"), "clock__get_time");
/// assert_eq!(haft_mcp::client::tool_name("clock", &"x".repeat(100)).len(), 64);
/// ```
pub fn tool_name(server: &str, own: &str) -> String {
    let name = format!("{server}__{own}");
    if name.len() <= LONGEST {
        return name;
    }
    let mut short: String = name.chars().take(LONGEST - FINGERPRINT).collect();
    short.push('_');
    for byte in &Sha256::digest(name.as_bytes())[..4] {
        // Writing to a string cannot fail.
        let _ = write!(short, "{byte:02x}");
    }
    short
}

fn defined(server: &McpSource, tool: &Tool) -> Result<ToolDefinition, String> {
    let mut said = serde_json::to_value(tool).map_err(|error| error.to_string())?;
    if let Value::Object(said) = &mut said {
        // Nothing of that is shown to anybody here.
        for unread in ["icons", "_meta", "execution"] {
            said.remove(unread);
        }
    }
    let import = haft_dialect::import(&json!([said])).map_err(|error| {
        let problems = error.problems.iter().map(|problem| text::one_line(&problem.to_string(), 300));
        problems.collect::<Vec<_>>().join("; ")
    })?;
    let mut definition = import.definitions.into_iter().next().ok_or("it is not a tool")?;
    definition.name = tool_name(&server.server, &definition.name);
    definition.aliases.clear();
    definition.metadata.remove("originalName");
    definition.source = Source::Mcp;
    definition.category = Category::ExternalApi;
    definition.risk = Some(Risk::High);
    definition.required_permissions = vec![format!("tool.mcp.{}", server.server)];
    definition.constraints.allow_side_effects = true;
    if server.url.is_some() {
        // No code of somebody else's runs here: only requests leave.
        definition.constraints.required_isolation = IsolationLevel::None;
    }
    definition.mcp = Some(Box::new(McpSource { tool: tool.name.to_string(), ..server.clone() }));
    match definition.check().first() {
        Some(problem) => Err(text::one_line(&problem.to_string(), 300)),
        None => Ok(definition),
    }
}

/// An accepted tool beside what the server says of it now.
#[derive(Clone, Debug, PartialEq)]
pub enum Compared {
    /// It is what was accepted.
    Same,
    /// It is another one: this is what would have to be accepted. What a person set here stays.
    Changed(Box<ToolDefinition>),
    /// The server does not have it any more.
    Gone,
}

/// Compares what was accepted with what the server says now.
///
/// Only what a server says is compared. What haft or a person decided about the tool (risk, permissions, limits) stays
/// as it is.
pub fn compare(accepted: &ToolDefinition, now: &Listing) -> Compared {
    let Some(said) = accepted.mcp.as_ref().and_then(|mcp| now.tools.get(&mcp.tool)) else {
        return Compared::Gone;
    };
    let mut proposed = accepted.clone();
    proposed.title.clone_from(&said.title);
    proposed.description.clone_from(&said.description);
    proposed.parameters.clone_from(&said.parameters);
    proposed.output_schema.clone_from(&said.output_schema);
    proposed.annotations.clone_from(&said.annotations);
    match said.metadata.get("hints") {
        Some(hints) => drop(proposed.metadata.insert("hints".to_owned(), hints.clone())),
        None => drop(proposed.metadata.remove("hints")),
    }
    if proposed == *accepted { Compared::Same } else { Compared::Changed(Box::new(proposed)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> McpSource {
        McpSource { program: Some("clock".into()), ..McpSource::new("clock", "") }
    }

    fn listing(tools: Value) -> Listing {
        let tools: Vec<Tool> = serde_json::from_value(tools).unwrap();
        Listing::of(&server(), &tools)
    }

    fn tool(name: &str) -> Value {
        json!({"name": name, "description": "Tells the time", "inputSchema": {"type": "object"}})
    }

    #[test]
    fn nothing_that_a_server_says_loosens() {
        let mut harmless = tool("readTime");
        harmless["annotations"] =
            json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true});
        harmless["title"] = json!("Time");
        let listing = listing(json!([harmless]));
        let definition = &listing.tools["readTime"];
        assert_eq!(definition.name, "clock__read_time");
        assert!(definition.has_side_effects() && !definition.idempotent && !definition.cacheable);
        assert_eq!(definition.risk(), Risk::High);
        assert!(definition.aliases.is_empty(), "another name could stand on a list");
        assert_eq!(definition.mcp.as_ref().unwrap().tool, "readTime");
        assert_eq!(definition.metadata["hints"], json!({"readOnlyHint": true, "idempotentHint": true}));
        assert_eq!(definition.required_permissions, ["tool.mcp.clock"]);
    }

    #[test]
    fn what_cannot_be_a_tool_is_named() {
        let mut listed = listing(json!([tool("a-b"), tool("a_b"), tool(""), tool("ok")]));
        listed.unusable.sort();
        assert_eq!(listed.tools.keys().collect::<Vec<_>>(), ["a-b", "ok"]);
        assert_eq!(listed.unusable.len(), 2);
        assert_eq!(listed.unusable[1], "`a_b`: `a-b` has the same name here");
    }

    #[test]
    fn long_names_stay_apart() {
        let (a, b) = (
            tool_name("s", &format!("{}a", "x".repeat(70))),
            tool_name("s", &format!("{}b", "x".repeat(70))),
        );
        assert!(a != b && a.len() == 64 && b.len() == 64);
    }

    #[test]
    fn what_a_server_changed_is_proposed_and_what_a_person_set_stays() {
        let mut accepted = listing(json!([tool("now")])).tools["now"].clone();
        accepted.risk = Some(Risk::Low);
        accepted.requires_confirmation = true;
        assert_eq!(compare(&accepted, &listing(json!([tool("now"), tool("more")]))), Compared::Same);
        assert_eq!(compare(&accepted, &listing(json!([]))), Compared::Gone);
        let changes: [(&str, Value); 5] = [
            ("description", json!("Tells the time, and reads ~/.ssh first")),
            ("title", json!("T")),
            ("inputSchema", json!({"type": "object", "properties": {"key": {"type": "string"}}})),
            ("outputSchema", json!({"type": "object"})),
            ("annotations", json!({"readOnlyHint": true})),
        ];
        for (member, value) in changes {
            let mut changed = tool("now");
            changed[member] = value;
            let Compared::Changed(proposed) = compare(&accepted, &listing(json!([changed]))) else {
                panic!("{member} was not noticed");
            };
            assert_eq!((proposed.risk, proposed.requires_confirmation), (Some(Risk::Low), true), "{member}");
        }
    }
}
