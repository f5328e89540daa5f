//! The `haft` command. Everything is in [`haft::cli`].

fn main() -> std::process::ExitCode {
    // The same program, started anew, is what makes jails.
    haft_jail::init();
    haft::cli::main([])
}
