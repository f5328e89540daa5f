//! Tools with argument and output types of their own.

use crate::{Args, IntoToolOutput, Prepared, Tool, ToolCtx, ToolFuture, schema};
use haft_core::{Footprint, IsolationLevel, Parameters, ToolDefinition, ToolError, port::BoxFuture};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::{future::Future, sync::Arc, time::Duration};

/// A tool whose schemas come from Rust types.
///
/// ```
/// use haft_sdk::{ToolCtx, ToolDefinition, ToolError, TypedTool, typed, Tool};
///
/// struct Greet { greeting: String }
///
/// /// Greets somebody.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct GreetArgs {
///     /// Whom to greet.
///     name: String,
/// }
///
/// impl TypedTool for Greet {
///     const NAME: &'static str = "greet";
///     type Args = GreetArgs;
///     type Output = String;
///
///     fn define(&self, definition: &mut ToolDefinition) {
///         definition.constraints.allow_side_effects = false;
///     }
///
///     async fn call(&self, args: GreetArgs, _cx: ToolCtx) -> Result<String, ToolError> {
///         Ok(format!("{}, {}!", self.greeting, args.name))
///     }
/// }
///
/// let tool = typed(Greet { greeting: "Hello".into() });
/// assert_eq!(tool.definition().description, "Greets somebody.");
/// ```
pub trait TypedTool: Send + Sync + Sized + 'static {
    /// The name of the tool.
    const NAME: &'static str;
    /// Its arguments. The type's doc comment becomes the description, each field's that of a parameter.
    type Args: DeserializeOwned + JsonSchema + Send + Sync + 'static;
    /// What it returns.
    type Output: IntoToolOutput;

    /// Adds to the definition what the types cannot say.
    fn define(&self, _definition: &mut ToolDefinition) {}

    /// Whether it can start itself again in a jail; see [`Tool::works_in_jail`].
    fn works_in_jail(&self) -> bool {
        false
    }

    /// Whether it does nothing itself and only makes calls; see [`Tool::only_calls`].
    fn only_calls(&self) -> bool {
        false
    }

    /// Looks at arguments that fit the schema, and refuses those that make no sense together. Pure: no I/O.
    fn check(&self, _args: &Self::Args) -> Result<(), ToolError> {
        Ok(())
    }

    /// Why a person must agree to this very call, whatever is allowed in general.
    fn confirm(&self, _args: &Self::Args) -> Option<String> {
        None
    }

    /// The deadline that this very call asks for, as one of its arguments, say. A deadline that the caller set counts
    /// more.
    fn timeout(&self, _args: &Self::Args) -> Option<Duration> {
        None
    }

    /// Whether all that a call changes is changed by one program that runs to its end: only then can its writes be kept
    /// apart, and be decided about when it has ended.
    fn stages(&self, _args: &Self::Args) -> bool {
        false
    }

    /// What a call would read and write; `None` where it cannot say, which keeps it apart from all others.
    fn footprint(&self, _args: &Self::Args) -> Option<Footprint> {
        None
    }

    /// What a call would do, in one line for a person; by default the name with the arguments.
    fn summary(&self, _args: &Self::Args) -> Option<String> {
        None
    }

    /// A look at what a call would change, such as a diff, for the person who is asked. It may read, never write.
    fn preview(
        &self,
        _args: &Self::Args,
        _cx: ToolCtx,
    ) -> Option<BoxFuture<'static, Result<String, ToolError>>> {
        None
    }

    /// Runs a call.
    fn call(
        &self,
        args: Self::Args,
        cx: ToolCtx,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// A typed tool, ready to be registered.
pub struct Typed<T> {
    definition: Arc<ToolDefinition>,
    tool: Arc<T>,
}

/// Makes a tool of a typed one.
pub fn typed<T: TypedTool>(tool: T) -> Typed<T> {
    typed_with(tool, |_| {})
}

/// Makes a tool of a typed one, with something added to what it says about itself.
///
/// ```
/// # use haft_sdk::{Tool, ToolCtx, ToolError, TypedTool, typed_with};
/// # struct Greet;
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct GreetArgs {}
/// # impl TypedTool for Greet {
/// #     const NAME: &'static str = "greet";
/// #     type Args = GreetArgs;
/// #     type Output = String;
/// #     async fn call(&self, _: GreetArgs, _: ToolCtx) -> Result<String, ToolError> { Ok(String::new()) }
/// # }
/// let tool = typed_with(Greet, |definition| definition.aliases.push("hello".to_owned()));
/// assert_eq!(tool.definition().aliases, ["hello"]);
/// ```
pub fn typed_with<T: TypedTool>(tool: T, more: impl FnOnce(&mut ToolDefinition)) -> Typed<T> {
    let mut definition = definition_of::<T::Args, T::Output>(T::NAME);
    tool.define(&mut definition);
    more(&mut definition);
    Typed { definition: Arc::new(definition), tool: Arc::new(tool) }
}

/// The definition that the types alone give. Code that is linked in runs in haft's own process.
pub(crate) fn definition_of<A: JsonSchema, O: IntoToolOutput>(name: &str) -> ToolDefinition {
    let (parameters, description) = schema::of_args::<A>();
    let mut definition = ToolDefinition::new(name, description);
    definition.parameters = Parameters::Schema(parameters);
    definition.output_schema = O::output_schema();
    definition.constraints.required_isolation = IsolationLevel::None;
    definition
}

/// The typed arguments of a call. The schema was checked before, so this fails only where a type is stricter.
pub(crate) fn read_args<A: DeserializeOwned>(args: &Args) -> Result<A, ToolError> {
    A::deserialize(&args.value).map_err(|error| ToolError::bad_args(format!("Bad args: {error}")))
}

impl<T: TypedTool> Tool for Typed<T> {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn works_in_jail(&self) -> bool {
        self.tool.works_in_jail()
    }

    fn only_calls(&self) -> bool {
        self.tool.only_calls()
    }

    fn prepare(&self, args: &Args) -> Result<Box<dyn Prepared>, ToolError> {
        let typed = read_args(args)?;
        self.tool.check(&typed)?;
        Ok(Box::new(TypedCall {
            args: typed,
            original: args.original.clone(),
            has_side_effects: self.definition.has_side_effects(),
            tool: Arc::clone(&self.tool),
        }))
    }
}

struct TypedCall<T: TypedTool> {
    tool: Arc<T>,
    args: T::Args,
    original: haft_core::Arguments,
    has_side_effects: bool,
}

impl<T: TypedTool> Prepared for TypedCall<T> {
    fn footprint(&self) -> Footprint {
        self.tool.footprint(&self.args).unwrap_or_else(|| Footprint::undeclared(self.has_side_effects))
    }

    fn summary(&self) -> String {
        self.tool.summary(&self.args).unwrap_or_else(|| format!("{} {}", T::NAME, self.original.as_str()))
    }

    fn confirm(&self) -> Option<String> {
        self.tool.confirm(&self.args)
    }

    fn timeout(&self) -> Option<Duration> {
        self.tool.timeout(&self.args)
    }

    fn stages(&self) -> bool {
        self.tool.stages(&self.args)
    }

    fn preview(&self, cx: ToolCtx) -> Option<BoxFuture<'_, Result<String, ToolError>>> {
        self.tool.preview(&self.args, cx)
    }

    fn execute(self: Box<Self>, cx: ToolCtx) -> ToolFuture {
        Box::pin(async move {
            let TypedCall { tool, args, .. } = *self;
            tool.call(args, cx).await?.into_tool_output()
        })
    }
}
