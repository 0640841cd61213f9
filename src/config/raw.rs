//! The flags as given: clap splits the command line and nothing more.
//!
//! Values stay strings and the environment is not read here, so that every message about a bad value
//! is one line of our own that names where it came from.

use clap::{ArgAction, Args};
use std::ffi::OsString;

/// Flags that hold for serving and for every command that opens a database.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Settings")]
pub struct RawArgs {
    /// The SQLite file to serve; created with its folders if absent, but for profiles that only read [INDELIBLE_DB]
    #[arg(long, value_name = "PATH", global = true)]
    pub db: Option<OsString>,

    /// The set of tools to offer: memory, explorer or primitives [default: memory] [INDELIBLE_PROFILE]
    #[arg(long, value_name = "NAME", global = true)]
    pub profile: Option<String>,

    /// Folder in which primitives are kept; made if absent; only for the profile primitives [INDELIBLE_DATA]
    #[arg(long, value_name = "DIR", global = true)]
    pub data: Option<OsString>,

    /// The group of primitives to serve, made if absent; over HTTP all of them without it [INDELIBLE_GROUP]
    #[arg(long, value_name = "NAME", global = true)]
    pub group: Option<String>,

    /// Folder with model.onnx and tokenizer.json, so that memories are recalled by meaning, too; only for the profile
    /// primitives [INDELIBLE_EMBEDDING_MODEL]
    #[arg(long, value_name = "DIR", global = true)]
    pub embedding_model: Option<OsString>,

    /// File that changes the tools: other words, fewer tools, tools made of SQL; repeatable, later wins
    /// [INDELIBLE_TOOLS: paths separated as in PATH]
    #[arg(long, value_name = "FILE", global = true)]
    pub tools: Vec<OsString>,

    /// Offer only the tools that read, and write nothing to the file, audit rows included [INDELIBLE_READ_ONLY]
    #[arg(long, global = true)]
    pub read_only: bool,

    /// Read a file that nobody writes while it is served, without locks; only for profiles that only read.
    /// Without it, SQLite makes -wal and -shm beside a file in WAL mode by itself [INDELIBLE_IMMUTABLE]
    #[arg(long, global = true)]
    pub immutable: bool,

    /// Seconds a statement may run, decimals allowed [default: 10, explorer 5] [INDELIBLE_QUERY_TIMEOUT]
    #[arg(long, value_name = "SECONDS", global = true, allow_negative_numbers = true)]
    pub query_timeout: Option<String>,

    /// The same in milliseconds [INDELIBLE_TIMEOUT_MS]
    #[arg(long, value_name = "MILLISECONDS", global = true, allow_negative_numbers = true)]
    pub timeout_ms: Option<String>,

    /// Seconds to wait for another process's lock, decimals allowed [default: 5] [INDELIBLE_BUSY_TIMEOUT]
    #[arg(long, value_name = "SECONDS", global = true, allow_negative_numbers = true)]
    pub busy_timeout: Option<String>,

    /// Rows a call returns when it names no limit; at most --max-rows [default: 100, explorer 50] [also --default-rows] [INDELIBLE_DEFAULT_LIMIT]
    #[arg(long, alias = "default-rows", value_name = "ROWS", global = true, allow_negative_numbers = true)]
    pub default_limit: Option<String>,

    /// Rows a call may ask for; below 100 it lowers the default limit too [default: 1000, explorer 500] [INDELIBLE_MAX_ROWS]
    #[arg(long, value_name = "ROWS", global = true, allow_negative_numbers = true)]
    pub max_rows: Option<String>,

    /// Bytes of text a result may have, its trailer aside [default: 32768, explorer 65536] [also --max-output-bytes] [INDELIBLE_MAX_RESULT_BYTES]
    #[arg(
        long,
        alias = "max-output-bytes",
        value_name = "BYTES",
        global = true,
        allow_negative_numbers = true
    )]
    pub max_result_bytes: Option<String>,

    /// Characters shown of one cell [default: 2000, explorer 1000] [INDELIBLE_MAX_CELL_CHARS]
    #[arg(long, value_name = "CHARS", global = true, allow_negative_numbers = true)]
    pub max_cell_chars: Option<String>,

    /// Existing rows one write may overwrite before it is rolled back [default: 500] [INDELIBLE_MAX_UPDATE_ROWS]
    #[arg(long, value_name = "ROWS", global = true, allow_negative_numbers = true)]
    pub max_update_rows: Option<String>,

    /// Rows a text search may look at; 0 is no bound [default: 0] [INDELIBLE_SEARCH_CANDIDATES]
    #[arg(long, value_name = "ROWS", global = true, allow_negative_numbers = true)]
    pub search_candidates: Option<String>,

    /// Automatic snapshots to keep; 0 makes none [default: 5] [INDELIBLE_SNAPSHOTS]
    #[arg(long, value_name = "COUNT", global = true, allow_negative_numbers = true)]
    pub snapshots: Option<String>,

    /// Before which calls to ask the person at the client: none or destructive [default: none] [INDELIBLE_CONFIRM]
    #[arg(long, value_name = "WHICH", global = true)]
    pub confirm: Option<String>,

    /// Folder for snapshots [default: the database's path with `.snapshots` added] [INDELIBLE_SNAPSHOT_DIR]
    #[arg(long, value_name = "DIR", global = true)]
    pub snapshot_dir: Option<OsString>,

    /// How much of query_log stays in the database: rows, or days as in 90d. What is older goes into files beside it,
    /// which the chain vouches for [default: all] [INDELIBLE_AUDIT_KEEP]
    #[arg(long, value_name = "ROWS|DAYSd", global = true, allow_negative_numbers = true)]
    pub audit_keep: Option<String>,

    /// File to which every call is added as a line of JSON [INDELIBLE_AUDIT_LOG]
    #[arg(long, value_name = "FILE", global = true)]
    pub audit_log: Option<OsString>,

    /// YAML file that narrows what the policies allow: protects, hides, refuses, lowers limits [INDELIBLE_POLICY]
    #[arg(long, value_name = "FILE", global = true)]
    pub policy: Option<OsString>,

    /// Say more on stderr; twice for still more [INDELIBLE_VERBOSE: 0, 1 or 2]
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub verbose: u8,
}
