//! `indelible bundle`: an MCP bundle (`.mcpb`), which desktop apps install by opening it.
//!
//! A zip archive with `manifest.json` and this very program, after version 0.3 of the specification
//! (<https://github.com/modelcontextprotocol/mcpb/blob/main/MANIFEST.md>): the version that it calls current, and
//! that apps which know a newer one accept too. It signs nothing and reads no database.

use crate::error::StartError;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use zip::write::{SimpleFileOptions, ZipWriter};
use zip::{CompressionMethod, DateTime};

/// Where the program lies in the archive.
const PROGRAM: &str = "server/indelible";

/// What a bundle is made of.
#[derive(Clone, Debug)]
pub struct Bundle<'a> {
    /// The program.
    pub program: &'a Path,
    /// The tools, as in tools/list.
    pub tools: &'a [Value],
    /// Arguments beside `--db`, such as `--profile explorer`.
    pub arguments: &'a [String],
    /// The path that the app suggests for the database.
    pub database: &'a str,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Where.
    pub path: PathBuf,
    /// How much.
    pub bytes: u64,
}

/// Writes the bundle, in place of an older one if there is one.
///
/// # Errors
/// The name does not end in `.mcpb` (exit status 2), or the file system's (1); what was there is then untouched.
pub fn write(bundle: &Bundle<'_>, out: &Path) -> Result<Written, StartError> {
    if out.extension().is_none_or(|ending| ending != "mcpb") {
        let shown = out.display();
        return Err(StartError::usage(format!("--out `{shown}`: must end in `.mcpb`, or no app opens it")));
    }
    let failed = |error: &dyn std::fmt::Display| {
        StartError::failure(format!("cannot write the bundle `{}`: {error}", out.display()))
    };
    let out = std::path::absolute(out).map_err(|error| failed(&error))?;
    let temporary = Temporary(out.with_extension(format!("mcpb-{}", uuid::Uuid::new_v4().simple())));
    let file = File::create_new(&temporary.0).map_err(|error| failed(&error))?;
    let bytes = archive(bundle, file).map_err(|error| failed(&error))?;
    std::fs::rename(&temporary.0, &out).map_err(|error| failed(&error))?;
    Ok(Written { path: out, bytes })
}

/// The manifest: the app asks for the database's path and starts the program with it.
#[must_use]
pub fn manifest(bundle: &Bundle<'_>) -> Value {
    let platform = match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    };
    let mut arguments = vec![json!("--db"), json!("${user_config.database}")];
    arguments.extend(bundle.arguments.iter().map(|argument| json!(argument)));
    let tool = |tool: &Value| {
        // Apps show this to people; the description is for agents, and long.
        let title = tool.get("title").or_else(|| tool.pointer("/annotations/title"));
        json!({"name": tool.get("name"), "description": title.or_else(|| tool.get("name"))})
    };
    json!({
        "manifest_version": "0.3",
        "name": "indelible",
        "display_name": "Indelible",
        "version": env!("CARGO_PKG_VERSION"),
        "description": env!("CARGO_PKG_DESCRIPTION"),
        "long_description": format!(
            "Reads cannot write, writes cannot delete, a deletion runs only behind a snapshot, and every call is \
             logged. The memory is a hash-chained list of events and checkpoints in the same file. \
             This bundle holds the program for {platform} on {}.",
            std::env::consts::ARCH
        ),
        "author": {"name": "The Indelible contributors"},
        "license": env!("CARGO_PKG_LICENSE"),
        "keywords": ["sqlite", "memory", "audit"],
        "server": {
            "type": "binary",
            "entry_point": PROGRAM,
            "mcp_config": {
                "command": format!("${{__dirname}}/{PROGRAM}"),
                "args": arguments,
                "env": {},
            },
        },
        "tools": bundle.tools.iter().map(tool).collect::<Vec<_>>(),
        "user_config": {
            // A text, not a file picker: a picker offers only files that are there, and the server makes new ones.
            "database": {
                "type": "string",
                "title": "Database",
                "description": "Path of the SQLite file; made if it is not there. ~ is your home folder.",
                "default": bundle.database,
                "required": true,
            },
        },
        "compatibility": {"platforms": [platform]},
    })
}

fn archive(bundle: &Bundle<'_>, file: File) -> io::Result<u64> {
    let mut program = File::open(bundle.program)?;
    // The same program and settings give the same bytes.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default());
    let mut zip = ZipWriter::new(BufWriter::new(file));
    zip.start_file("manifest.json", options.unix_permissions(0o644))?;
    zip.write_all(serde_json::to_string_pretty(&manifest(bundle))?.as_bytes())?;
    zip.start_file(PROGRAM, options.unix_permissions(0o755))?;
    io::copy(&mut program, &mut zip)?;
    let file = zip.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

/// Removed when dropped; after the rename there is nothing under this name.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
