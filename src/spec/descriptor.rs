//! From a tool's words and parameters to what a client sees: the MCP Tool object, and a profile's
//! instructions.
//!
//! The build uses it for budgets and goldens, the runtime for tools/list. It decides no wording: that is
//! tools.yaml's, and `templates/build/description.j2` says how the parts stand together.

use super::model::{ParamSpec, ParamType, ToolSpec};
use super::settings::{SurfaceSettings, setting_in_braces};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde_json::{Map, Value, json};

/// How the parts of a description stand together.
const DESCRIPTION: &str = include_str!("../../templates/build/description.j2");

/// What words may depend on: the active settings and tools.
#[derive(Clone, Debug)]
pub struct Context {
    settings: Map<String, Value>,
    values: Map<String, Value>,
}

impl Context {
    /// `tools` are the names of the active tools; `read_only` is whether only reading ones are active.
    #[must_use]
    pub fn new(settings: &SurfaceSettings, tools: &[&str], read_only: bool) -> Self {
        let settings = settings.to_map();
        let mut values = settings.clone();
        values.insert("tools".to_owned(), json!(tools));
        values.insert("read_only".to_owned(), json!(read_only));
        Self { settings, values }
    }

    /// Gives a name to a value besides: an argument of a prompt; none where it is left out.
    pub fn set(&mut self, name: &str, value: Option<String>) {
        self.values.insert(name.to_owned(), json!(value));
    }

    /// The names of the settings.
    #[must_use]
    pub fn setting_names(&self) -> Vec<&str> {
        self.settings.keys().map(String::as_str).collect()
    }

    /// Every name that a template may use.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.values.keys().map(String::as_str).collect()
    }

    /// A bound or default with its setting filled in; other values as they are.
    #[must_use]
    pub fn resolve(&self, value: &Value) -> Value {
        let setting = value.as_str().and_then(setting_in_braces).and_then(|name| self.settings.get(name));
        setting.unwrap_or(value).clone()
    }

    /// The parameter's maximum with its setting filled in; the lower one where an overlay narrowed it.
    #[must_use]
    pub fn maximum_of(&self, param: &ParamSpec) -> Option<Value> {
        let most = self.resolve(param.maximum.as_ref()?);
        let ceiling = param.ceiling.as_ref().and_then(|value| self.resolve(value).as_u64());
        match (most.as_u64(), ceiling) {
            (Some(most), Some(ceiling)) => Some(json!(most.min(ceiling))),
            _ => Some(most),
        }
    }

    /// The parameter's default with its setting filled in, and not above a maximum that settings lowered.
    #[must_use]
    pub fn default_of(&self, param: &ParamSpec) -> Option<Value> {
        let default = self.resolve(param.default.as_ref()?);
        let most = self.maximum_of(param);
        match (default.as_u64(), most.and_then(|most| most.as_u64())) {
            (Some(usual), Some(most)) => Some(json!(usual.min(most))),
            _ => Some(default),
        }
    }
}

/// Renders templates over one context.
#[derive(Debug)]
pub struct Renderer<'a> {
    environment: Environment<'static>,
    context: &'a Context,
}

