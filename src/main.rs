//! The `procession` program.

fn main() -> std::process::ExitCode {
    procession::cli::main()
}
