//! Finding and reading the files, and the record of trusted ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A test may panic: that is how it fails.

use haft_config::{
    FolderConfig, FolderSource, LoadOptions, Note, Resolved, Surroundings, TrustError, TrustStore, explain,
    find_folder_file, gather, load, read_folder_file, real_path, template,
};
use haft_core::{ApprovalMode, ToolsMode};
use jiff::Timestamp;
use std::fs;
use std::path::{Path, PathBuf};

const LOOSE: &str = "[tools.approval]\nmode = 'auto'\n";

/// A home folder with a repository in it.
struct House {
    _folder: tempfile::TempDir,
    home: PathBuf,
    repo: PathBuf,
    user_id: Option<u32>,
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap().join("home");
        let repo = home.join("work/repo");
        fs::create_dir_all(repo.join(".git")).unwrap();
        fs::create_dir_all(repo.join("src/deep")).unwrap();
        #[cfg(unix)]
        let user_id = Some(std::os::unix::fs::MetadataExt::uid(&fs::metadata(&home).unwrap()));
        #[cfg(not(unix))]
        let user_id = None;
        Self { _folder: folder, home, repo, user_id }
    }

    fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn at(&self, working_folder: &Path) -> Surroundings {
        Surroundings {
            working_folder: working_folder.to_owned(),
            home: Some(self.home.clone()),
            env: Vec::new(),
            user_id: self.user_id,
        }
    }

    fn store(&self) -> TrustStore {
        self.at(&self.repo).trust_store().unwrap()
    }

    fn load(&self) -> Resolved {
        load(&self.at(&self.repo), &LoadOptions::default()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn trust(&self, file: &Path) {
        self.store().trust(file, &fs::read(file).unwrap(), Timestamp::UNIX_EPOCH).unwrap();
    }
}

#[test]
fn the_users_own_file_is_where_xdg_says() {
    let house = House::new();
    let mut surroundings = house.at(&house.repo);
    assert_eq!(surroundings.user_file(), Some(house.home.join(".config/haft/haft.toml")));
    assert_eq!(surroundings.state_folder(), Some(house.home.join(".local/state/haft")));
    surroundings.env = vec![
        ("XDG_CONFIG_HOME".into(), "/xdg/config".into()),
        ("XDG_STATE_HOME".into(), "/xdg/state".into()),
    ];
    assert_eq!(surroundings.user_file(), Some("/xdg/config/haft/haft.toml".into()));
    assert_eq!(surroundings.state_folder(), Some("/xdg/state/haft".into()));
    // As XDG has it, what is relative or empty does not count.
    surroundings.env =
        vec![("XDG_CONFIG_HOME".into(), "config".into()), ("XDG_STATE_HOME".into(), "".into())];
    assert_eq!(surroundings.user_file(), Some(house.home.join(".config/haft/haft.toml")));
    assert_eq!(surroundings.state_folder(), Some(house.home.join(".local/state/haft")));
    surroundings.env =
        vec![("HAFT_CONFIG".into(), "mine.toml".into()), ("HAFT_STATE_DIR".into(), "/var/haft".into())];
    assert_eq!(surroundings.user_file(), Some(house.repo.join("mine.toml")));
    assert_eq!(surroundings.state_folder(), Some("/var/haft".into()));
    surroundings.env.clear();
    surroundings.home = None;
    assert_eq!((surroundings.user_file(), surroundings.state_folder()), (None, None));
    assert_eq!(surroundings.trust_store().unwrap_err(), TrustError::NoFolder);
}

#[test]
fn the_nearest_file_is_found() {
    let house = House::new();
    let (deep, home) = (house.repo.join("src/deep"), Some(house.home.as_path()));
    // Outside the repository, and in the home folder: not looked at.
    let above = house.write("work/haft.toml", "");
    house.write("haft.toml", "");
    assert_eq!(find_folder_file(&deep, home), None);
    let root = house.write("work/repo/haft.toml", "");
    assert_eq!(find_folder_file(&deep, home), Some(root.clone()));
    let near = house.write("work/repo/src/haft.toml", "");
    assert_eq!(find_folder_file(&deep, home), Some(near));
    assert_eq!(find_folder_file(&house.repo, home), Some(root));
    // A folder that is in no repository.
    let plain = house.home.join("work/plain/deep");
    fs::create_dir_all(&plain).unwrap();
    assert_eq!(find_folder_file(&plain, home), Some(above.clone()));
    fs::remove_file(above).unwrap();
    assert_eq!(find_folder_file(&plain, home), None, "the home folder ends the search");
    assert_eq!(find_folder_file(&house.home, home), Some(house.home.join("haft.toml")), "one stands in it");
}

#[test]
fn a_worktree_has_a_git_file() {
    let house = House::new();
    house.write("work/haft.toml", "");
    house.write("work/tree/.git", "gitdir: ../repo/.git/worktrees/tree\n");
    assert_eq!(find_folder_file(&house.home.join("work/tree"), Some(&house.home)), None);
}

#[test]
fn files_variables_and_flags_come_together() {
    let house = House::new();
    house.write(".config/haft/haft.toml", "[tools]\nmode = 'parse_only'\nmax_tool_calls_per_batch = 20\n");
    house.write("work/repo/haft.toml", "[tools]\nmax_tool_calls_per_batch = 10\n");
    let mut surroundings = house.at(&house.repo.join("src"));
    surroundings.env = vec![("HAFT_TOOLS_MODE".into(), "enabled".into())];
    let flags = vec![("tools.output.max_bytes".to_owned(), "4096".to_owned())];
    let options = LoadOptions { flags, ..LoadOptions::default() };
    let resolved = load(&surroundings, &options).unwrap();
    assert_eq!(resolved.config.tools.mode, ToolsMode::Enabled);
    assert_eq!(resolved.config.tools.max_tool_calls_per_batch, 10);
    assert_eq!(resolved.config.tools.output.max_bytes, 4096);
    assert_eq!(resolved.notes, []);
    let options = LoadOptions { folder_config: FolderConfig::Skip, ..options };
    assert_eq!(load(&surroundings, &options).unwrap().config.tools.max_tool_calls_per_batch, 20);
}

#[test]
fn a_file_that_is_named_must_be_there() {
    let house = House::new();
    let mut surroundings = house.at(&house.repo);
    assert!(load(&surroundings, &LoadOptions::default()).is_ok(), "the usual one need not be");
    surroundings.env = vec![("HAFT_CONFIG".into(), "/nowhere/haft.toml".into())];
    assert_eq!(
        load(&surroundings, &LoadOptions::default()).unwrap_err().to_string(),
        "/nowhere/haft.toml cannot be read: entity not found\n  \
         help: check HAFT_CONFIG, or unset it to use the usual place"
    );
}

#[test]
fn what_is_not_a_file_is_refused() {
    let house = House::new();
    fs::create_dir(house.repo.join("haft.toml")).unwrap();
    assert_eq!(
        load(&house.at(&house.repo), &LoadOptions::default()).unwrap_err().to_string(),
        "haft.toml is a folder, not a file\n  help: move it away, or put a file there\n  \
         help: to go on without the file in this folder, add `--no-folder-config`"
    );
    fs::remove_dir(house.repo.join("haft.toml")).unwrap();
    house.write("work/repo/haft.toml", "#".repeat((1 << 20) + 1));
    let error = load(&house.at(&house.repo), &LoadOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("haft.toml is larger than 1048576 bytes"), "{error}");
}

#[cfg(unix)]
#[test]
fn links_devices_and_odd_bytes() {
    use std::os::unix::ffi::OsStringExt as _;
    let house = House::new();
    let file = house.repo.join("haft.toml");
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    let error = load(&house.at(&house.repo), &LoadOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("haft.toml is a device or a pipe, not a file"), "{error}");
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    let error = load(&house.at(&house.repo), &LoadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("put a file there, or remove the link"), "{error}");
    fs::remove_file(&file).unwrap();

    let mut surroundings = house.at(&house.repo);
    let odd = std::ffi::OsString::from_vec(vec![0xFF]);
    surroundings.env = vec![("HAFT_OTHER".into(), odd.clone()), (odd.clone(), odd.clone())];
    assert!(load(&surroundings, &LoadOptions::default()).is_ok());
    surroundings.env.push(("HAFT_TOOLS_MODE".into(), odd));
    let error = load(&surroundings, &LoadOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "HAFT_TOOLS_MODE is not UTF-8 text\n  help: set it to UTF-8 text");
}

#[test]
fn in_their_own_folder_a_persons_file_is_their_own() {
    let house = House::new();
    let file = house.write(".config/haft/haft.toml", LOOSE);
    let resolved = load(&house.at(file.parent().unwrap()), &LoadOptions::default()).unwrap();
    assert_eq!(resolved.config.tools.approval.mode, ApprovalMode::Auto);
    assert_eq!(resolved.notes, []);
}

#[test]
fn trust_holds_until_the_file_changes() {
    let house = House::new();
    let file = house.write("work/repo/haft.toml", LOOSE);
    let mode = || house.load().config.tools.approval.mode;
    assert_eq!(mode(), ApprovalMode::Prompt);
    house.trust(&file);
    assert_eq!(mode(), ApprovalMode::Auto);
    assert_eq!(house.load().notes, []);
    // One byte, which changes nothing that is read.
    house.write("work/repo/haft.toml", format!("{LOOSE}\n"));
    assert_eq!(mode(), ApprovalMode::Prompt);
    assert_eq!(house.load().notes.len(), 1);
    // As it was: the same bytes are trusted still.
    house.write("work/repo/haft.toml", LOOSE);
    assert_eq!(mode(), ApprovalMode::Auto);
    assert!(house.store().untrust(&file).unwrap());
    assert_eq!(mode(), ApprovalMode::Prompt);
    assert!(!house.store().untrust(&file).unwrap(), "it was not trusted any more");
}

#[test]
fn trust_is_for_one_place() {
    let house = House::new();
    let file = house.write("work/repo/haft.toml", LOOSE);
    house.trust(&file);
    // A copy elsewhere, byte for byte.
    let copy = house.write("work/clone/haft.toml", LOOSE);
    assert!(!house.store().is_trusted(&copy, LOOSE.as_bytes()).unwrap());
    // Another way to the same folder is the same place.
    let around = house.repo.join("src/../haft.toml");
    assert!(house.store().is_trusted(&around, LOOSE.as_bytes()).unwrap());
}

/// A repository could link its file to one that is trusted elsewhere.
#[cfg(unix)]
#[test]
fn a_link_to_a_trusted_file_is_not_trusted() {
    let house = House::new();
    let file = house.write("work/repo/haft.toml", LOOSE);
    house.trust(&file);
    let clone = house.home.join("work/clone");
    fs::create_dir(&clone).unwrap();
    std::os::unix::fs::symlink(&file, clone.join("haft.toml")).unwrap();
    let resolved = load(&house.at(&clone), &LoadOptions::default()).unwrap();
    assert_eq!(resolved.config.tools.approval.mode, ApprovalMode::Prompt);
    assert_eq!(resolved.notes.len(), 1);
}

#[test]
fn the_record_lists_what_is_trusted() {
    let house = House::new();
    let file = house.write("work/repo/haft.toml", LOOSE);
    assert_eq!(house.store().list().unwrap(), []);
    house.trust(&file);
    house.trust(&house.write("work/other/haft.toml", ""));
    let pins = house.store().list().unwrap();
    assert_eq!(
        pins.iter().map(|pin| &pin.path).collect::<Vec<_>>(),
        [&house.home.join("work/other/haft.toml"), &file]
    );
    assert_eq!(pins[0].sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_eq!(pins[0].trusted_at, Timestamp::UNIX_EPOCH);
    // A file that is gone can still be taken off.
    fs::remove_file(&file).unwrap();
    assert!(house.store().untrust(&file).unwrap());
    fs::remove_dir_all(house.home.join("work/other")).unwrap();
    assert!(house.store().untrust(&pins[0].path).unwrap());
    assert_eq!(house.store().list().unwrap(), []);
}

#[cfg(unix)]
#[test]
fn the_record_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let house = House::new();
    house.trust(&house.write("work/repo/haft.toml", LOOSE));
    let folder = house.home.join(".local/state/haft");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&folder), 0o700);
    let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["trusted.json", "trusted.lock"], "nothing is left lying about");
    assert!(names.iter().all(|name| mode(&folder.join(name)) == 0o600));
}

