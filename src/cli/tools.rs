//! `indelible tools`: the tools that agents get, and whether the files that change them hold.
//!
//! It serves nothing and changes no file; statements are compiled where a database is named.

use super::{Program, output, runtime};
use crate::config::{self, RawArgs};
use crate::error::{EXIT_OK, StartError};
use crate::logging;
use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write;

/// How the tools are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ToolsFormat {
    /// A table for people
    Table,
    /// tools/list as clients get it, and the instructions
    Json,
    /// An overlay with everything in it, to start from
    Yaml,
}

/// What else to do with tools.
#[derive(Clone, Debug, Subcommand)]
pub(super) enum ToolsCommand {
    /// Check files for --tools without serving, and show what each tool costs
    #[command(after_help = "\
With --db the statements of tools made of SQL are compiled against that database; the file is left as it is.

Exit status 2 when something is wrong in the files.")]
    Check {
        /// The files, later wins
        #[arg(value_name = "FILE", required = true)]
        files: Vec<OsString>,
    },
}

/// What `tools` shows.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolsReport {
    /// The profile.
    pub profile: String,
    /// The tools in the order of tools/list.
    pub tools: Vec<ToolLine>,
    /// What an agent is told at the start.
    pub instructions: String,
    /// What is no mistake and yet worth a look, a line each.
    pub notes: Vec<String>,
    /// Statements of tools made of SQL: how many, and whether they were compiled.
    pub statements: (usize, bool),
    /// The tools as an overlay.
    pub yaml: String,
}

/// One tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolLine {
    /// The policy it runs under.
    pub policy: String,
    /// Whether it is made of SQL by an overlay.
    pub own: bool,
    /// As tools/list has it.
    pub descriptor: Value,
}

/// Runs the command.
///
/// # Errors
/// Everything that is wrong in the files or the settings; exit status 2.
pub(super) fn tools<P: Program>(
    program: &P,
    raw: &RawArgs,
    environment: impl Fn(&str) -> Option<OsString> + Copy,
    format: ToolsFormat,
    command: Option<ToolsCommand>,
) -> Result<u8, StartError> {
    let mut raw = raw.clone();
    let checked = command.map(|ToolsCommand::Check { files }| {
        raw.tools.extend(files.iter().cloned());
        files.len()
    });
    let (overlays, profile) = config::overlays(&raw, environment)?;
    let profiles = program.profiles(&overlays, profile.as_deref())?;
    let has_database = super::complete_place(&mut raw, &profiles, profile.as_deref(), environment);
    let settings = config::resolve(&raw, environment, &profiles)?;
    logging::start(settings.verbosity);
    let report = runtime::run(program.tools_report(&settings, has_database))?;
    let text = match (checked, format) {
        (Some(files), _) => verdict(&report, files),
        (None, ToolsFormat::Table) => table(&report),
        (None, ToolsFormat::Json) => json_text(&report)?,
        (None, ToolsFormat::Yaml) => report.yaml,
    };
    output::print(&text)?;
    Ok(EXIT_OK)
}

fn verdict(report: &ToolsReport, files: usize) -> String {
    let plural = if files == 1 { "" } else { "s" };
    format!(
        "ok: {files} file{plural}, profile {}, {} tools\n\n{}",
        report.profile,
        report.tools.len(),
        table(report)
    )
}

fn json_text(report: &ToolsReport) -> Result<String, StartError> {
    let tools: Vec<&Value> = report.tools.iter().map(|tool| &tool.descriptor).collect();
    let shown = json!({ "profile": report.profile, "instructions": report.instructions, "tools": tools });
    serde_json::to_string_pretty(&shown).map_err(|error| StartError::failure(error.to_string()))
}

fn table(report: &ToolsReport) -> String {
    let heads = ["tool", "policy", "hints", "from", "bytes", "tokens*", "title"].map(str::to_owned);
    let mut rows = vec![heads.to_vec()];
    let mut all = 0;
    for tool in &report.tools {
        let text =
            |key: &str| tool.descriptor.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let bytes = tool.descriptor.to_string().len();
        all += bytes + 1;
        rows.push(vec![
            text("name"),
            tool.policy.clone(),
            hints(&tool.descriptor).to_owned(),
            if tool.own { "overlay" } else { "built in" }.to_owned(),
            bytes.to_string(),
            bytes.div_ceil(4).to_string(),
            text("title"),
        ]);
    }
    let mut out = aligned(&rows);
    // {"tools":[...]} with a comma less than tools.
    let list = all + 11;
    let instructions = report.instructions.len();
    let lines = [
        format!("tools/list: {list} bytes, about {} tokens*", list.div_ceil(4)),
        format!("instructions: {instructions} bytes, about {} tokens*", instructions.div_ceil(4)),
        "* an estimate: bytes / 4".to_owned(),
    ];
    out.push('\n');
    for line in lines {
        let _ = writeln!(out, "{line}");
    }
    if let (count @ 1.., false) = report.statements {
        let _ = writeln!(out, "statements not compiled: {count}; give --db to compile them");
    }
    for note in &report.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

fn hints(descriptor: &Value) -> &'static str {
    let hint = |name: &str| {
        descriptor.get("annotations").and_then(|hints| hints.get(name)).and_then(Value::as_bool) == Some(true)
    };
    match (hint("readOnlyHint"), hint("destructiveHint")) {
        (true, _) => "only reads",
        (false, true) => "destructive",
        (false, false) => "writes",
    }
}

/// Columns as wide as their widest cell, numbers to the right, nothing behind the last.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let number = !cell.is_empty() && cell.chars().all(|c| c.is_ascii_digit());
            let _ = if number { write!(line, "{cell:>width$}  ") } else { write!(line, "{cell:<width$}  ") };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_the_list_is_that_of_its_compact_json() {
        let descriptor = json!({"name": "t", "title": "T", "annotations": {"readOnlyHint": true}});
        let line = ToolLine { policy: "read".to_owned(), own: false, descriptor: descriptor.clone() };
        let report = ToolsReport {
            profile: "memory".to_owned(),
            tools: vec![line.clone(), line],
            instructions: "Look.".to_owned(),
            notes: vec!["a.yaml:1:1: x".to_owned()],
            statements: (1, false),
            yaml: String::new(),
        };
        let bytes = json!({"tools": [descriptor.clone(), descriptor]}).to_string().len();
        let text = table(&report);
        assert!(
            text.contains(&format!("tools/list: {bytes} bytes, about {} tokens*", bytes.div_ceil(4))),
            "{text}"
        );
        assert!(text.contains("\nt     read    only reads  built in     60       15  T\n"), "{text}");
        assert!(
            text.ends_with("statements not compiled: 1; give --db to compile them\nnote: a.yaml:1:1: x\n"),
            "{text}"
        );
    }
}
