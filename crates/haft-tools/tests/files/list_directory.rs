use crate::common::{House, WIDE, failure, pipe, text};
use haft_core::{ErrorCode, ExecutionId, ToolError};
use haft_sdk::files::{
    Access, ChangeSet, Changed, FolderView, Listed, Metadata, OpenFile, Place, Reader, Scope, Visitor, Walk,
    Workspace,
};
use serde_json::{Value, json};
use std::{ffi::OsStr, io, os::unix::ffi::OsStrExt as _, sync::Arc};

fn list(house: &House, args: Value) -> Value {
    let output = house.call("list_directory", args).unwrap();
    assert!(output.keep_whole);
    let value: Value = serde_json::from_str(output.text.as_deref().unwrap()).unwrap();
    assert_eq!(Some(&value), output.structured.as_ref(), "the text and the value are the same");
    value
}

fn paths(listing: &Value) -> Vec<&str> {
    listing["entries"].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect()
}

fn entry<'a>(listing: &'a Value, path: &str) -> &'a Value {
    let mut entries = listing["entries"].as_array().unwrap().iter();
    entries.find(|entry| entry["path"] == path).unwrap()
}

fn tree() -> House {
    House::new(&[
        ("b.txt", b"bb"),
        ("a.txt", b"a"),
        (".hidden", b"h"),
        ("dir/inner.txt", b"i"),
        ("dir/deep/deeper/deepest/x.txt", b"x"),
        (".cache/secret.txt", b"s"),
    ])
}

#[test]
fn t_ld_01_the_usual_listing_is_sorted_and_one_deep() {
    let house = tree();
    let listing = list(&house, json!({"path": "."}));
    assert_eq!(paths(&listing), ["a.txt", "b.txt", "dir"]);
    let file = entry(&listing, "b.txt");
    assert_eq!((&file["type"], &file["size_bytes"], &file["depth"]), (&json!("file"), &json!(2), &json!(1)));
    assert!(file["modified_epoch_ms"].as_u64().unwrap() > 1_600_000_000_000);
    let dir = entry(&listing, "dir");
    assert_eq!((&dir["type"], &dir["size_bytes"]), (&json!("dir"), &Value::Null));
    assert_eq!(listing["truncated_reason"], Value::Null);
}

#[test]
fn the_json_has_its_members_in_order_and_no_spaces() {
    let house = House::new(&[("a", b"1")]);
    let file = std::fs::File::options().write(true).open(house.path("a")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_123)).unwrap();
    assert_eq!(
        text(house.call("list_directory", json!({"path": ".//"}))),
        concat!(
            r#"{"path":".","entries":[{"name":"a","path":"a","depth":1,"type":"file","size_bytes":1,"#,
            r#""modified_epoch_ms":1700000000123,"is_hidden":false,"error_code":null,"error":null}],"#,
            r#""returned":1,"max_entries":200,"truncated":false,"truncated_reason":null}"#
        )
    );
}

#[test]
fn t_ld_02_a_file_is_not_a_directory() {
    let (code, message) = failure(tree().call("list_directory", json!({"path": "a.txt"})));
    assert_eq!(code, ErrorCode::ExecutionFailed);
    assert!(message.contains("path is not a directory"), "{message}");
    let (code, _) = failure(tree().call("list_directory", json!({"path": "missing"})));
    assert_eq!(code, ErrorCode::ExecutionFailed);
}

#[test]
fn t_ld_03_outside_is_refused() {
    let house = tree();
    house.link("out", "..");
    for path in ["..", "dir/../..", "/", "out", "/etc"] {
        let (code, message) = failure(house.call("list_directory", json!({"path": path})));
        assert_eq!(code, ErrorCode::FilesystemPolicyViolation, "{path}: {message}");
    }
}

