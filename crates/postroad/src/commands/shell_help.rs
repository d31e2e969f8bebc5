//! `postroad completions SHELL` and `postroad man`, generated from the command line definition.

use std::io::Write as _;

use anyhow::Context;
use clap::CommandFactory as _;
use clap::builder::PossibleValuesParser;
use postroad_app::access::Operation;

use crate::cli::Cli;

/// Completes the endpoints of `postroad api` as well. Only here are they a fixed list: the service that is called may have others.
pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<()> {
    let endpoints = endpoints();
    let values = PossibleValuesParser::new(endpoints.clone());
    // A changed argument moves behind the others, unless it has a place.
    let of_api = |api: clap::Command| {
        let api = api.mut_arg("endpoint", |endpoint| endpoint.value_parser(values).index(1));
        api.mut_arg("request", |request| request.index(2))
    };
    let mut script = Vec::new();
    let mut command = Cli::command().mut_subcommand("api", of_api);
    clap_complete::generate(shell, &mut command, "postroad", &mut script);
    if shell == clap_complete::Shell::Fish {
        // Its generator leaves positional arguments out.
        let names = endpoints.join(" ");
        writeln!(
            script,
            "complete -c postroad -n \"__fish_postroad_using_subcommand api\" -f -a \"{names}\""
        )?;
    }
    write(&script)
}

/// All calls of the HTTP API, as `GROUP/ACTION`.
fn endpoints() -> Vec<&'static str> {
    let names = Operation::ALL.iter().map(|operation| operation.name());
    names.filter(|name| postroad_api::OPENAPI_JSON.contains(&format!("\"/api/v1/{name}\":"))).collect()
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
