//! `indelible config CLIENT`: what a client wants in its settings file, printed or put there.
//!
//! Stdout gets snippets, or what was written; where they belong goes to stderr. It opens no database.

use super::{Program, output};
use crate::clients::place::{Placed, place};
use crate::clients::{Client, Folders, Launch, client, hooks};
use crate::config::Resolved;
use crate::error::{EXIT_OK, StartError};
use crate::logging::complain;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What the command line asks for.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) client: String,
    pub(super) name: String,
    pub(super) write: bool,
    pub(super) file: Option<PathBuf>,
    pub(super) hooks: bool,
    pub(super) log_prompts: bool,
    pub(super) hooks_file: Option<PathBuf>,
}

/// One file and what goes into it.
struct Part<'a> {
    file: PathBuf,
    snippet: String,
    merged: Box<Merge<'a>>,
}

/// A file's text with what belongs in it, or why not.
type Merge<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// Prints the snippets, or writes the files.
pub(super) fn config<P: Program>(
    program: &P,
    resolved: &Resolved,
    wanted: &Wanted,
) -> Result<u8, StartError> {
    let client = client(&wanted.client)
        .ok_or_else(|| StartError::usage(format!("unknown client `{}`", wanted.client)))?;
    let launch = launch(resolved, wanted)?;
    let folders = folders()?;
    let parts = parts(program, resolved, wanted, client, &launch, &folders)?;
    if let Some(word) = client.misread(&launch) {
        let (title, variable) = (client.title, client.variable.unwrap_or_default());
        complain(&format!(
            "{title} takes what follows `{variable}` for a variable, and there is one in `{word}`; choose another path"
        ));
    }
    if wanted.write {
        parts.iter().try_for_each(put)?;
        return Ok(EXIT_OK);
    }
    if client.id == "claude-code" {
        complain("this command adds the server for you alone, in this folder:");
        output::print(&launch.claude_mcp_add()?)?;
    }
    for (at, part) in parts.iter().enumerate() {
        if at > 0 || client.id == "claude-code" {
            output::print("\n")?;
        }
        complain(&format!("this belongs into `{}`; --write puts it there:", part.file.display()));
        output::print(&part.snippet)?;
    }
    Ok(EXIT_OK)
}

/// The running program's path.
pub(super) fn running() -> Result<PathBuf, StartError> {
    let path = std::env::current_exe()
        .map_err(|error| StartError::failure(format!("cannot tell where this program is: {error}")))?;
    if path.is_file() {
        return Ok(path);
    }
    Err(StartError::failure(format!("this program is no longer at `{}`; start it anew", path.display())))
}

fn launch(resolved: &Resolved, wanted: &Wanted) -> Result<Launch, StartError> {
    let fits = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    let name = &wanted.name;
    if name.is_empty() || !name.chars().all(fits) {
        return Err(StartError::usage(format!("--name `{name}`: must be letters, digits, `-` and `_`")));
    }
    let program = running()?;
    let program = program.to_str().ok_or_else(|| {
        StartError::failure(format!("the program's path `{}` is not UTF-8; move it", program.display()))
    })?;
    if let Some(place) = &resolved.settings.primitives {
        place.group()?;
    }
    Ok(Launch { name: name.clone(), program: program.to_owned(), arguments: resolved.arguments()? })
}

fn folders() -> Result<Folders, StartError> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let current = std::env::current_dir()
        .map_err(|error| StartError::failure(format!("cannot tell the current folder: {error}")))?;
    Ok(Folders {
        current,
        home: folder("HOME"),
        config_home: folder("XDG_CONFIG_HOME"),
        codex_home: folder("CODEX_HOME"),
        macos: cfg!(target_os = "macos"),
    })
}

fn parts<'a, P: Program>(
    program: &P,
    resolved: &'a Resolved,
    wanted: &Wanted,
    client: &'a Client,
    launch: &'a Launch,
    folders: &Folders,
) -> Result<Vec<Part<'a>>, StartError> {
    let file = match &wanted.file {
        Some(file) => folders.current.join(file),
        None => client.file(folders)?,
    };
    let snippet = client.snippet(launch).map_err(StartError::failure)?;
    let mut parts = vec![Part { file, snippet, merged: Box::new(move |text| client.merged(text, launch)) }];
    if wanted.hooks {
        if client.id != "claude-code" {
            return Err(StartError::usage(format!(
                "--hooks is for claude-code; {} has none that are known",
                client.title
            )));
        }
        let tools = program.tools(&resolved.settings)?;
        let has =
            |name: &str| tools.iter().any(|tool| tool.get("name").and_then(Value::as_str) == Some(name));
        if !has("get_resume_context") {
            let profile = &resolved.settings.profile;
            return Err(StartError::usage(format!(
                "--hooks needs the tool get_resume_context, which the profile {profile} has not"
            )));
        }
        if wanted.log_prompts && !has("append_event") {
            return Err(StartError::usage("--log-prompts writes events, which --read-only does not"));
        }
        let (appends, prompts) = (has("append_event"), wanted.log_prompts);
        let file = wanted.hooks_file.as_deref().unwrap_or(Path::new(hooks::FILE));
        let database = resolved.settings.db.to_str().unwrap_or_default();
        let merged = move |text: &str| {
            // A hook for prompts that is there stays, and what it logs must not fill the resume text.
            let prompts = prompts || appends && hooks::logs_prompts(text, database)?;
            let hooks = hooks::hooks(launch, appends, prompts).map_err(|error| error.message)?;
            hooks::merged(text, &hooks, database)
        };
        let snippet = merged("").map_err(StartError::failure)?;
        parts.push(Part { file: folders.current.join(file), snippet, merged: Box::new(merged) });
    }
    Ok(parts)
}

fn put(part: &Part<'_>) -> Result<(), StartError> {
    let file = part.file.display();
    match place(&part.file, &part.merged) {
        Ok(Placed::Unchanged) => output::print(&format!("{file} has it already")),
        Ok(Placed::Created) => output::print(&format!("{file} was made")),
        Ok(Placed::Changed { backup }) => {
            output::print(&format!("{file} was changed; its former text is in {}", backup.display()))
        }
        Err(error) => {
            output::print(&part.snippet)?;
            Err(StartError {
                message: format!("{}; what belongs there is on stdout", error.message),
                ..error
            })
        }
    }
}
