//! Changing arguments in a person's own editor.

use crate::words;
use haft::Arguments;
use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process::Command,
};

/// An editor, and a folder that only this user can look into.
#[derive(Clone, Debug)]
pub(crate) struct Editor {
    pub(crate) command: Option<String>,
    pub(crate) folder: PathBuf,
}

impl Editor {
    /// The arguments as they are after the editor; `None` where nothing was changed.
    pub(crate) fn edit(&self, arguments: &Arguments) -> Result<Option<Arguments>, String> {
        let Some(command) = &self.command else {
            return Err("there is no editor; set EDITOR, such as EDITOR=nano".to_owned());
        };
        let before = arguments
            .parse()
            .ok()
            .and_then(|parsed| serde_json::to_string_pretty(&parsed).ok())
            .ok_or("the arguments are not a JSON object")?;
        let random = haft_core::ApprovalId::random();
        let file = self.folder.join(format!("{random}.json"));
        let edited = self.through(command, &file, &before);
        let _ = fs::remove_file(&file);
        parsed(&before, &edited?)
    }

    fn through(&self, command: &str, file: &Path, text: &str) -> Result<String, String> {
        let cannot = |what: &str| format!("{} cannot be {what}", words::path(file));
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(|_| cannot("written"))?;
        let mut new = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(file)
            .map_err(|_| cannot("written"))?;
        new.write_all(format!("{text}\n").as_bytes()).map_err(|_| cannot("written"))?;
        drop(new);
        let mut parts = command.split_whitespace();
        let program = parts.next().ok_or("EDITOR is empty")?;
        let status = Command::new(program).args(parts).arg(file).status();
        let status = status.map_err(|error| {
            format!("`{}` cannot be started: {}", words::name(program), words::reason(&error))
        })?;
        if !status.success() {
            return Err(format!("`{}` failed, so haft changed nothing", words::name(program)));
        }
        fs::read_to_string(file).map_err(|_| cannot("read"))
    }
}

/// What was made of the text: a JSON object, or why it is none.
pub(crate) fn parsed(before: &str, after: &str) -> Result<Option<Arguments>, String> {
    let arguments = Arguments::from_text(after.trim());
    let object = arguments.parse().map_err(|problem| format!("that is not a JSON object: {problem}"))?;
    let same = haft_core::json::parse(before).is_ok_and(|before| before == serde_json::Value::Object(object));
    Ok((!same).then_some(arguments))
}
