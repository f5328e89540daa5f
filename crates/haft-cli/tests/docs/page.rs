//! One page: its fences, one after the other.

use crate::{
    compare::{free_parts, pairs},
    fence::{Fence, fences, root},
    session::{Done, Session},
};
use libtest_mimic::{Failed, Trial};
use std::{fs, path::PathBuf, sync::LazyLock};

pub fn trial(path: PathBuf) -> Trial {
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    Trial::test(name, move || run(&path).map_err(Failed::from))
}

fn run(path: &PathBuf) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut page = Page { session: Session::new(), ids: Vec::new() };
    for fence in fences(&text)? {
        if let Some(missing) = page.missing(&fence)? {
            haft_testkit::not_run(&format!("docs::{}", path.display()), &missing);
            return Ok(());
        }
        page.check(&fence).map_err(|problem| format!("{}:{}: {problem}", path.display(), fence.line))?;
    }
    Ok(())
}

struct Page {
    session: Session,
    /// The ids that the page shows, each with the one that there was.
    ids: Vec<(String, String)>,
}

impl Page {
    /// What an example needs and this machine does not have.
    fn missing(&mut self, fence: &Fence) -> Result<Option<String>, String> {
        match fence.word("needs") {
            None => Ok(None),
            Some("curl") => {
                let done = self.session.run("curl --version")?;
                Ok((done.code != 0).then(|| "curl is not installed".to_owned()))
            }
            Some("jail") => {
                let doctor = self.session.aside(&["doctor", "--json"]);
                let report: serde_json::Value = serde_json::from_str(&doctor.out).unwrap_or_default();
                Ok((!report["auto"]["standard"].is_string()).then(|| "there is no jail here".to_owned()))
            }
            Some(other) => Err(format!("needs={other} is neither curl nor jail")),
        }
    }

    fn check(&mut self, fence: &Fence) -> Result<(), String> {
        if fence.word("no-run").is_some() {
            return Ok(());
        }
        if let Some(test) = fence.word("run-by") {
            return is_a_test(test);
        }
        if let Some(name) = fence.word("file") {
            let place = self.session.place(name);
            fs::create_dir_all(place.parent().expect("a folder")).map_err(|error| error.to_string())?;
            fs::write(&place, self.with_real_ids(&fence.text)).map_err(|error| format!("{name}: {error}"))?;
        }
        match &*fence.kind {
            "sh" => self.commands(&fence.text, false),
            "console" => self.commands(&fence.text, true),
            "toml" => self.toml(fence),
            "json" => self.json(fence),
            "python" => self.python(fence),
            "rust" => is_compiled(&fence.text),
            _ => Ok(()),
        }
    }

    fn commands(&mut self, text: &str, with_output: bool) -> Result<(), String> {
        for step in steps(text, with_output)? {
            let command = self.with_real_ids(&step.command);
            let done = self.session.run(&command)?;
            let said = |problem: String| format!("$ {command}\n{problem}\nall of it:\n{}", done.out);
            if done.code != step.code {
                return Err(said(format!("exit {} instead of {}", done.code, step.code)));
            }
            if !step.shown.is_empty() {
                let shown: Vec<&str> = step.shown.iter().map(String::as_str).collect();
                let pairs = pairs(&shown, &done.out.lines().collect::<Vec<_>>()).map_err(said)?;
                for (shown, line) in pairs {
                    let parts = free_parts(shown).into_iter().zip(free_parts(line));
                    self.ids.extend(parts.map(|(shown, line)| (shown.to_owned(), line.to_owned())));
                }
            }
        }
        Ok(())
    }

    /// A command with the ids of this run in the place of those that the page shows; also where it shows their
    /// beginning.
    fn with_real_ids(&self, command: &str) -> String {
        let is_part = |sign: char| sign.is_alphanumeric() || "_-:+/=".contains(sign);
        let mut real = command.to_owned();
        for part in command.split(|sign| !is_part(sign)).filter(|part| part.len() >= 8) {
            let known = self.ids.iter().rev().find(|(shown, _)| shown.starts_with(part));
            if let Some((_, id)) = known {
                real = real.replace(part, id.get(..part.len()).unwrap_or(id));
            }
        }
        real
    }

    fn toml(&self, fence: &Fence) -> Result<(), String> {
        let name = fence.word("file").unwrap_or("haft.toml");
        let place = self.session.work().with_file_name(format!("{}-{}", fence.line, name.replace('/', "-")));
        fs::write(&place, &fence.text).map_err(|error| error.to_string())?;
        let place = place.to_string_lossy();
        let done = match name {
            _ if name.ends_with("haft.toml") => self.session.aside(&["--config", &place, "policy", "test"]),
            _ if name.ends_with(".flow.toml") => self.session.aside(&["flow", "check", &place]),
            _ => self.session.aside(&["tools", "check", &place]),
        };
        worked(&done)
    }

