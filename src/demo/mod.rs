//! `indelible demo`: an agent's session on a small music store, shown to a person.
//!
//! The server in it is this program, started and spoken to as any MCP client does; nothing is simulated
//! but the agent.
//!
//! # Layout
//!
//! - `show`, `memory`, `explorer`: what a demo is made of; the scenes of each profile
//! - `store`, `words`: the music store's rows
//! - `primitives`, `over_http`: the demo of groups, and its client
//! - `client`: the MCP client; `page`: how it looks on stdout; `folder`: the temporary folder
//! - here: the scenes are played

pub mod client;
mod explorer;
mod folder;
mod memory;
mod over_http;
pub mod page;
mod primitives;
pub mod show;
pub mod store;
mod words;

use crate::error::StartError;
use crate::sqlite::copy::default_folder;
use crate::sqlite::{music_store, outsider};
use client::Client;
use folder::Folder;
use page::{Halt, Page};
use sha2::{Digest, Sha256};
use show::{Act, Ends, Scene, Show};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The demos there are; the first is the default.
static SHOWS: &[&Show] = &[&memory::SHOW, &explorer::SHOW];

/// Shows the session of a profile on stdout, on a new database at `db` or in a temporary folder.
///
/// # Errors
/// Exit status 2 for a profile without a demo; 1 for what keeps it from being shown to its end: `db` exists,
/// the server fails, or answers otherwise than the narration says.
pub fn run(db: Option<PathBuf>, profile: Option<&str>) -> Result<(), StartError> {
    let of_groups = profile == Some(primitives::PROFILE);
    let show = if of_groups { None } else { Some(find(profile)?) };
    if of_groups && db.is_some() {
        return Err(StartError::usage("--db is for demos on a database; leave it out here"));
    }
    let stdout = std::io::stdout().lock();
    let colours = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let page = &mut Page::new(stdout, colours);
    let played = match show {
        Some(show) => play(show, db.as_deref(), page),
        None => primitives::play(page),
    };
    match played {
        Err(Halt::Failed(error)) => Err(error),
        Ok(()) | Err(Halt::Unread) => Ok(()),
    }
}

fn find(profile: Option<&str>) -> Result<&'static Show, StartError> {
    let wanted = |show: &&&Show| profile.is_none_or(|profile| profile == show.profile);
    SHOWS.iter().find(wanted).copied().ok_or_else(|| {
        let there = SHOWS.iter().map(|show| show.profile).chain([primitives::PROFILE]);
        let there: Vec<&str> = there.collect();
        let (given, there) = (profile.unwrap_or_default().escape_debug(), there.join(", "));
        StartError::usage(format!("--profile `{given}`: it has no demo; there is {there}"))
    })
}

fn play<W: Write>(show: &Show, kept: Option<&Path>, page: &mut Page<W>) -> Result<(), Halt> {
    let folder = Folder::new()?;
    let database = kept.map_or_else(|| folder.path().join("music.db"), Path::to_path_buf);
    if let Some(parent) = kept.and_then(Path::parent) {
        std::fs::create_dir_all(parent).map_err(|error| {
            StartError::failure(format!("cannot create the folder `{}`: {error}", parent.display()))
        })?;
    }
    music_store::write(&database, &store::contents(show.wal))?;
    page.paragraph(show.opening)?;
    let mut stage = Stage { show, folder: &folder, database: &database, server: None, fingerprint: None };
    for part in show.parts {
        page.headline(part.headline)?;
        for scene in part.scenes {
            page.step(scene.says)?;
            stage.act(scene, page)?;
        }
        if !part.moral.is_empty() {
            page.paragraph(part.moral)?;
        }
    }
    stage.stop()?;
    drop(folder);
    close(show, kept, page)
}

/// What a scene is played with.
struct Stage<'a> {
    show: &'a Show,
    folder: &'a Folder,
    database: &'a Path,
    server: Option<Client>,
    /// Of the database file, when it was last taken.
    fingerprint: Option<String>,
}

