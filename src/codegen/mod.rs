//! From the checked manifest and policy to the texts that the build writes and the goldens hold.
//!
//! Used by build.rs and by tests, never at run time. Templates print and do not decide; what they print is
//! prepared in `context.rs`. It writes no file.

mod context;

use crate::spec::Checked;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value};

/// A text to write and its file name.
#[derive(Clone, Debug)]
pub struct Output {
    /// `generated.rs`.
    pub name: &'static str,
    /// The whole text.
    pub text: String,
}

/// The texts of both files, for the digests.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    /// tools.yaml.
    pub tools: &'a str,
    /// policy.yaml.
    pub policy: &'a str,
}

/// What goes to OUT_DIR: `generated.rs`, a dispatch for each root of handlers, and `manifest.json`.
///
/// # Errors
///
/// One line: a template that does not render.
pub fn build_outputs(checked: &Checked, texts: Texts<'_>) -> Result<Vec<Output>, String> {
    let context = context::rust(checked, texts);
    let manifest = serde_json::to_string(&checked.manifest).map_err(|error| error.to_string())?;
    Ok(vec![
        Output { name: "generated.rs", text: render("generated.rs.j2", &context)? },
        Output {
            name: "dispatch.rs",
            text: render("dispatch.rs.j2", &context::under(&context, "handlers"))?,
        },
        Output {
            name: "dispatch_group.rs",
            text: render("dispatch.rs.j2", &context::under(&context, "primitives"))?,
        },
        Output { name: "manifest.json", text: manifest },
    ])
}

/// The readable pages: `TOOLS.md`, `POLICY.md` and `ERRORS.md`.
///
/// # Errors
///
/// One line: a template that does not render.
pub fn pages(checked: &Checked) -> Result<Vec<Output>, String> {
    Ok(vec![
        Output { name: "TOOLS.md", text: render("TOOLS.md.j2", &context::tools_page(checked)?)? },
        Output { name: "POLICY.md", text: render("POLICY.md.j2", &context::policy_page(checked))? },
        Output { name: "ERRORS.md", text: render("ERRORS.md.j2", &context::errors_page(checked))? },
    ])
}

fn render(name: &str, context: &serde_json::Value) -> Result<String, String> {
    let templates = [
        ("generated.rs.j2", include_str!("../../templates/build/generated.rs.j2")),
        ("dispatch.rs.j2", include_str!("../../templates/build/dispatch.rs.j2")),
        ("TOOLS.md.j2", include_str!("../../templates/build/TOOLS.md.j2")),
        ("POLICY.md.j2", include_str!("../../templates/build/POLICY.md.j2")),
        ("ERRORS.md.j2", include_str!("../../templates/build/ERRORS.md.j2")),
    ];
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Names end in .j2, so nothing is escaped as HTML; quoting for Rust and Markdown are these filters.
    environment.add_filter("literal", rust_literal);
    environment.add_filter("cell", |text: String| text.replace('|', "\\|").replace('\n', "<br>"));
    for (name, source) in templates {
        environment.add_template(name, source).map_err(|error| said(name, &error))?;
    }
    let template = environment.get_template(name).map_err(|error| said(name, &error))?;
    let text = template.render(Serde(context)).map_err(|error| said(name, &error))?;
    Ok(format!("{}\n", text.trim_end()))
}

/// A string or a bool as Rust writes it.
fn rust_literal(value: &Value) -> String {
    match value.as_str() {
        Some(text) => format!("{text:?}"),
        None => value.to_string().to_lowercase(),
    }
}

fn said(name: &str, error: &minijinja::Error) -> String {
    format!("templates/build/{name}: {error:#}").replace('\n', " ")
}
