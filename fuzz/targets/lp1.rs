//! Patches come from models. All three formats are read, and carried out on a small file.
#![no_main]

use haft_patch::{apply, diff, inverse, parse};
use libfuzzer_sys::fuzz_target;

// What stands before the first zero byte is the file, the rest is the patch.
fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (file, text) = text.split_once('\0').unwrap_or(("a\nb\na\n", text));
    let _ = haft_patch::lp1::parse(text);
    let _ = haft_patch::envelope::parse(text);
    let _ = haft_patch::unified::parse(text);
    let Ok(patch) = parse(text) else {
        return;
    };
    let there = |path: &str| (path == "a").then(|| file.as_bytes().to_vec());
    let Ok(changes) = apply(&patch, &mut |path: &str| Ok::<_, ()>(there(path))) else {
        return;
    };
    for change in &changes {
        let from = change.moved_from.as_deref().unwrap_or(&change.path);
        assert_eq!(change.before, there(from), "{change:?}");
        // What a person is shown is what happens.
        let shown = change.diff();
        let again = apply(&parse(&shown).expect(&shown), &mut |path: &str| {
            Ok::<_, ()>(if path == from { change.before.clone() } else { None })
        })
        .expect(&shown);
        assert_eq!(again.len(), 1, "{shown}");
        assert_eq!((&again[0].path, &again[0].after), (&change.path, &change.after), "{shown}");
        let back = diff(change.after.as_deref(), change.before.as_deref(), &change.path, from);
        assert!(parse(&back).is_ok(), "{back}");
    }
    assert_eq!(inverse(&inverse(&changes)).len(), inverse(&changes).len());
});