impl Stage<'_> {
    fn act<W: Write>(&mut self, scene: &Scene, page: &mut Page<W>) -> Result<(), Halt> {
        match &scene.act {
            Act::Start => {
                self.start(self.database, page)?;
                let tools = self.server()?.tools()?;
                page.sent("tools/list", None)?;
                page.answered(&format!("{} tools: {}", tools.len(), tools.join(", ")), false, 1)
            }
            Act::Call { tool, arguments, ends, lines } => {
                let arguments = arguments();
                page.sent(tool, Some(&arguments))?;
                let answer = self.server()?.call(tool, &arguments)?;
                page.answered(&answer.text, answer.is_error, *lines)?;
                let as_told = match ends {
                    Ends::Well(words) => !answer.is_error && answer.text.contains(words),
                    Ends::Refused(words) => answer.is_error && answer.text.contains(words),
                };
                if as_told {
                    return Ok(());
                }
                Err(StartError::failure(format!("the demo expected another answer of `{tool}`: {ends:?}"))
                    .into())
            }
            Act::Read { uri, contains, lines } => {
                page.sent("resources/read", Some(&serde_json::json!({"uri": uri})))?;
                let text = self.server()?.read(uri)?;
                page.answered(&text, false, *lines)?;
                if text.contains(contains) {
                    return Ok(());
                }
                Err(StartError::failure(format!("the demo expected `{contains}` in `{uri}`")).into())
            }
            Act::Fingerprint => {
                let now = fingerprint(self.database)?;
                page.measured(&now)?;
                let before = self.fingerprint.replace(now.clone());
                if before.is_none_or(|before| before == now) {
                    return Ok(());
                }
                Err(StartError::failure("the database file is not what it was before".to_owned()).into())
            }
            Act::Restart => self.start(self.database, page),
            Act::Tamper(statements) => {
                self.stop()?;
                let copy = self.folder.path().join("copy.db");
                outsider::copy(self.database, &copy)?;
                for statement in *statements {
                    page.done_behind(statement)?;
                }
                outsider::run(&copy, statements)?;
                self.start(&copy, page)
            }
        }
    }

    /// Starts a server on `database`, after the one that runs has been stopped.
    fn start<W: Write>(&mut self, database: &Path, page: &mut Page<W>) -> Result<(), Halt> {
        self.stop()?;
        let program = std::env::current_exe().map_err(|error| {
            StartError::failure(format!("cannot find this program to start it as a server: {error}"))
        })?;
        let arguments = ["--profile".into(), self.show.profile.into(), "--db".into(), database.into()];
        let server = self.server.insert(Client::start(&program, &arguments)?);
        page.sent("initialize", None)?;
        page.answered(server.greeting(), false, 1)
    }

    fn server(&mut self) -> Result<&mut Client, StartError> {
        self.server.as_mut().ok_or_else(|| StartError::failure("the demo has started no server yet"))
    }

    fn stop(&mut self) -> Result<(), StartError> {
        self.server.take().map_or(Ok(()), |server| server.stop().map(drop))
    }
}

/// The SHA-256 of a file, in hex.
fn fingerprint(path: &Path) -> Result<String, StartError> {
    let bytes = std::fs::read(path)
        .map_err(|error| StartError::failure(format!("cannot read `{}`: {error}", path.display())))?;
    Ok(crate::render::hex(&Sha256::digest(&bytes)))
}

/// What to do next.
fn close<W: Write>(show: &Show, kept: Option<&Path>, page: &mut Page<W>) -> Result<(), Halt> {
    page.headline("YOUR TURN")?;
    match kept {
        None => {
            page.paragraph("What the demo made is removed again. This keeps its database, to look into:")?;
            page.commands(&[show.again])?;
        }
        Some(database) => {
            page.paragraph(show.kept)?;
            let shown = quoted_for_shell(database);
            let commands: Vec<String> =
                show.look.iter().map(|command| command.replace("{db}", &shown)).collect();
            page.commands(&commands)?;
            let snapshots = default_folder(database);
            if snapshots.exists() {
                page.paragraph("The snapshot made before the deletion is in:")?;
                page.commands(&[quoted_for_shell(&snapshots)])?;
            }
        }
    }
    page.paragraph(
        "Give an agent of yours a database, once `indelible` is on your PATH (this line is for \
        Claude Code; other MCP clients are told the command behind the `--`):",
    )?;
    page.commands(&[show.connect])
}

fn quoted_for_shell(path: &Path) -> String {
    let path = path.display().to_string();
    if path.chars().all(|c| c.is_alphanumeric() || "/._-+,@%".contains(c)) {
        return path;
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}
