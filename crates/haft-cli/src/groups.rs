//! `haft --help`: the commands in groups, by what a person wants to do.

use super::{args::Cli, layout};
use clap::{Command, CommandFactory as _};
use std::io;

/// Every command, once.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run", &["call", "batch", "flow", "exec", "undo"]),
    ("Tools", &["tools"]),
    ("Decide", &["approvals", "grants", "policy", "diff", "apply", "discard"]),
    ("History", &["runs", "audit", "recover", "backup", "gc"]),
    ("Serve", &["mcp", "hook", "serve", "worker", "keys"]),
    ("Set up", &["install", "uninstall", "hosts", "init", "trust", "doctor", "license", "completions"]),
];
/// The widest page, as for the other pages of the help.
const WIDEST: usize = 110;
/// The width where nothing says one.
const USUAL: usize = 100;

/// The command line, with its commands in groups.
pub(super) fn command() -> Command {
    grouped(Cli::command(), width())
}

/// The width of the help, as the parser chooses it for the other pages.
fn width() -> usize {
    let terminal = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    let said = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    terminal.or_else(said).filter(|width| *width > 0).unwrap_or(USUAL).min(WIDEST)
}

fn grouped(command: Command, width: usize) -> Command {
    let styles = command.get_styles().clone();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let names = GROUPS.iter().flat_map(|(_, names)| *names);
    let indent = 4 + names.map(|name| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (title, names) in GROUPS {
        text.push_str(&format!("{header}{title}:{header:#}\n"));
        for name in *names {
            // Some commands are not there on every system.
            let Some(found) = command.find_subcommand(name) else { continue };
            let about = found.get_about().map(ToString::to_string).unwrap_or_default();
            let about = layout::indented(&about, indent, Some(width));
            let gap = " ".repeat(indent - 2 - name.len());
            text.push_str(&format!("  {literal}{name}{literal:#}{gap}{}", about.trim_start()));
        }
        text.push('\n');
    }
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}{{all-args}}{{after-help}}");
    // The list of the parser itself has no groups; it leaves out what is hidden.
    command
        .mut_subcommands(|subcommand| subcommand.hide(true))
        .override_usage("haft [OPTIONS] <COMMAND>")
        .help_template(template)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_is_described_in_one_line() {
        fn check(command: &Command, path: &str) {
            for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
                let path = format!("{path} {}", subcommand.get_name());
                let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
                assert!((8..70).contains(&about.len()), "{path}: {about}");
                assert!(about.starts_with(char::is_uppercase), "{path}: {about}");
                assert!(subcommand.get_long_about().is_none(), "{path}: more than one line");
                check(subcommand, &path);
            }
        }
        let command = Cli::command();
        check(&command, "haft");
        for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
            let groups = GROUPS.iter().filter(|(_, names)| names.contains(&subcommand.get_name())).count();
            assert_eq!(groups, 1, "{}", subcommand.get_name());
        }
    }

    #[test]
    fn the_page_fits_the_width() {
        let page = grouped(Cli::command(), 60).term_width(60).render_help().to_string();
        let commands = page.split("Options:").next().unwrap_or_default();
        assert!(commands.contains("\nServe:\n  mcp "), "{page}");
        assert!(commands.lines().all(|line| line.chars().count() <= 60), "{commands}");
        let names = Cli::command();
        for name in names.get_subcommands().map(Command::get_name) {
            assert!(commands.contains(&format!("\n  {name} ")), "{name} is not in {commands}");
        }
    }
}
