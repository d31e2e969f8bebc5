//! `postroad completions SHELL` and `postroad man`, made from the command line itself.

use std::io::Write as _;

use anyhow::Context;
use clap::CommandFactory as _;

use crate::cli::Cli;

pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "postroad", &mut script);
    write(&script)
}

/// One page: the commands, then each of them with its options.
pub(crate) fn manual() -> anyhow::Result<()> {
    let mut command = Cli::command();
    command.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        page.extend_from_slice(
            format!(".SH \"POSTROAD {}\"\n", subcommand.get_name().to_uppercase()).as_bytes(),
        );
        let man = clap_mangen::Man::new(subcommand.clone());
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)?;
        if subcommand.has_subcommands() {
            man.render_subcommands_section(&mut page)?;
        }
    }
    write(&page)
}

fn write(bytes: &[u8]) -> anyhow::Result<()> {
    std::io::stdout().write_all(bytes).context("standard output")
}