    fn json(&self, fence: &Fence) -> Result<(), String> {
        let whole = serde_json::from_str::<serde_json::Value>(&fence.text).map(|value| vec![value]);
        let each = || fence.text.lines().map(serde_json::from_str).collect();
        let values = whole.or_else(|_| each()).map_err(|error| error.to_string())?;
        let Some(schema) = fence.word("schema") else { return Ok(()) };
        let document =
            fs::read_to_string(root().join("docs/openapi.json")).map_err(|error| error.to_string())?;
        let mut document: serde_json::Value =
            serde_json::from_str(&document).map_err(|error| error.to_string())?;
        let schema = serde_json::json!({
            "$ref": format!("#/components/schemas/{schema}"), "components": document["components"].take(),
        });
        for value in values {
            let arguments = [("content", value.to_string()), ("schema", schema.to_string())];
            let arguments = arguments.map(|(name, text)| {
                let place = self.session.place(&format!("~/{name}.json"));
                fs::write(&place, text).expect("written");
                format!("{name}=@{}", place.display())
            });
            let done = self.session.aside(&["call", "validate_content", &arguments[0], &arguments[1]]);
            worked(&done)?;
            if done.out.trim() != "valid JSON" {
                return Err(done.out);
            }
        }
        Ok(())
    }

    fn python(&mut self, fence: &Fence) -> Result<(), String> {
        fs::write(self.session.place("~/example.py"), &fence.text).map_err(|error| error.to_string())?;
        worked(&self.session.run("python3 -c 'import ast; ast.parse(open(\"../example.py\").read())'")?)
    }
}

fn worked(done: &Done) -> Result<(), String> {
    match done.code {
        0 => Ok(()),
        code => Err(format!("exit {code}:\n{}", done.out)),
    }
}

/// A command, the lines that are shown below it, and the exit code that it says.
struct Step {
    command: String,
    shown: Vec<String>,
    code: i32,
}

fn steps(text: &str, with_output: bool) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let begins = if with_output { line.strip_prefix("$ ") } else { Some(line) };
        let Some(line) = begins else {
            let last = steps.last_mut().ok_or("the fence begins with output: a command begins with `$ `")?;
            last.shown.push(line.to_owned());
            continue;
        };
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut command = line.to_owned();
        let end = line.split_once("<<'").and_then(|(_, rest)| rest.split('\'').next());
        let goes_on = |command: &str| command.ends_with('\\') || command.ends_with('|');
        while end.is_some_and(|end| command.lines().last() != Some(end))
            || (end.is_none() && goes_on(&command))
        {
            let next = lines.next().ok_or_else(|| format!("the command has no end: {line}"))?;
            command.push('\n');
            command.push_str(next);
        }
        let code =
            line.split_once("# ").and_then(|(_, remark)| remark.rsplit_once("exit ")).map(|(_, code)| code);
        let code = code.and_then(|code| code.parse().ok()).unwrap_or(0);
        steps.push(Step { command, shown: Vec::new(), code });
    }
    for step in &mut steps {
        while step.shown.last().is_some_and(|line| line.is_empty()) {
            step.shown.pop();
        }
    }
    Ok(steps)
}

/// All files of Rust below these folders, as one text.
fn sources(folders: &[PathBuf]) -> String {
    let mut text = String::new();
    for entry in folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            text.push_str(&sources(&[path]));
        } else if path.extension().is_some_and(|end| end == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap_or_default());
        }
    }
    text
}

/// Whether there is a test of this name, beside the sources or among them.
pub fn is_a_test(name: &str) -> Result<(), String> {
    static ALL: LazyLock<String> =
        LazyLock::new(|| sources(&["crates", "xtask"].map(|folder| root().join(folder))));
    let is_one = ALL.contains(&format!("fn {name}(")) || ALL.contains(&format!("Trial::test(\"{name}\""));
    is_one.then_some(()).ok_or_else(|| format!("there is no test {name}"))
}

/// Whether the compiler sees this code, because a test or an example of the facade has it.
fn is_compiled(code: &str) -> Result<(), String> {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let compiled = sources(&["tests/docs", "examples"].map(|folder| root().join("crates/haft").join(folder)));
    let is_there = one_line(&compiled).contains(&one_line(code));
    is_there
        .then_some(())
        .ok_or_else(|| "no file in crates/haft/tests/docs or examples/ has this code".to_owned())
}
