//! list_tables, describe_table, get_schema: what the database looks like.
//!
//! A worker reads the catalog; here it becomes CSV sections, in `structured` data and Markdown.

use super::{Call, Reply, structured, unexpected_answer};
use crate::error::ToolError;
use crate::render::trailer::RowCut;
use crate::render::{Caps, Cell, CsvSink, cap_block, write_field};
use crate::spec::model::Format;
use crate::sqlite::introspect::{Column, Definition, ForeignKey, Index, TableDescription, TableEntry};
use crate::worker::protocol::{Answer, Work};

/// Arguments of [`list_tables`].
pub struct ListTablesInput {
    /// Whether to count rows.
    pub include_row_counts: bool,
}

/// Arguments of [`describe_table`].
pub struct DescribeTableInput {
    /// The table or view.
    pub table: String,
}

/// Arguments of [`get_schema`].
pub struct GetSchemaInput {
    /// Whether to include the server's own objects.
    pub include_system: bool,
}

/// Tables and views with kind, owner and row count.
///
/// # Errors
/// As the worker says.
pub async fn list_tables(call: &Call<'_>, input: ListTablesInput) -> Result<Reply, ToolError> {
    call.note("include_row_counts", input.include_row_counts);
    if input.include_row_counts {
        // query_log is counted, too.
        call.write_log().await;
    }
    match call.read(Work::Tables { counts: input.include_row_counts }).await? {
        Answer::Tables(tables) => match call.format() {
            Format::Csv => Ok(tables_as_csv(&tables, call.caps())),
            Format::Structured => structured::tables(call, tables),
        },
        _ => Err(unexpected_answer()),
    }
}

/// Columns, foreign keys and indexes of one table or view.
///
/// # Errors
/// As the worker says.
pub async fn describe_table(call: &Call<'_>, input: DescribeTableInput) -> Result<Reply, ToolError> {
    call.note("table", input.table.as_str());
    // The count belongs to the structured result alone.
    let count = call.format() == Format::Structured;
    match call.read(Work::Describe { table: input.table, count }).await? {
        Answer::Described(table) => match call.format() {
            Format::Csv => Ok(description_as_csv(&table, call.caps())),
            Format::Structured => structured::description(call, *table),
        },
        _ => Err(unexpected_answer()),
    }
}

/// All definitions as stored.
///
/// # Errors
/// As the worker says.
pub async fn get_schema(call: &Call<'_>, input: GetSchemaInput) -> Result<Reply, ToolError> {
    call.note("include_system", input.include_system);
    let max_bytes = call.limits().max_result_bytes;
    match call.read(Work::Definitions { include_system: input.include_system, max_bytes }).await? {
        Answer::Definitions(schema) => {
            let text = as_sql(&schema.definitions);
            let shown = u64::try_from(schema.definitions.len()).ok();
            if schema.cut {
                return Ok(Reply::text(cap_block(text, call.caps().max_result_bytes), shown));
            }
            let hidden = match (input.include_system, schema.hidden) {
                (false, n) if n > 0 => {
                    format!("; {n} of the server's own hidden (include_system: true shows them)")
                }
                _ => String::new(),
            };
            let trailer = format!("# {} objects{hidden}", schema.definitions.len());
            let (mut text, cut) = crate::render::cap_text(text, call.caps().max_result_bytes);
            if cut {
                text.push_str(&format!("\n# cut at {} bytes", call.caps().max_result_bytes));
            } else {
                text.push_str(&trailer);
            }
            Ok(Reply::text(text, shown))
        }
        _ => Err(unexpected_answer()),
    }
}

/// Definitions as one SQL text, each with its terminator and an empty line.
#[must_use]
pub fn as_sql(definitions: &[Definition]) -> String {
    let mut text = String::new();
    for definition in definitions {
        text.push_str(&definition.sql);
        // A terminator behind a comment would be part of it.
        let in_comment = definition.sql.lines().next_back().is_some_and(|line| line.contains("--"));
        text.push_str(if in_comment { "\n;\n\n" } else { ";\n\n" });
    }
    text
}

