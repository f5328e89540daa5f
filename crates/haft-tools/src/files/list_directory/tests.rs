use super::*;

#[test]
fn paths_lose_what_changes_nothing() {
    for (path, shown) in [
        (".", "."),
        ("./", "."),
        (" src/ ", "src"),
        ("./src//a/./b/", "src/a/b"),
        ("/", "/"),
        ("//a///b", "/a/b"),
        ("Src", "Src"),
    ] {
        assert_eq!(normalised(path), shown, "{path}");
    }
}

#[test]
fn what_does_not_fit_goes_from_the_end() {
    let entry = |name: &str| ListingEntry {
        name: name.into(),
        path: name.into(),
        depth: 1,
        kind: EntryKind::File,
        size_bytes: Some(1),
        modified_epoch_ms: None,
        is_hidden: false,
        error_code: None,
        error: None,
    };
    let all = Listing {
        path: ".".into(),
        entries: (10..30).map(|n| entry(&n.to_string())).collect(),
        returned: 20,
        max_entries: 200,
        truncated: true,
        truncated_reason: Some("max_entries".into()),
    };
    let whole = json(&all).unwrap().len();
    let empty = fit(Listing { entries: Vec::new(), returned: 0, ..all.clone() }, 0).unwrap_err();
    assert!(empty.message.starts_with("output budget too small"), "{}", empty.message);
    let mut before = 0;
    for limit in 0..=whole {
        let Ok(told) = fit(all.clone(), limit) else {
            assert_eq!(before, 0, "a larger limit never gives less");
            continue;
        };
        assert!(told.text.len() <= limit, "{limit}");
        assert_eq!(told.value.returned, told.value.entries.len());
        assert!(told.value.returned >= before);
        before = told.value.returned;
        let reason = if limit == whole { "max_entries" } else { "max_output_bytes" };
        assert_eq!(told.value.truncated_reason.as_deref(), Some(reason));
        assert_eq!(json(&told.value).unwrap(), told.text);
        if told.value.returned < 20 {
            let mut more = told.value.clone();
            more.entries.push(all.entries[more.returned].clone());
            more.returned += 1;
            assert!(json(&more).unwrap().len() > limit, "one more would fit into {limit}");
        }
    }
    assert_eq!(before, 20);
}
