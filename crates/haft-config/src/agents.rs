//! Reading `[[agents]]`: what named agents have.

use std::collections::HashSet;

use haft_core::AgentDefinition;
use serde_json::{Map, Value as Json};
use toml::de::{DeArray, DeValue};

use super::declared::json;
use super::keys::Key;
use super::problem::{EntryFault, Problem};
use super::read::{Offset, Reader};
use super::toml_text::described;
use super::value::Value;

impl Reader<'_> {
    pub(super) fn agents(&mut self, key: &'static Key, items: &DeArray<'_>, offset: Offset) {
        let mut agents: Vec<AgentDefinition> = Vec::new();
        let mut seen = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let start = Some(item.span().start);
            if !matches!(item.get_ref(), DeValue::Table(_)) {
                self.wrong_type(key, described(item.get_ref()).to_owned(), start);
                continue;
            }
            match agent(item.get_ref()) {
                Ok(agent) if seen.insert(agent.name.clone()) => agents.push(agent),
                Ok(agent) => self.bad_entry(key.path(), &agent.name, EntryFault::Repeated, start),
                Err(what) => {
                    let fix = "an agent has `name`, `tools`, and where wanted `permissions` and `limits`"
                        .to_owned();
                    let (key, place) = (format!("agents[{index}]"), self.place.clone());
                    self.problems.push((start, Problem::BadDefinition { key, what, fix, place }));
                }
            }
        }
        self.keep(key, Value::Agents(agents), offset);
    }
}

fn agent(table: &DeValue<'_>) -> Result<AgentDefinition, String> {
    let Some(Json::Object(mut fields)) = json(table) else { return Err("it has a date in it".to_owned()) };
    if let Some(Json::Object(limits)) = fields.get("limits") {
        let limits: Map<String, Json> =
            limits.iter().map(|(name, value)| (camel_case(name), value.clone())).collect();
        fields.insert("limits".to_owned(), Json::Object(limits));
    }
    let agent: AgentDefinition =
        serde_json::from_value(Json::Object(fields)).map_err(|error| error.to_string())?;
    haft_core::check_name("name", &agent.name).map_err(|error| error.to_string())?;
    agent.limits.check().map_err(|error| error.to_string())?;
    Ok(agent)
}

/// As the names of limits are on the wire: `memory_bytes` is `memoryBytes`.
fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut chars = part.chars();
        out.extend(chars.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(chars.as_str());
    }
    out
}
