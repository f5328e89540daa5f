//! Compilers and linkers: options that name a program, a plugin, or a file of more options.

use super::{option::may_be_option, word::Word};

/// Whether a program, by its name without version and target, is a compiler, or a part of one.
pub(super) fn is_compiler(stem: &str) -> bool {
    #[rustfmt::skip]
    const NAMES: &[&str] = &[
        "ar", "c", "c++", "cc", "clang", "clang++", "clang-cl", "clang-cpp", "cpp", "em++", "emcc", "g++", "gcc",
        "gcc-ar", "gcc-nm", "gcc-ranlib", "gccgo", "gdc", "gfortran", "icc", "icpc", "icpx", "icx", "ld", "ld.bfd",
        "ld.gold", "ld.lld", "ld.mold", "lld", "mold", "nm", "nvcc", "ranlib", "tcc",
    ];
    NAMES.contains(&stem)
}

/// Whether an option makes a compiler run or load something that the line names, or read more options.
pub(super) fn runs_more(word: &Word) -> bool {
    let Some(word) = word.exact() else { return may_be_option(word) };
    // `-X…` hands the next word to another program.
    const BEGINNINGS: &[&str] = &[
        "@",
        "-B",
        "-X",
        "-Wa,",
        "-Wp,",
        "-cc1",
        "-ccbin",
        "-ccc",
        "-fmodule-mapper",
        "-fpass-plugin",
        "-fplugin",
        "-iplugindir",
        "-load",
        "-mllvm",
        "-plugin",
        "-run",
        "-specs",
        "-wrapper",
    ];
    const LONGS: &[&str] = &[
        "--compiler-bindir",
        "--config",
        "--driver-mode",
        "--for-assembler",
        "--for-linker",
        "--gcc-install-dir",
        "--gcc-toolchain",
        "--ld-path",
        "--plugin",
        "--prefix",
        "--specs",
        "--wrapper",
    ];
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let is_long = name.len() > 2
        && name.starts_with("--")
        && LONGS.iter().any(|long| long.starts_with(name) || name.starts_with(long));
    let is_linker = word
        .strip_prefix("-fuse-ld")
        .is_some_and(|linker| !matches!(linker, "=bfd" | "=gold" | "=lld" | "=mold"));
    let links = word.strip_prefix("-Wl,").is_some_and(|options| !is_tame_for_linker(options));
    is_long || is_linker || links || BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
}

/// Options for the linker that load nothing and read no file of options.
fn is_tame_for_linker(options: &str) -> bool {
    #[rustfmt::skip]
    const FLAGS: &[&str] = &[
        "--as-needed", "--build-id", "--end-group", "--export-dynamic", "--gc-sections", "--no-as-needed",
        "--no-undefined", "--no-whole-archive", "--start-group", "--strip-all", "--whole-archive", "-(", "-)", "-E",
        "-O1", "-O2", "-dead_strip", "-s",
    ];
    const VALUES: &[&str] = &["-h", "-rpath", "--rpath", "-rpath-link", "-soname", "--soname", "-z"];
    let mut options = options.split(',');
    while let Some(option) = options.next() {
        let name = option.split_once('=').map_or(option, |(name, _)| name);
        let is_value = |value: &str| !value.is_empty() && !value.starts_with(['-', '@']);
        let is_tame = match () {
            () if FLAGS.contains(&option) => true,
            () if VALUES.contains(&name) && name != option => true,
            () if VALUES.contains(&option) => options.next().is_some_and(is_value),
            () => false,
        };
        if !is_tame {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_for_the_linker() {
        for tame in ["-rpath,lib", "-rpath=lib", "-z,now,-z,relro", "--as-needed", "-soname,x.so.1"] {
            assert!(is_tame_for_linker(tame), "{tame}");
        }
        for more in
            ["-plugin,./x.so", "--plugin=./x.so", "@more", "-z", "-rpath,-plugin,x", "-z,@more", "", "-T,x"]
        {
            assert!(!is_tame_for_linker(more), "{more}");
        }
    }
}
