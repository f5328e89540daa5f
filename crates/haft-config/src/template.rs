//! The commented `haft.toml` that `haft init` writes.

use std::fmt::Write as _;

use super::keys::{keys, sections};
use super::rule::Kind;

/// A `haft.toml` with every key, its meaning and its default, all commented out: it changes nothing as it is.
///
/// Lines that begin with `##` explain; a line that begins with `# ` is a key that can be uncommented.
///
/// ```
/// let text = haft_config::template();
/// assert!(text.contains("# mode = \"enabled\"\n"));
/// assert_eq!(haft_config::parse(&text)?, haft_config::Config::default());
/// # Ok::<(), haft_config::ConfigError>(())
/// ```
#[must_use]
pub fn template() -> String {
    let mut out = String::from(
        "## haft.toml: every key with its default. Remove the `# ` before a line to change it.\n\
         ##\n\
         ## Your own file (~/.config/haft/haft.toml) may set anything. A file in a project's folder may\n\
         ## only tighten, until you have read it and run `haft trust`.\n\
         ##\n\
         ## Each key is also an environment variable: `mode` in [tools] is HAFT_TOOLS_MODE; lists are\n\
         ## comma-separated there.\n",
    );
    for section in sections() {
        // Writing to a string cannot fail.
        let _ = write!(out, "\n## {}\n[{}]\n", section.docs.concat().trim(), section.path);
        for key in keys().iter().filter(|key| key.section() == section.path) {
            let _ = writeln!(out, "\n## {}", key.doc());
            match key.rule().kind {
                Kind::Level(_) => {
                    let _ = writeln!(out, "## It can be {}.", key.rule().expected());
                }
                Kind::Tools => out.push_str(EXAMPLE),
                Kind::Rules => out.push_str(RULE_EXAMPLE),
                Kind::Agents => out.push_str(AGENT_EXAMPLE),
                Kind::Switch | Kind::Count { .. } | Kind::Text | Kind::Names | Kind::Folders => {}
            }
            let _ = writeln!(out, "# {} = {}", key.name(), key.default_value());
        }
    }
    out
}

const AGENT_EXAMPLE: &str = "\
    ## An agent looks like this (at the end of the file, in place of the line below):\n\
    ##   [[agents]]\n\
    ##   name = \"reader\"\n\
    ##   tools = [\"read_file\", \"glob\", \"search_files\"]\n\
    ##   permissions = [\"tool.filesystem.read\"]\n\
    ##   limits = { memory_bytes = 268_435_456, wall_time = \"30s\" }\n";

const RULE_EXAMPLE: &str = "\
    ## A rule looks like this (at the end of the file, in place of the line below):\n\
    ##   [[policy.rules]]\n\
    ##   name = \"no pushes\"\n\
    ##   effect = \"deny\"\n\
    ##   command = \"git push\"\n\
    ##   examples = { match = [\"git push -f\"], no_match = [\"git status\"] }\n";

const EXAMPLE: &str = "\
    ## A declared tool looks like this (at the end of the file, in place of the line below):\n\
    ##   [[tools.definitions]]\n\
    ##   name = \"ask_colleague\"\n\
    ##   description = \"Asks the person at the next desk\"\n\
    ##   parameters = { type = \"object\", properties = { question = { type = \"string\" } } }\n";