#[test]
fn a_damaged_record_trusts_nothing_and_says_so() {
    let house = House::new();
    let file = house.write("work/repo/haft.toml", LOOSE);
    house.trust(&file);
    let record = house.home.join(".local/state/haft/trusted.json");
    let good = fs::read_to_string(&record).unwrap();
    for bad in [
        String::new(),
        "{".to_owned(),
        "null".to_owned(),
        good.replace("\"version\": 1", "\"version\": 2"),
        good.replace("\"files\"", "\"flies\""),
        good.replace("sha256", "sha512"),
        good.replace("{\n", "{\n\"more\": 1,"),
        format!("{good}{good}"),
        "\0".repeat(100),
    ] {
        fs::write(&record, &bad).unwrap();
        let resolved = house.load();
        assert_eq!(resolved.config.tools.approval.mode, ApprovalMode::Prompt, "{bad}");
        assert!(matches!(&resolved.notes[..], [Note::NothingTrusted { .. }, Note::Ignored { .. }]), "{bad}");
        assert!(resolved.notes[0].to_string().contains("help: remove "), "{}", resolved.notes[0]);
        // It is not overwritten: what it held may matter to somebody.
        let refused = house.store().trust(&file, LOOSE.as_bytes(), Timestamp::UNIX_EPOCH);
        assert!(matches!(refused, Err(TrustError::Damaged { .. })), "{refused:?}");
        assert_eq!(fs::read_to_string(&record).unwrap(), bad);
    }
    fs::remove_file(&record).unwrap();
    fs::create_dir(&record).unwrap();
    assert!(matches!(house.store().list(), Err(TrustError::Damaged { .. })));
    // Without a file in the folder the record does not matter, and nothing is said.
    fs::remove_file(&file).unwrap();
    assert_eq!(house.load().notes, []);
}