fn tables_as_csv(tables: &[TableEntry], caps: Caps) -> Reply {
    let mut sink = CsvSink::new(&["name", "type", "system", "rows"], caps);
    for table in tables {
        if sink.is_full() {
            break;
        }
        sink.begin_row();
        sink.cell(Cell::Text(table.name.as_bytes()));
        sink.cell(Cell::Text(if table.view { b"view" } else { b"table" }));
        sink.cell(Cell::Integer(i64::from(table.system)));
        sink.cell(
            table.rows.map_or(Cell::Null, |rows| Cell::Integer(i64::try_from(rows).unwrap_or(i64::MAX))),
        );
        sink.end_row();
    }
    let rendered = sink.finish(RowCut::None);
    Reply::text(rendered.text, Some(rendered.rows))
}

fn description_as_csv(table: &TableDescription, caps: Caps) -> Reply {
    let mut text = String::from("# columns\n");
    columns_section(&mut text, &table.columns);
    text.push_str("\n# foreign_keys\n");
    keys_section(&mut text, &table.foreign_keys);
    text.push_str("\n# indexes\n");
    indexes_section(&mut text, &table.indexes);
    let text = cap_block(text.trim_end_matches('\n'), caps.max_result_bytes);
    Reply::text(text, u64::try_from(table.columns.len()).ok())
}

fn columns_section(text: &mut String, columns: &[Column]) {
    let hidden = columns.iter().any(|column| column.hidden != 0);
    text.push_str("cid,name,type,notnull,default,pk");
    text.push_str(if hidden { ",hidden\n" } else { "\n" });
    for column in columns {
        let mut row = Row::new(text);
        row.field(&column.cid.to_string());
        row.field(&column.name);
        row.field(&column.declared_type);
        row.field(if column.not_null { "1" } else { "0" });
        row.field(column.default.as_deref().unwrap_or_default());
        row.field(&column.primary_key.to_string());
        if hidden {
            row.field(match column.hidden {
                0 => "0",
                1 => "hidden",
                2 => "generated virtual",
                _ => "generated stored",
            });
        }
        row.end();
    }
}

fn keys_section(text: &mut String, keys: &[ForeignKey]) {
    let acts = keys.iter().any(|key| key.on_update != "NO ACTION" || key.on_delete != "NO ACTION");
    text.push_str("from,to_table,to_column");
    text.push_str(if acts { ",on_update,on_delete\n" } else { "\n" });
    for key in keys {
        let to: Vec<&str> = key.to.iter().map(|column| column.as_deref().unwrap_or_default()).collect();
        let mut row = Row::new(text);
        row.field(&key.from.join(","));
        row.field(&key.table);
        row.field(&to.join(","));
        if acts {
            row.field(&key.on_update);
            row.field(&key.on_delete);
        }
        row.end();
    }
}

fn indexes_section(text: &mut String, indexes: &[Index]) {
    let partial = indexes.iter().any(|index| index.partial);
    text.push_str("name,unique,origin,columns");
    text.push_str(if partial { ",partial\n" } else { "\n" });
    for index in indexes {
        let columns: Vec<&str> =
            index.columns.iter().map(|column| column.as_deref().unwrap_or("<expr>")).collect();
        let mut row = Row::new(text);
        row.field(&index.name);
        row.field(if index.unique { "1" } else { "0" });
        row.field(&index.origin);
        row.field(&columns.join(","));
        if partial {
            row.field(if index.partial { "1" } else { "0" });
        }
        row.end();
    }
}

/// Fields of one line, commas between.
struct Row<'t> {
    text: &'t mut String,
    first: bool,
}

impl<'t> Row<'t> {
    fn new(text: &'t mut String) -> Self {
        Self { text, first: true }
    }

    fn field(&mut self, value: &str) {
        if !self.first {
            self.text.push(',');
        }
        write_field(self.text, value, self.first);
        self.first = false;
    }

    fn end(self) {
        self.text.push('\n');
    }
}