#[test]
fn t_ld_04_depth_is_limited() {
    let mut house = tree();
    let two = list(&house, json!({"path": ".", "recursive": true, "max_depth": 2}));
    assert_eq!(paths(&two), ["a.txt", "b.txt", "dir", "dir/deep", "dir/inner.txt"]);
    assert_eq!(entry(&two, "dir/deep")["depth"], 2);
    let usual = list(&house, json!({"path": ".", "recursive": true}));
    assert!(paths(&usual).contains(&"dir/deep/deeper/deepest"), "four deep");
    assert!(!paths(&usual).contains(&"dir/deep/deeper/deepest/x.txt"), "not five");
    for args in [
        json!({"path": ".", "recursive": true, "max_depth": 5}),
        json!({"path": ".", "recursive": true, "max_depth": 0}),
        json!({"path": ".", "max_depth": 2}),
        json!({"path": " "}),
        json!({"path": ".", "max_entries": 201}),
        json!({"path": ".", "max_entries": 0}),
        json!({"path": ".", "include_files": false, "include_dirs": false, "include_symlinks": false, "include_other": true}),
    ] {
        let (code, message) = failure(house.call("list_directory", args.clone()));
        assert_eq!(code, ErrorCode::ValidationFailed, "{args}: {message}");
    }
    assert!(house.call("list_directory", json!({"path": ".", "max_depth": 1})).is_ok());
    house.settings.list_directory.max_depth = 1;
    assert_eq!(paths(&list(&house, json!({"path": ".", "recursive": true}))).len(), 3);
}

#[test]
fn t_ld_05_max_entries_cuts_in_the_order_of_the_walk() {
    let house = tree();
    let args = |most| json!({"path": ".", "recursive": true, "max_depth": 2, "max_entries": most});
    let cut = list(&house, args(4));
    assert_eq!(paths(&cut), ["a.txt", "b.txt", "dir", "dir/deep"]);
    assert_eq!((&cut["returned"], &cut["max_entries"]), (&json!(4), &json!(4)));
    assert_eq!((&cut["truncated"], &cut["truncated_reason"]), (&json!(true), &json!("max_entries")));
    let all = list(&house, args(5));
    assert_eq!(all["truncated"], json!(false), "nothing was left out");
    let folders = json!({"path": ".", "include_files": false, "max_entries": 1});
    assert_eq!(list(&house, folders)["truncated"], json!(false), "what is filtered out does not count");
}

#[test]
fn t_ld_06_output_size_cuts_from_the_end() {
    let mut house = tree();
    let whole = text(house.call("list_directory", json!({"path": "."}))).len();
    house.output_limit = whole - 1;
    let cut = list(&house, json!({"path": "."}));
    assert_eq!(paths(&cut), ["a.txt", "b.txt"]);
    assert_eq!((&cut["truncated"], &cut["truncated_reason"]), (&json!(true), &json!("max_output_bytes")));
    house.output_limit = whole;
    assert_eq!(paths(&list(&house, json!({"path": "."}))).len(), 3);
}

#[test]
fn t_ld_07_hidden_names_are_left_out_unless_asked_for() {
    let house = tree();
    assert!(!paths(&list(&house, json!({"path": "."}))).contains(&".hidden"));
    let all = list(&house, json!({"path": ".", "include_hidden": true}));
    assert_eq!(paths(&all), [".cache", ".hidden", "a.txt", "b.txt", "dir"]);
    assert_eq!(entry(&all, ".hidden")["is_hidden"], json!(true));
}

#[test]
fn t_ld_08_links_are_listed_and_not_entered() {
    let house = tree();
    house.link("to_dir", "dir");
    house.link("to_outside", "..");
    let listing = list(&house, json!({"path": ".", "recursive": true, "max_depth": 3}));
    for path in ["to_dir", "to_outside"] {
        assert_eq!(entry(&listing, path)["type"], "symlink");
        assert_eq!(entry(&listing, path)["size_bytes"], Value::Null);
    }
    assert!(
        paths(&listing).iter().all(|path| !path.starts_with("to_dir/") && !path.starts_with("to_outside/"))
    );
    let without = list(&house, json!({"path": ".", "include_symlinks": false}));
    assert_eq!(paths(&without), ["a.txt", "b.txt", "dir"]);
    assert_eq!(
        paths(&list(&house, json!({"path": "to_dir"}))),
        ["deep", "inner.txt"],
        "the folder itself may be one"
    );
}

#[test]
fn t_ld_09_names_that_are_not_text_are_marked() {
    let house = tree();
    std::fs::write(house.path(OsStr::from_bytes(b"bad\xff.txt")), "x").unwrap();
    let listing = list(&house, json!({"path": "."}));
    assert_eq!(paths(&listing), ["a.txt", "b.txt", "bad\u{fffd}.txt", "dir"]);
    assert_eq!(entry(&listing, "bad\u{fffd}.txt")["size_bytes"], 1);
}