#[cfg(unix)]
#[test]
fn a_record_that_others_could_have_written_trusts_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let house = House::new();
    let file = house.write("work/repo/haft.toml", LOOSE);
    house.trust(&file);
    let folder = house.home.join(".local/state/haft");
    let record = folder.join("trusted.json");
    for (path, open, closed) in [(&record, 0o602, 0o600), (&record, 0o620, 0o600), (&folder, 0o770, 0o700)] {
        fs::set_permissions(path, fs::Permissions::from_mode(open)).unwrap();
        let resolved = house.load();
        assert_eq!(resolved.config.tools.approval.mode, ApprovalMode::Prompt);
        let why = TrustError::Exposed { path: path.clone() };
        assert_eq!(house.store().trust(&file, b"", Timestamp::UNIX_EPOCH).unwrap_err(), why);
        let Note::NothingTrusted { why: said } = &resolved.notes[0] else { panic!("{:?}", resolved.notes) };
        assert_eq!(*said, why);
        assert!(said.help().starts_with("run `chmod go-w "));
        fs::set_permissions(path, fs::Permissions::from_mode(closed)).unwrap();
    }
    assert_eq!(house.load().config.tools.approval.mode, ApprovalMode::Auto);
    // Somebody else's, or nobody knows whose.
    for user_id in [house.user_id.map(|id| id + 1), None] {
        let store = TrustStore::new(&folder, user_id);
        assert_eq!(
            store.is_trusted(&file, LOOSE.as_bytes()),
            Err(TrustError::NotYours { path: folder.clone() })
        );
    }
}

