//! What people read, as a whole: one snapshot for each page.

use crate::support::Place;

fn first_batch() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/first-batch.json");
    std::fs::read_to_string(path).expect("it is there")
}

#[test]
fn the_first_batch() {
    let place = Place::new();
    place.write("first-batch.json", first_batch());
    let said = place.haft(&["batch", "first-batch.json"]);
    // Four that show something, one that is refused with advice, and the counts at the end.
    assert_eq!(said.code, 4, "{said:?}");
    insta::assert_snapshot!(said.shown());
}

#[test]
fn the_first_batch_before_it_runs() {
    let place = Place::new();
    insta::assert_snapshot!(place.haft_with(&["batch", "-", "--dry-run"], first_batch()).shown());
}

#[test]
fn every_example_is_a_batch() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "json" || extension == "jsonl") {
            let said = Place::new().haft(&["batch", "--json", path.to_str().expect("text")]);
            assert!(matches!(said.code, 0 | 4), "{}: {said:?}", path.display());
            seen += 1;
        }
    }
    assert_eq!(seen, 2);
}

#[test]
fn tools_list() {
    insta::assert_snapshot!(Place::new().haft(&["tools", "list"]).shown());
}

#[test]
fn tools_show() {
    insta::assert_snapshot!(Place::new().haft(&["tools", "show", "validate_content"]).shown());
    let said = Place::new().haft(&["tools", "show", "validate_contnet"]);
    insta::assert_snapshot!(said.shown(), @r"
    exit 1
    --- stderr
    error: there is no tool named `validate_contnet`
      help: did you mean `validate_content`?
    ");
}

#[test]
fn calls_that_go_wrong() {
    let place = Place::new();
    let mut text = String::new();
    for args in [
        &["call", "validate_contnet"][..],
        &["call", "validate_content", "contnet={}"],
        &["call", "validate_content", "content=1", "max_problems=many"],
        &["call", "validate_content", "content=1", "schema={"],
        &["--set", "tools.approval.denylist=validate_content", "call", "validate_content", "content=1"],
        &["--set", "tools.mode=parse_only", "call", "get_metrics"],
        &["call", "get_metrics", "--isolation", "strict"],
    ] {
        text.push_str(&format!("$ haft {}\n{}\n", args.join(" "), place.haft(args).shown()));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn help_pages() {
    let place = Place::new();
    for command in ["", "call", "batch", "tools", "mcp", "init", "trust"] {
        let args: Vec<&str> = [command, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        insta::assert_snapshot!(format!("help_{command}"), place.haft(&args).shown());
    }
}

#[test]
fn init_and_trust() {
    let place = Place::new();
    let mut text = place.haft(&["init"]).shown();
    place.write("haft.toml", "[tools.approval]\nmode = 'auto'\nallowlist = ['read_file', 'write_file']\n");
    for args in [
        &["call", "validate_content", "content=1"][..],
        &["trust"],
        &["trust", "--yes"],
        &["trust", "--remove"],
    ] {
        text.push_str(&format!("$ haft {}\n{}", args.join(" "), place.haft(args).shown()));
    }
    insta::assert_snapshot!(text);
}