#[test]
fn t_ld_10_what_cannot_be_looked_at_stays_in_the_list() {
    let mut house = tree();
    house.files = Arc::new(Broken { files: house.files, metadata: "a.txt", folder: "" });
    let listing = list(&house, json!({"path": ".", "include_files": false, "include_symlinks": true}));
    assert_eq!(paths(&listing), ["dir"], "known to be a file by its listing");
    let listing = list(&house, json!({"path": "."}));
    let unknown = entry(&listing, "a.txt");
    assert_eq!(
        (&unknown["type"], &unknown["error_code"]),
        (&json!("unknown"), &json!("metadata_unavailable"))
    );
    assert!(unknown["error"].as_str().is_some_and(|words| !words.is_empty()));
    assert_eq!(unknown["size_bytes"], Value::Null);
    assert_eq!(entry(&listing, "b.txt")["type"], "file", "the others are as they are");
}

#[test]
fn t_ld_11_hidden_folders_are_not_entered() {
    let house = tree();
    let listing = list(&house, json!({"path": ".", "recursive": true}));
    assert!(paths(&listing).iter().all(|path| !path.contains(".cache")));
    let listing = list(&house, json!({"path": ".", "recursive": true, "include_hidden": true}));
    assert!(paths(&listing).contains(&".cache/secret.txt"));
}

#[test]
fn t_ld_12_a_folder_that_cannot_be_read_is_said_and_passed_over() {
    let mut house = tree();
    house.files = Arc::new(Broken { files: house.files, metadata: "", folder: "dir" });
    let listing = list(&house, json!({"path": ".", "recursive": true}));
    assert_eq!(paths(&listing), ["a.txt", "b.txt", "dir"]);
    let dir = entry(&listing, "dir");
    assert_eq!((&dir["type"], &dir["error_code"]), (&json!("unknown"), &json!("read_dir_failed")));
    assert_eq!(entry(&list(&house, json!({"path": "."})), "dir")["type"], "dir", "it is not read then");
}

#[test]
fn t_ld_13_a_budget_too_small_for_anything_is_an_error() {
    let mut house = tree();
    for limit in [0, 1, 50] {
        house.output_limit = limit;
        let (code, message) = failure(house.call("list_directory", json!({"path": "."})));
        assert_eq!(code, ErrorCode::ExecutionFailed);
        assert!(message.starts_with("output budget too small"), "{message}");
    }
    house.output_limit = 140;
    assert_eq!(list(&house, json!({"path": "."}))["returned"], 0);
}

#[test]
fn t_ld_14_the_output_size_overrides_the_reason() {
    let mut house = tree();
    let args = json!({"path": ".", "max_entries": 2});
    assert_eq!(list(&house, args.clone())["truncated_reason"], "max_entries");
    house.output_limit = text(house.call("list_directory", args.clone())).len() - 1;
    let cut = list(&house, args);
    assert_eq!((&cut["truncated_reason"], &cut["returned"]), (&json!("max_output_bytes"), &json!(1)));
    house.output_limit = WIDE;
}

#[test]
fn denied_names_do_not_appear_and_pipes_only_when_asked_for() {
    let house = House::new(&[(".env", b"x"), ("key.pem", b"x"), (".ssh/id", b"x"), ("ok", b"x")]);
    pipe(&house.path("pipe"));
    let args = json!({"path": ".", "include_hidden": true, "recursive": true});
    assert_eq!(paths(&list(&house, args)), ["ok"]);
    let listing = list(&house, json!({"path": ".", "include_other": true}));
    assert_eq!(entry(&listing, "pipe")["type"], "other");
}

#[test]
fn settings_stand_in_for_what_is_left_out() {
    let mut house = tree();
    house.settings.list_directory.include_hidden_default = true;
    house.settings.list_directory.include_files_default = false;
    assert_eq!(paths(&list(&house, json!({"path": "."}))), [".cache", "dir"]);
    let args = json!({"path": ".", "include_hidden": false, "include_files": true});
    assert_eq!(paths(&list(&house, args)), ["a.txt", "b.txt", "dir"]);
}

