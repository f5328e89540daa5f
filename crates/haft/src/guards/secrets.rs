//! What must not be shown: values of variables that programs do not get, and whatever looks like a secret.

use crate::{Error, config::Config};
use haft_core::port::Redactor;
use haft_engine::EngineBuilder;
use haft_guard::{EnvironmentFilter, KnownSecrets, NameCase, SecretPatterns, Secrets};
use std::{io::Read as _, sync::Arc};

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
    pub(crate) fn put(self, config: &Config, builder: EngineBuilder) -> Result<EngineBuilder, Error> {
        let variables = match self {
            Redacting::Off => return Ok(builder),
            Redacting::Own(redactor) => return Ok(builder.redactor(redactor)),
            Redacting::Rules(Some(variables)) => variables,
            Redacting::Rules(None) => environment(std::env::vars_os()),
        };
        let crate::config::RedactionConfig { patterns, values_from_environment: _, values_file } =
            &config.redaction;
        let filter = EnvironmentFilter::new(config.secret_variables(), NameCase::of_this_system());
        let (_, held_back) =
            filter.split(variables.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let listed = listed(values_file)?;
        let listed = listed.iter().map(|value| ("listed", value.as_str()));
        let known = KnownSecrets::new(held_back.into_iter().chain(listed));
        let patterns = SecretPatterns::new(patterns)
            .map_err(|problem| Error::Redaction(format!("redaction.patterns: {problem}")))?;
        let builder = builder
            .redactor(Arc::new(Secrets::full(known.clone()).with_patterns(patterns.clone())))
            .result_redactor(Arc::new(Secrets::results(known).with_patterns(patterns)));
        Ok(match config.tools.output.redact_results {
            true => builder,
            false => builder.show_results_as_they_are(),
        })
    }
}

/// The longest file of secrets.
const LONGEST: u64 = 1 << 20;
/// Shorter values would match ordinary text and damage it.
const SHORTEST: usize = 8;

/// The secrets in a file, one in each line. What cannot be read, or would not be looked for, is an error: nobody is to
/// believe that a secret is taken out which is not.
fn listed(file: &str) -> Result<Vec<String>, Error> {
    if file.is_empty() {
        return Ok(Vec::new());
    }
    let problem = |why: String| Error::Redaction(format!("redaction.values_file: {file}: {why}"));
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(|error| problem(error.to_string()))?;
    opened.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| problem(error.to_string()))?;
    if text.len() as u64 > LONGEST {
        return Err(problem("it is longer than 1 MiB".to_owned()));
    }
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
    lines
        .map(|(number, line)| match line.len() < SHORTEST {
            true => Err(problem(format!("line {} is shorter than {SHORTEST} bytes", number + 1))),
            false => Ok(line.to_owned()),
        })
        .collect()
}

/// Variables that are text. Others are no secrets that could be shown as text.
pub fn environment<N: Into<std::ffi::OsString>>(
    variables: impl IntoIterator<Item = (N, N)>,
) -> Vec<(String, String)> {
    let text = |text: N| text.into().into_string().ok();
    variables.into_iter().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect()
}
