//! `haft init`: a commented haft.toml.

use super::{args::InitArgs, console::Console, failure::Failure, setup::CliContext, words};
use haft::config;
use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

pub(super) fn run(args: &InitArgs, ground: &CliContext, console: &mut Console) -> Result<u8, Failure> {
    let surroundings = &ground.surroundings;
    let path = if args.user {
        surroundings.user_file().ok_or(Failure::NoUserFolder)?
    } else {
        surroundings.working_folder.join(config::FILE_NAME)
    };
    let shown = words::relative(&path, &surroundings.working_folder);
    let failed = |reason: io::Error| match reason.kind() {
        io::ErrorKind::AlreadyExists => Failure::Exists { path: shown.clone() },
        _ => Failure::CannotWrite { path: shown.clone(), reason },
    };
    if let (true, Some(folder)) = (args.user, path.parent()) {
        create_private_folder(folder).map_err(failed)?;
    }
    // What is there stays, unless somebody said otherwise; a link to nowhere is taken as there.
    let file = if args.force { File::create(&path) } else { File::create_new(&path) };
    let template = config::template();
    file.and_then(|mut file| file.write_all(template.as_bytes())).map_err(failed)?;
    let effect = if args.user {
        "It is your own configuration: it applies in every folder."
    } else {
        "It applies in this folder and below, where it can only tighten your own configuration, until you run `haft trust`."
    };
    console.print(format!(
        "wrote {}: every key with its default, all commented out\n{effect}\n\n\
         Next: open it, remove the `# ` before a line and change its value.\n",
        words::path(&shown)
    ))?;
    Ok(0)
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