/// Files of which one name cannot be looked at, and one folder cannot be read. The tests may run as one who may do
/// everything, so permissions would not do.
struct Broken {
    files: Arc<dyn Workspace>,
    metadata: &'static str,
    folder: &'static str,
}

struct BrokenFolder {
    folder: Box<dyn FolderView>,
    broken: (&'static str, &'static str),
}

impl FolderView for BrokenFolder {
    fn entries(&self) -> io::Result<Vec<Listed>> {
        self.folder.entries()
    }

    fn metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        if name == self.broken.0 {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.folder.metadata(name)
    }

    fn folder(&self, name: &OsStr) -> io::Result<Box<dyn FolderView>> {
        if name == self.broken.1 {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let folder = self.folder.folder(name)?;
        Ok(Box::new(BrokenFolder { folder, broken: self.broken }))
    }
}

impl Workspace for Broken {
    fn locate(&self, path: &str, access: Access) -> Result<Place, ToolError> {
        self.files.locate(path, access)
    }
    fn look(&self, path: &str) -> Result<Option<(Place, Metadata)>, ToolError> {
        self.files.look(path)
    }
    fn working_folder(&self, path: &str) -> Result<Place, ToolError> {
        self.files.working_folder(path)
    }
    fn open(&self, path: &str) -> Result<OpenFile, ToolError> {
        self.files.open(path)
    }
    fn folder(&self, path: &str) -> Result<(Place, Box<dyn FolderView>), ToolError> {
        let (place, folder) = self.files.folder(path)?;
        Ok((place, Box::new(BrokenFolder { folder, broken: (self.metadata, self.folder) })))
    }
    fn walk(&self, walk: &Walk<'_>, visitor: &Visitor<'_>) -> Result<Place, ToolError> {
        self.files.walk(walk, visitor)
    }
    fn protects(&self, path: &str, scope: Scope) -> Result<Option<String>, ToolError> {
        self.files.protects(path, scope)
    }
    fn change(&self, set: ChangeSet) -> Result<Vec<Changed>, ToolError> {
        self.files.change(set)
    }
    fn changed_by(&self, of: ExecutionId, tenant: &str) -> Result<Option<Vec<String>>, ToolError> {
        self.files.changed_by(of, tenant)
    }
    fn undo(&self, of: ExecutionId, by: ExecutionId, reader: &Reader) -> Result<Vec<Changed>, ToolError> {
        self.files.undo(of, by, reader)
    }
    fn last_read(&self, reader: &Reader, place: &Place) -> Result<Option<String>, ToolError> {
        self.files.last_read(reader, place)
    }
    fn remember(&self, reader: &Reader, place: &Place, sha256: &str) -> Result<(), ToolError> {
        self.files.remember(reader, place, sha256)
    }
    fn held_to(&self, footprint: &haft_core::Footprint) -> Arc<dyn Workspace> {
        self.files.held_to(footprint)
    }
}

/// FR-APR-06, FR-TOOL-LIST: what a person is shown.
#[test]
fn it_says_path_and_depth_and_is_of_low_risk() {
    let house = House::new(&[]);
    let tool = house.tool("list_directory");
    let summary = |args: Value| {
        let original = haft_core::Arguments::from(args);
        let value = original.parse().unwrap();
        tool.prepare(&haft_sdk::Args { value, original }).unwrap().summary()
    };
    assert_eq!(summary(json!({"path": "src"})), "List src");
    assert_eq!(summary(json!({"path": "src", "recursive": true, "max_depth": 3})), "List src [depth 3]");
    assert_eq!(tool.definition().risk(), haft_core::Risk::Low);
}

/// seeds/001 §5: the names under which a caller knows them.
#[test]
fn read_only_file_tools_have_the_names_of_the_source_document() {
    let house = House::new(&[]);
    for (name, alias) in [
        ("read_file", "ReadFile"),
        ("list_directory", "ListFiles"),
        ("search_files", "SearchFiles"),
        ("glob", "QueryVFS"),
    ] {
        let tool = house.tool(name);
        let definition = tool.definition();
        assert!(definition.aliases.iter().any(|known| known == alias), "{name}: {:?}", definition.aliases);
        assert!(!definition.has_side_effects(), "{name}");
    }
}
