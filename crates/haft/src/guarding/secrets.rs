//! What must not be shown: values of variables that programs do not get, and whatever looks like a secret.

use crate::config::Config;
use haft_core::port::Redactor;
use haft_engine::EngineBuilder;
use haft_guard::{EnvironmentFilter, KnownSecrets, NameCase, Secrets};
use std::sync::Arc;

/// How secrets are taken out.
pub(crate) enum Redacting {
    /// By rules, and by the values of variables; these, or those of the process.
    Rules(Option<Vec<(String, String)>>),
    /// As somebody wants it, in results, too.
    Own(Arc<dyn Redactor>),
    /// Not at all.
    Off,
}

impl Redacting {
    /// Puts it into an engine.
    pub(crate) fn put(self, config: &Config, builder: EngineBuilder) -> EngineBuilder {
        let variables = match self {
            Redacting::Off => return builder,
            Redacting::Own(redactor) => return builder.redactor(redactor),
            Redacting::Rules(Some(variables)) => variables,
            Redacting::Rules(None) => environment(std::env::vars_os()),
        };
        let filter = EnvironmentFilter::new(
            config.tools.environment.denylist.iter().cloned(),
            NameCase::of_this_system(),
        );
        let (_, held_back) =
            filter.split(variables.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let known = KnownSecrets::new(held_back);
        let builder = builder
            .redactor(Arc::new(Secrets::full(known.clone())))
            .result_redactor(Arc::new(Secrets::results(known)));
        match config.tools.output.redact_results {
            true => builder,
            false => builder.show_results_as_they_are(),
        }
    }
}

/// Variables that are text. Others are no secrets that could be shown as text.
pub(crate) fn environment<N: Into<std::ffi::OsString>>(
    variables: impl IntoIterator<Item = (N, N)>,
) -> Vec<(String, String)> {
    let text = |text: N| text.into().into_string().ok();
    variables.into_iter().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect()
}
