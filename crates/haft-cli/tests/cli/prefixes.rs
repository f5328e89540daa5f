//! Ids by a prefix, wherever one is typed.

use crate::{
    memory::{FREELY, crash, text},
    support::Place,
};

/// The id of a call that wrote a file.
fn written(place: &Place, name: &str) -> String {
    let path = format!("path={name}");
    let args = [&["call", "write_file", &path, "content=hello", "--json"][..], &FREELY].concat();
    let said = place.haft(&args);
    assert_eq!(said.code, 0, "{said:?}");
    text(&said.json()["metadata"], "executionId").to_owned()
}

#[test]
fn a_call_is_shown_and_undone_by_a_prefix_of_its_id() {
    let place = Place::new();
    let id = written(&place, "notes.txt");
    for prefix in [&id[..8], &id[..13], &id[..35], &id.replace('-', "").to_uppercase()[..10], &id] {
        let shown = place.json(&["runs", "show", prefix, "--json"]);
        assert_eq!(text(&shown["metadata"], "executionId"), id, "{prefix}");
        assert_eq!(place.haft(&["runs", "watch", prefix]).code, 0, "{prefix}");
    }
    let undone = place.haft(&["undo", &id[..13]]);
    assert_eq!((undone.code, undone.stdout.as_str()), (0, "deleted: notes.txt\n"), "{undone:?}");
}

#[test]
fn a_prefix_of_several_ids_lists_them_and_does_nothing() {
    let place = Place::new();
    let (one, two) = (written(&place, "one"), written(&place, "two"));
    for command in [&["runs", "show"][..], &["runs", "watch"], &["undo"]] {
        let said = place.haft(&[command, &[&one[..4]]].concat());
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{said:?}");
        assert_eq!(
            said.stderr,
            format!(
                "error: several ids begin with `{}`:\n  {two}  write_file Success\n  {one}  write_file Success\n  \
                 help: type more characters of the id\n",
                &one[..4]
            )
        );
    }
    assert!(place.work().join("one").exists() && place.work().join("two").exists(), "nothing was undone");
}

#[test]
fn what_is_no_prefix_of_anything_says_so() {
    let place = Place::new();
    written(&place, "one");
    for (args, code, error) in [
        (&["undo", "ffffffff"][..], 1, "there is no call or batch `ffffffff`"),
        (&["undo", "notes.txt"], 2, "`notes.txt` is not the id of a call or a batch, nor a prefix of one"),
        (&["runs", "show", "ffff-ffff"], 1, "there is no call or batch `ffff-ffff`"),
        (&["runs", "show", "fff"], 2, "`fff` is not the id of a call or a batch"),
        (&["runs", "cancel", "ffffffff"], 1, "no call or batch `ffffffff` is running"),
        (&["runs", "show", "tsk_ffffffff"], 1, "there is no task `tsk_ffffffff`"),
        (&["runs", "show", "ffffffff", "--tenant", "other"], 1, "there is no call or batch `ffffffff`"),
    ] {
        let said = place.haft(args);
        assert!(said.code == code && said.stderr.contains(error), "{args:?}: {said:?}");
        assert!(said.stderr.contains("\n  help: `haft runs "), "{args:?}: {said:?}");
    }
}

#[test]
fn a_batch_is_shown_and_what_a_crash_left_is_decided_by_a_prefix() {
    let place = Place::new();
    crash(&place, &["call", "slow_touch"]);
    let waiting = place.json_at(6, &["recover", "--json"]);
    let id = text(&waiting["unfinished"][0], "id");
    let decided = place.json(&["recover", "--discard", &id[..8], "--json"]);
    assert_eq!(text(&decided["decided"][0], "id"), id);

    place.write("calls.json", r#"[{"id":"c1","name":"get_metrics"},{"id":"c2","name":"get_metrics"}]"#);
    let batch = place.json(&["batch", "calls.json", "--json"]);
    let id = text(&batch["results"][0]["metadata"], "batchId");
    let shown = place.json(&["runs", "show", &id[..35], "--json"]);
    assert_eq!(shown["runs"].as_array().map(Vec::len), Some(2), "{shown}");
}

#[cfg(unix)]
#[test]
fn a_key_is_revoked_by_a_prefix_of_its_id() {
    let place = Place::new();
    let key = |name: &str| {
        let made = place.json(&["keys", "create", name, "--right", "invoke", "--json"]);
        text(&made["key"], "id").to_owned()
    };
    let (one, other) = (key("ci"), key("phone"));
    assert_eq!(place.json(&["keys", "revoke", &one[..12], "--json"])["revoked"], one.as_str());
    let again = place.haft(&["keys", "revoke", &one[..12]]);
    assert!(again.code == 2 && again.stderr.contains("there is no active key `"), "{again:?}");
    let keys = place.json(&["keys", "list", "--json"]);
    let states: Vec<_> = keys["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| (text(key, "id"), key["revokedAt"].is_string()))
        .collect();
    assert!(states.contains(&(&one, true)) && states.contains(&(&other, false)), "{keys}");
}
