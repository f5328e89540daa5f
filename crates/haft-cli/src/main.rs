//! The `haft` command. Everything is in [`haft::cli`].

fn main() -> std::process::ExitCode {
    // First: jails are made by this same program, started anew.
    haft::init();
    haft::cli::main([])
}