#[test]
fn a_dead_process_leaves_nothing_in_the_way() {
    let house = House::new();
    let file = house.write("work/repo/haft.toml", LOOSE);
    house.trust(&file);
    house.write(".local/state/haft/trusted.json.new", "half of a rec");
    house.trust(&house.write("work/other/haft.toml", ""));
    assert_eq!(house.store().list().unwrap().len(), 2);
}

#[test]
fn many_at_once_lose_nothing() {
    let house = House::new();
    let files: Vec<PathBuf> = (0..16).map(|n| house.write(format!("work/{n}/haft.toml"), LOOSE)).collect();
    std::thread::scope(|scope| {
        for file in &files {
            scope.spawn(|| house.trust(file));
        }
    });
    assert_eq!(house.store().list().unwrap().len(), files.len());
}

/// `haft trust`: what was read is what is explained, pinned, and from then on in effect.
#[test]
fn trusting_is_of_the_bytes_that_were_shown() {
    let house = House::new();
    let path = house.write("work/repo/haft.toml", LOOSE);
    let surroundings = house.at(&house.repo);
    let (mut inputs, _) = gather(&surroundings, &LoadOptions::default()).unwrap();
    let source = read_folder_file(&surroundings, Path::new("haft.toml")).unwrap();
    inputs.folder = Some(FolderSource { source: source.clone(), pinned: false });
    assert_eq!(
        explain(&inputs).unwrap().to_string(),
        "haft.toml would loosen:\n  tools.approval.mode (line 2)\n    - \"prompt\"\n    + \"auto\""
    );
    // Swapped while the person was reading.
    house.write("work/repo/haft.toml", "[tools.approval]\ndenylist = []\n");
    house.store().trust(&source.path, &source.bytes, Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(house.load().notes.len(), 1, "what lies there now is not trusted");
    assert!(house.store().is_trusted(&path, LOOSE.as_bytes()).unwrap());
}

#[test]
fn a_file_that_only_tightens_needs_no_trust() {
    let house = House::new();
    house.write("work/repo/haft.toml", "[tools]\nmode = 'disabled'\n[tools.approval]\ndenylist = ['deploy', 'run_command', 'start_command', 'execute_code']\n");
    let (inputs, _) = gather(&house.at(&house.repo), &LoadOptions::default()).unwrap();
    assert_eq!(
        explain(&inputs).unwrap().to_string(),
        "haft.toml loosens nothing, so it applies without trust\nand tighten:\n  tools.mode (line 2)\n    \
         - \"enabled\"\n    + \"disabled\"\n  tools.approval.denylist (line 4)\n    + \"deploy\"\n      \
         \"run_command\"\n      \"start_command\"\n      \"execute_code\""
    );
    house.write("work/repo/haft.toml", template());
    let (inputs, _) = gather(&house.at(&house.repo), &LoadOptions::default()).unwrap();
    assert_eq!(
        explain(&inputs).unwrap().to_string(),
        "haft.toml loosens nothing, so it applies without trust"
    );
}

/// The door that a cloned repository could open with a link.
#[cfg(unix)]
#[test]
fn a_link_in_a_repository_does_not_lead_out() {
    let house = House::new();
    house.write(".ssh/id_rsa", "secret");
    std::os::unix::fs::symlink(house.home.join(".ssh"), house.repo.join("docs")).unwrap();
    std::os::unix::fs::symlink(house.home.join("later"), house.repo.join("dangling")).unwrap();
    std::os::unix::fs::symlink("src", house.repo.join("inside")).unwrap();
    house.write(
        "work/repo/haft.toml",
        "[tools.files]\nallowed_roots = ['docs', 'dangling', 'dangling/x', 'inside/new']\n",
    );
    let resolved = house.load();
    assert_eq!(resolved.config.tools.files.allowed_roots, [std::path::PathBuf::from(".")]);
    assert_eq!(resolved.notes.len(), 1);
}

#[cfg(unix)]
#[test]
fn real_paths() {
    let house = House::new();
    std::os::unix::fs::symlink(&house.home, house.repo.join("up")).unwrap();
    std::os::unix::fs::symlink("loop", house.repo.join("loop")).unwrap();
    let real = |path: &str| real_path(&house.repo.join(path));
    assert_eq!(real("."), Some(house.repo.clone()));
    assert_eq!(real("up"), Some(house.home.clone()));
    assert_eq!(real("up/not/there"), Some(house.home.join("not/there")));
    assert_eq!(real("src/.."), Some(house.repo.clone()));
    assert_eq!(real("not_there/.."), None);
    assert_eq!(real("loop"), None);
    assert_eq!(real("haft.toml"), Some(house.repo.join("haft.toml")));
}