impl<'a> Renderer<'a> {
    /// A renderer in which an unknown name is an error.
    #[must_use]
    pub fn new(context: &'a Context) -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // A line that holds nothing but `{% if ... %}` leaves no empty line behind.
        environment.add_filter("quoted", |text: String| json!(text).to_string());
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true);
        if let Ok(syntax) = syntax.build() {
            environment.set_syntax(syntax);
        }
        Self { environment, context }
    }

    /// The text with its settings filled in.
    ///
    /// # Errors
    ///
    /// One line that says what is wrong with the template.
    pub fn text(&self, template: &str) -> Result<String, String> {
        if !template.contains("{{") && !template.contains("{%") && !template.contains("{#") {
            return Ok(template.trim().to_owned());
        }
        let compiled = self.environment.template_from_str(template).map_err(|error| words(&error))?;
        let known = self.context.names();
        let mut unknown: Vec<String> = compiled
            .undeclared_variables(false)
            .into_iter()
            .filter(|name| !known.contains(&name.as_str()))
            .collect();
        unknown.sort();
        if let Some(name) = unknown.first() {
            return Err(format!("unknown setting `{name}`{}", super::diagnostic::suggestion(name, &known)));
        }
        let text = compiled.render(Serde(&self.context.values)).map_err(|error| words(&error))?;
        Ok(text.trim().to_owned())
    }

    /// The composed description of a tool.
    ///
    /// # Errors
    ///
    /// One line that says what is wrong with a template.
    pub fn description(&self, tool: &ToolSpec) -> Result<String, String> {
        let words_of = &tool.words;
        let parts = json!({
            "purpose": self.text(&words_of.purpose)?,
            "use": self.text(&words_of.usage)?,
            "returns": self.text(&words_of.returns)?,
            "refuses": self.text(&words_of.refuses)?,
            "effects": self.text(&words_of.effects)?,
        });
        let text = self.environment.render_str(DESCRIPTION, Serde(&parts)).map_err(|error| words(&error))?;
        Ok(text.trim().to_owned())
    }

    /// The MCP Tool object: name, title, description, inputSchema, outputSchema if there is one, annotations,
    /// in this order.
    ///
    /// # Errors
    ///
    /// One line that says what is wrong with a template.
    pub fn descriptor(&self, tool: &ToolSpec, output: Option<Value>) -> Result<Value, String> {
        let mut descriptor = Map::new();
        descriptor.insert("name".to_owned(), json!(tool.name));
        descriptor.insert("title".to_owned(), json!(tool.title));
        descriptor.insert("description".to_owned(), json!(self.description(tool)?));
        descriptor.insert("inputSchema".to_owned(), self.input_schema(tool)?);
        if let Some(output) = output {
            descriptor.insert("outputSchema".to_owned(), output);
        }
        let hints = json!({
            "readOnlyHint": tool.annotations.read_only,
            "destructiveHint": tool.annotations.destructive,
            "idempotentHint": tool.annotations.idempotent,
            "openWorldHint": tool.annotations.open_world,
        });
        descriptor.insert("annotations".to_owned(), hints);
        Ok(Value::Object(descriptor))
    }

    fn input_schema(&self, tool: &ToolSpec) -> Result<Value, String> {
        let mut properties = Map::new();
        for param in &tool.params {
            properties.insert(param.name.clone(), self.property(param)?);
        }
        let required: Vec<&str> =
            tool.params.iter().filter(|p| p.required).map(|p| p.name.as_str()).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        schema.insert("additionalProperties".to_owned(), json!(false));
        Ok(Value::Object(schema))
    }

    fn property(&self, param: &ParamSpec) -> Result<Value, String> {
        let mut property = Map::new();
        if let Some(name) = param.kind.schema_name() {
            property.insert("type".to_owned(), json!(name));
        }
        let mut rules = Map::new();
        if let Some(item) = param.kind.item().and_then(ParamType::schema_name) {
            rules.insert("type".to_owned(), json!(item));
        }
        let limits = [
            ("minimum", param.minimum.as_ref().map(|value| self.context.resolve(value))),
            ("maximum", self.context.maximum_of(param)),
            ("enum", (!param.choices.is_empty()).then(|| json!(param.choices))),
            ("pattern", param.pattern.as_ref().map(|pattern| json!(pattern))),
        ];
        rules.extend(limits.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        if param.kind.item().is_some() {
            property.insert("items".to_owned(), Value::Object(std::mem::take(&mut rules)));
        }
        property.insert("description".to_owned(), json!(self.text(&param.description)?));
        property.append(&mut rules);
        if let Some(default) = self.context.default_of(param) {
            property.insert("default".to_owned(), default);
        }
        Ok(Value::Object(property))
    }
}

/// The template engine's words on one line.
fn words(error: &minijinja::Error) -> String {
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("bad template: {}{detail}", error.kind()).replace('\n', " ")
}
