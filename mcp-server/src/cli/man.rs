//! `man`: the manual, a page for the program and one for each command.

use std::{fs, io, path::PathBuf};

use clap::{Args, Command};
use clap_mangen::Man as Page;

use super::{
    Global,
    out::{Exit, Failure, Ran},
};
use crate::{Code, Error, tools::validate};

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proxmox-mcp man | man -l -
  proxmox-mcp man guests | man -l -
  proxmox-mcp man --output ~/.local/share/man/man1")]
pub struct Man {
    /// The page of this command; without it that of the program
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    command: Vec<String>,
    /// Write all pages into this directory instead
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Man {
    /// Prints a page in roff, or writes them all; nothing is connected.
    ///
    /// # Errors
    /// `invalid_argument` for a command that there is none of, `config` when a page cannot be
    /// written.
    pub fn run(&self, global: &Global) -> Ran {
        let mut root = super::command().disable_help_subcommand(true);
        // A command knows its page's name and its whole usage only when all is built.
        root.build();
        match &self.output {
            Some(dir) => {
                let mut names = Vec::new();
                write(&root, dir, &mut names)?;
                let out = global.out();
                if out.json {
                    out.value(&serde_json::json!({ "directory": dir, "pages": names }))?;
                } else {
                    out.text(&format!("{} pages in {}", names.len(), dir.display()))?;
                }
            }
            None => {
                let mut text = Vec::new();
                Page::new(find(&root, &self.command)?.clone()).render(&mut text)?;
                global.out().text(&String::from_utf8_lossy(&text))?;
            }
        }
        Ok(Exit::Well)
    }
}

/// The command that the words name.
fn find<'a>(root: &'a Command, words: &[String]) -> Result<&'a Command, Error> {
    words.iter().try_fold(root, |command, word| {
        command.find_subcommand(word).ok_or_else(|| {
            let error = Error::argument(format!("there is no command {word:?}"));
            match validate::nearest(word, command.get_subcommands().map(Command::get_name)) {
                Some(near) => error.hint(format!("did you mean {near}?")),
                None => error.hint("`proxmox-mcp --help` lists them"),
            }
        })
    })
}

/// Writes a command's page and those below it.
fn write(command: &Command, dir: &PathBuf, names: &mut Vec<String>) -> Result<(), Failure> {
    let page = Page::new(command.clone());
    let name = page.get_filename();
    let save = || -> io::Result<()> {
        let mut text = Vec::new();
        page.render(&mut text)?;
        fs::create_dir_all(dir)?;
        fs::write(dir.join(&name), text)
    };
    save().map_err(|e| {
        Error::new(Code::Config, format!("{} cannot be written: {e}", dir.join(&name).display()))
            .hint("name a directory that you may write with --output")
    })?;
    names.push(name);
    command.get_subcommands().try_for_each(|inner| write(inner, dir, names))
}
