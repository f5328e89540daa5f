//! `haft keys`: keys that sign tools. Those by which programs are known to a server are in `api_keys`.

#[cfg(unix)]
use super::api_keys;
use super::{args::KeysCommand, console::Console, failure::Failure, setup::CliContext, words};
use haft::config::Surroundings;
use haft_guard::SecretKey;
use haft_store::private_file;
use serde_json::json;
use std::{
    io,
    path::{Path, PathBuf},
};

/// The name of the key beside the user's own configuration.
const FILE_NAME: &str = "signing.key";
/// What such a file begins with, so that it is not taken for something else.
const MARK: &str = "haft-signing-key-1:";

pub(super) fn run(command: &KeysCommand, ground: &CliContext, console: &mut Console) -> Result<u8, Failure> {
    let surroundings = ground.surroundings()?;
    let (key, path, json) = match command {
        KeysCommand::Generate { out, json } => {
            let path = place(out.as_deref(), &surroundings)?;
            (generate(&path)?, path, *json)
        }
        KeysCommand::Show { file, json } => {
            let path = place(file.as_deref(), &surroundings)?;
            (read(&path)?, path, *json)
        }
        #[cfg(unix)]
        KeysCommand::Create(args) => return api_keys::create(args, ground, console),
        #[cfg(unix)]
        KeysCommand::List { tenant, json } => {
            return api_keys::list(tenant.as_deref(), *json, ground, console);
        }
        #[cfg(unix)]
        KeysCommand::Revoke { id, json } => return api_keys::revoke(id, *json, ground, console),
    };
    let public = key.public();
    if json {
        console.print_json(&json!({"publicKey": public.to_string(), "id": public.id(), "file": path}))?;
        return Ok(0);
    }
    console.print(format!("{public}\n"))?;
    if let KeysCommand::Generate { .. } = command {
        console.say(format!(
            "The secret key is in {}. Never share that file.\nPeople who accept your tools add the line \
             above to trusted_keys under [tools.signatures].",
            words::path(&words::relative(&path, &surroundings.working_folder))
        ));
    }
    Ok(0)
}

/// The named file, or the usual one.
pub(super) fn place(named: Option<&Path>, surroundings: &Surroundings) -> Result<PathBuf, Failure> {
    match named {
        Some(path) => Ok(surroundings.working_folder.join(path)),
        None => {
            let own = surroundings.user_file().ok_or(Failure::NoUserFolder)?;
            Ok(own.with_file_name(FILE_NAME))
        }
    }
}

fn generate(path: &Path) -> Result<SecretKey, Failure> {
    // A key that is gone cannot be made again, so none is ever replaced.
    if path.exists() {
        return Err(Failure::KeyExists { path: path.to_path_buf() });
    }
    let cannot = |reason| Failure::CannotWrite { path: path.to_path_buf(), reason };
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| cannot(io::Error::other(error)))?;
    let folder = path.parent().filter(|folder| !folder.exists());
    folder.map_or(Ok(()), private_file::create_folder).map_err(cannot)?;
    let hex: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    private_file::replace(path, format!("{MARK}{hex}\n").as_bytes()).map_err(cannot)?;
    Ok(SecretKey::from_seed(seed))
}

/// The key in a file that nobody else can read.
pub(super) fn read(path: &Path) -> Result<SecretKey, Failure> {
    let name = words::path(path);
    let unreadable = |reason| Failure::NoKey { name: name.clone(), reason: words::reason(&reason) };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if std::fs::metadata(path).map_err(unreadable)?.mode() & 0o077 != 0 {
            let reason = format!("other users can read it; run `chmod 600 {name}`, or make a new key");
            return Err(Failure::NoKey { name, reason });
        }
    }
    let seed = text.trim().strip_prefix(MARK).and_then(seed);
    seed.map(SecretKey::from_seed)
        .ok_or_else(|| Failure::NoKey { name, reason: "it is not a key of `haft keys generate`".to_owned() })
}

fn seed(hex: &str) -> Option<[u8; 32]> {
    let digits = hex.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut seed = [0; 32];
    for (byte, pair) in seed.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(seed)
}
