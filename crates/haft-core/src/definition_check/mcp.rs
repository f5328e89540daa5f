//! The rules for the MCP server behind a tool.

use super::{Found, http, names::is_snake_case, names::shown_name};
use crate::{HttpSource, IsolationLevel, Source, ToolDefinition};

/// A longer name leaves no room for those of its tools.
const SERVER_CHARACTERS: usize = 32;

pub(super) fn check(definition: &ToolDefinition, found: &mut Found) {
    let Some(mcp) = &definition.mcp else { return };
    if definition.source != Source::Mcp {
        let problem = "only a tool of an MCP server has one";
        found.add("mcp", problem, "set source to `mcp`, or remove it");
    }
    if !is_snake_case(&mcp.server) || mcp.server.len() > SERVER_CHARACTERS || mcp.server.contains("__") {
        let problem = format!("`{}` is not a name for a server", shown_name(&mcp.server));
        found.add("mcp.server", problem, "use at most 32 of a-z, 0-9 and single _, and begin with a letter");
    }
    if mcp.tool.is_empty() {
        found.add("mcp.tool", "it is empty", "say what the tool is called at the server");
    }
    match (&mcp.program, &mcp.url) {
        (None, None) => found.add("mcp", "it says no way to the server", "add `program` or `url`"),
        (Some(_), Some(_)) => {
            found.add("mcp", "it has both a program and an address", "remove `program` or `url`");
        }
        (Some(program), None) => {
            if program.trim().is_empty() {
                found.add("mcp.program", "it is empty", "name a program, such as `npx`");
            }
            if definition.constraints.required_isolation == IsolationLevel::None {
                let problem = "None is for code that is linked into the program";
                found.add("constraints.requiredIsolation", problem, "use Standard, Strict or Restricted");
            }
            if !mcp.headers.is_empty() {
                found.add("mcp.headers", "a program gets no headers", "remove them, or use `url`");
            }
        }
        (None, Some(url)) => {
            let as_http =
                HttpSource { url: url.clone(), headers: mcp.headers.clone(), ..HttpSource::default() };
            let mut of_address = Found::default();
            http::reached(&as_http, &mut of_address);
            if url.contains(['{', '}']) {
                let fix = "write it like `https://mcp.example.com/mcp`";
                of_address.add("http.url", "it has braces, which stand for nothing here", fix);
            }
            for mut problem in of_address.0 {
                problem.place = problem.place.replacen("http", "mcp", 1);
                found.0.push(problem);
            }
        }
    }
    let texts = [("program", mcp.program.as_slice()), ("args", &mcp.args), ("files", &mcp.files)];
    for (name, texts) in texts {
        if texts.iter().any(|text| text.contains('\0')) {
            found.add(format!("mcp.{name}"), "it has a NUL character", "remove it");
        }
    }
    for (index, name) in mcp.env.iter().enumerate() {
        if name.is_empty() || name.contains(['=', '\0']) {
            let problem = format!("`{}` is not the name of a variable", shown_name(name));
            found.add(format!("mcp.env[{index}]"), problem, "use the name alone, such as `CI`");
        }
    }
    if !definition.has_side_effects() && !mcp.hosts.is_empty() {
        let problem = "a tool without side effects has no way outward";
        found.add("mcp.hosts", problem, "set constraints.allowSideEffects to true, or remove it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::McpSource;

    fn places(change: impl FnOnce(&mut ToolDefinition, &mut McpSource)) -> Vec<String> {
        let mut definition = ToolDefinition::new("clock__now", "Says what time it is");
        definition.source = Source::Mcp;
        let mut mcp = McpSource { program: Some("clock".into()), ..McpSource::new("clock", "now") };
        change(&mut definition, &mut mcp);
        definition.mcp = Some(Box::new(mcp));
        definition.check().into_iter().map(|problem| problem.place).collect()
    }

    fn over_http(mcp: &mut McpSource, url: &str) {
        mcp.program = None;
        mcp.url = Some(url.to_owned());
    }

    #[test]
    fn each_rule_has_its_place() {
        let none: [&str; 0] = [];
        assert_eq!(places(|_, _| {}), none);
        assert_eq!(places(|_, mcp| over_http(mcp, "https://mcp.example.com/mcp")), none);
        assert_eq!(places(|definition, _| definition.source = Source::Http), ["mcp"]);
        for server in ["", "Clock", "a__b", "1a", &"a".repeat(33)] {
            assert_eq!(places(|_, mcp| mcp.server = server.to_owned()), ["mcp.server"], "{server}");
        }
        assert_eq!(places(|_, mcp| mcp.tool.clear()), ["mcp.tool"]);
        assert_eq!(places(|_, mcp| mcp.program = None), ["mcp"]);
        assert_eq!(places(|_, mcp| mcp.url = Some("https://h".into())), ["mcp"]);
        assert_eq!(places(|_, mcp| mcp.program = Some(" ".into())), ["mcp.program"]);
        assert_eq!(places(|_, mcp| mcp.args = vec!["\0".into()]), ["mcp.args"]);
        assert_eq!(places(|_, mcp| mcp.env = vec!["A=1".into()]), ["mcp.env[0]"]);
        assert_eq!(places(|_, mcp| drop(mcp.headers.insert("A".into(), "b".into()))), ["mcp.headers"]);
        for url in ["mcp.example.com", "https://me@h/", "https://{host}/", "https://h/{a}", "https://h/#a"] {
            let found = places(|_, mcp| over_http(mcp, url));
            assert!(!found.is_empty() && found.iter().all(|place| place == "mcp.url"), "{url}: {found:?}");
        }
        let own = places(|_, mcp| {
            over_http(mcp, "https://h/");
            mcp.headers.insert("Host".into(), "b".into());
        });
        assert_eq!(own, ["mcp.headers.Host"]);
        let none_of_it = IsolationLevel::None;
        assert_eq!(
            places(|definition, _| definition.constraints.required_isolation = none_of_it),
            ["constraints.requiredIsolation"]
        );
        let outward = places(|definition, mcp| {
            definition.constraints.allow_side_effects = false;
            mcp.hosts = vec!["h".into()];
        });
        assert_eq!(outward, ["mcp.hosts"]);
    }
}
