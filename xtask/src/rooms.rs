//! Which crate may know which: the table in ARCHITECTURE.md, held to the manifests.

use std::collections::{BTreeMap, BTreeSet};

/// The crates of the table under "The rooms", each with those that it may know, by their short names.
fn table(architecture: &str) -> BTreeMap<String, BTreeSet<String>> {
    let rows = architecture.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| [`")?.trim_end_matches(" |").split(" | ").collect();
        let name = cells.first()?.split_once('`')?.0;
        name.starts_with("haft").then_some(())?;
        let knows = cells.last()?.split(", ").map(str::trim).filter(|known| *known != "–");
        Some((name.to_owned(), knows.map(str::to_owned).collect()))
    });
    rows.collect()
}

/// The crates of this workspace that a manifest depends on, tests aside, by their short names.
fn known(manifest: &str) -> BTreeSet<String> {
    let mut is_dependencies = false;
    let mut known = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_dependencies = line.ends_with("dependencies]") && !line.ends_with("dev-dependencies]");
        }
        let name = line.split([' ', '.', '=']).next().unwrap_or_default();
        if is_dependencies && (name == "haft" || name.starts_with("haft-")) {
            known.insert(short(name));
        }
    }
    known
}

fn short(name: &str) -> String {
    name.strip_prefix("haft-").unwrap_or(name).to_owned()
}

/// What the table and the manifests do not agree about.
fn differences(
    table: &BTreeMap<String, BTreeSet<String>>,
    manifests: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut all = Vec::new();
    for (name, manifest) in manifests {
        let Some(allowed) = table.get(name) else {
            all.push(format!("{name} has no row under \"The rooms\""));
            continue;
        };
        let known = known(manifest);
        let unsaid = known
            .difference(allowed)
            .map(|other| format!("{name} depends on {other}, which its row does not say"));
        let gone = allowed
            .difference(&known)
            .map(|other| format!("{name} does not depend on {other}, which its row says"));
        all.extend(unsaid.chain(gone));
    }
    all.extend(
        table
            .keys()
            .filter(|name| !manifests.contains_key(*name))
            .map(|name| format!("there is no crate {name}")),
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::Path};

    #[test]
    fn every_crate_knows_those_that_the_architecture_says() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let architecture = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
        let mut manifests = BTreeMap::new();
        for entry in fs::read_dir(root.join("crates")).unwrap() {
            let folder = entry.unwrap().path();
            let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
            manifests.insert(name, fs::read_to_string(folder.join("Cargo.toml")).unwrap());
        }
        assert!(manifests.len() > 15, "{}", manifests.len());
        let differences = differences(&table(&architecture), &manifests);
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }

    #[test]
    fn the_facade_compiles_no_command_line() {
        let tree = |package: &str| {
            let mut cargo = std::process::Command::new(env!("CARGO"));
            cargo.args(["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--offline"]);
            let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let of_a_terminal = |tree: &str| {
            let names = ["clap ", "anstream ", "terminal_size "];
            tree.lines().filter(|line| names.iter().any(|name| line.starts_with(name))).count()
        };
        assert_eq!(of_a_terminal(&tree("haft")), 0);
        assert!(of_a_terminal(&tree("haft-cli")) >= 3, "the control");
    }

    #[test]
    fn a_crate_that_knows_more_or_less_than_its_row_is_told() {
        let rooms = table(
            "| crate | what | knows |\n|---|---|---|\n| [`haft-a`](crates/haft-a) | x | – |\n| [`haft-b`](b) | y | a, c |\n",
        );
        let manifest = |dependencies: &str| {
            format!(
                "[package]\nname = \"haft-x\"\n[dependencies]\n{dependencies}\n[dev-dependencies]\nhaft-d.workspace = true\n"
            )
        };
        let fits = BTreeMap::from([
            ("haft-a".to_owned(), manifest("serde = \"1\"")),
            ("haft-b".to_owned(), manifest("haft-a.workspace = true\nhaft-c = { path = \"../haft-c\" }")),
        ]);
        assert_eq!(differences(&rooms, &fits), Vec::<String>::new());
        let mut other = fits.clone();
        other.insert("haft-a".to_owned(), manifest("haft-b.workspace = true"));
        other.insert("haft-e".to_owned(), manifest(""));
        other.remove("haft-b");
        let told = differences(&rooms, &other).join("; ");
        assert!(told.contains("haft-a depends on b") && told.contains("haft-e has no row"), "{told}");
        assert!(told.contains("there is no crate haft-b"), "{told}");
    }

    #[test]
    fn deciding_crates_do_no_io() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for name in ["haft-core", "haft-guard", "haft-engine"] {
            let mut folders = vec![root.join("crates").join(name).join("src")];
            let mut count = 0;
            while let Some(folder) = folders.pop() {
                for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                    if path.is_dir() {
                        folders.push(path);
                    } else if !path.ends_with("tests.rs") {
                        count += 1;
                        let text = fs::read_to_string(&path).unwrap();
                        assert_eq!(outside(&text), Vec::<String>::new(), "{}", path.display());
                    }
                }
            }
            assert!(count > 10, "the sources of {name} are elsewhere");
        }
        for planted in
            ["use std::fs;", "use std::{\n    env,\n    fmt,\n};", "let a = std::net::TcpStream::connect(b);"]
        {
            assert_eq!(outside(planted).len(), 1, "{planted}");
        }
    }

    /// The modules for files, variables, programs and the network that a source uses, tests aside.
    fn outside(text: &str) -> Vec<String> {
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let is_word = |sign: char| sign.is_alphanumeric() || sign == '_';
        let mut found = Vec::new();
        for library in ["std::", "tokio::"] {
            for rest in text.split(library).skip(1) {
                let used = match rest.strip_prefix('{') {
                    Some(group) => group.split('}').next().unwrap_or_default(),
                    None => rest.split(|sign| !is_word(sign)).next().unwrap_or_default(),
                };
                let words = used.split(|sign| !is_word(sign));
                let outside = words.filter(|word| ["fs", "env", "net", "process"].contains(word));
                found.extend(outside.map(|word| format!("{library}{word}")));
            }
        }
        found
    }
}
