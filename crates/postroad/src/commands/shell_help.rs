//! `postroad completions SHELL` and `postroad man`, generated from the command line definition.

use std::io::Write as _;

use anyhow::Context;
use clap::CommandFactory as _;
use clap::builder::PossibleValuesParser;
use postroad_app::access::Operation;

use crate::cli::Cli;

/// Prints a completion script that also completes the endpoints of `postroad api`. `postroad api` itself accepts any
/// endpoint, because the service that it calls may have other endpoints.
pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<()> {
    let endpoints = endpoint_names();
    let values = PossibleValuesParser::new(endpoints.clone());
    // `mut_arg` moves an argument behind the others, so both positions are set again.
    let add_endpoints = |api: clap::Command| {
        let api = api.mut_arg("endpoint", |endpoint| endpoint.value_parser(values).index(1));
        api.mut_arg("request", |request| request.index(2))
    };
    let mut script = Vec::new();
    let mut command = Cli::command().mut_subcommand("api", add_endpoints);
    clap_complete::generate(shell, &mut command, "postroad", &mut script);
    if shell == clap_complete::Shell::Fish {
        // clap's generator for fish leaves out positional arguments.
        let names = endpoints.join(" ");
        writeln!(
            script,
            "complete -c postroad -n \"__fish_postroad_using_subcommand api\" -f -a \"{names}\""
        )?;
    }
    write(&script)
}

/// All calls of the HTTP API, as `GROUP/ACTION`.
fn endpoint_names() -> Vec<&'static str> {
    let names = Operation::ALL.iter().map(|operation| operation.name());
    names.filter(|name| postroad_api::OPENAPI_JSON.contains(&format!("\"/api/v1/{name}\":"))).collect()
}

/// Prints the manual as one page: the list of commands, then each command with its options.
pub(crate) fn manual() -> anyhow::Result<()> {
    write(&manual_page()?)
}

fn manual_page() -> anyhow::Result<Vec<u8>> {
    let mut command = Cli::command();
    command.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    add_sections(&mut page, &command, "POSTROAD")?;
    Ok(page)
}

/// Adds a section for each command below `command`, at any depth.
fn add_sections(page: &mut Vec<u8>, command: &clap::Command, path: &str) -> anyhow::Result<()> {
    for subcommand in shown_subcommands(command) {
        let path = format!("{path} {}", subcommand.get_name().to_uppercase());
        writeln!(page, ".SH \"{path}\"")?;
        let man = clap_mangen::Man::new(subcommand.clone());
        man.render_synopsis_section(page)?;
        man.render_description_section(page)?;
        man.render_options_section(page)?;
        add_sections(page, subcommand, &path)?;
    }
    Ok(())
}

/// Subcommands without hidden ones and clap's `help`.
fn shown_subcommands(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command
        .get_subcommands()
        .filter(|subcommand| !subcommand.is_hide_set() && subcommand.get_name() != "help")
}

fn write(bytes: &[u8]) -> anyhow::Result<()> {
    std::io::stdout().write_all(bytes).context("standard output")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_has_every_command_with_its_options() {
        let page = String::from_utf8(manual_page().unwrap()).unwrap();
        let mut command = Cli::command();
        command.build();
        let mut unvisited = vec![(command, "POSTROAD".to_owned())];
        let mut sections = 0;
        while let Some((command, path)) = unvisited.pop() {
            for subcommand in shown_subcommands(&command) {
                let path = format!("{path} {}", subcommand.get_name().to_uppercase());
                let (_, section) =
                    page.split_once(&format!(".SH \"{path}\"\n")).unwrap_or_else(|| panic!("no {path}"));
                let section = section.split(".SH \"POSTROAD").next().unwrap();
                let shown = subcommand.get_arguments().filter(|argument| !argument.is_hide_set());
                for long in shown.filter_map(|argument| argument.get_long()) {
                    let option = format!("\\-\\-{}", long.replace('-', "\\-"));
                    assert!(section.contains(&option), "{path} without {option}");
                }
                sections += 1;
                unvisited.push((subcommand.clone(), path));
            }
        }
        assert!(sections > 50, "{sections} commands");
    }
}
