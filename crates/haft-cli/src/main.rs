//! The `haft` command. Everything is in [`haft_cli`].

fn main() -> std::process::ExitCode {
    // First: jails are made by this same program, started again.
    haft::init();
    haft_cli::main([])
}
