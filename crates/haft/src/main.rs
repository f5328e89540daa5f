//! The `haft` command. Everything is in [`haft::cli`].

fn main() -> std::process::ExitCode {
    haft::cli::main([])
}
