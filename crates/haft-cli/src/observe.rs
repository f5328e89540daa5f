//! Who is told what the engine does: standard error with `--log`, and a collector where one is named.

use super::{console::Console, setup::Configured};
#[cfg(feature = "otlp")]
use haft::{Otlp, OtlpOptions};
use std::ffi::OsStr;
use tracing_subscriber::{
    Layer as _, filter::LevelFilter, fmt::format::FmtSpan, layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

/// What has to be sent before the process ends.
#[must_use]
pub(super) struct Observing {
    #[cfg(feature = "otlp")]
    otlp: Option<Otlp>,
}

impl Observing {
    /// Spans, when they end, and messages go where the options and the configuration say. A program that has its own
    /// subscriber keeps it. Without anybody to tell, there is no subscriber, and a span costs a comparison.
    /// Only a command that makes calls has something to tell a collector.
    pub(super) fn begin(
        log: bool,
        makes_calls: bool,
        configured: &Configured,
        console: &Console,
    ) -> Observing {
        let collector = makes_calls.then(|| collector(configured)).flatten();
        let lines = log.then(|| {
            tracing_subscriber::fmt::layer()
                .json()
                .with_span_events(FmtSpan::CLOSE)
                .with_writer(std::io::stderr)
                .with_filter(LevelFilter::INFO)
        });
        #[cfg(not(feature = "otlp"))]
        {
            // The variable is often set for other programs; the key is meant for this one.
            if !configured.resolved.config.telemetry.otlp_endpoint.is_empty() && collector.is_some() {
                console.warn(
                    "telemetry.otlp_endpoint has no effect: this haft was built without the feature `otlp`",
                );
            }
            if log {
                let _ = tracing_subscriber::registry().with(lines).try_init();
            }
            Observing {}
        }
        #[cfg(feature = "otlp")]
        {
            // What a call does never depends on whether somebody can watch.
            let begun = collector.map(|collector| Otlp::with(&options(configured, collector))).transpose();
            let otlp = begun.unwrap_or_else(|error| {
                console.warn(&error.to_string());
                None
            });
            if log || otlp.is_some() {
                let spans = otlp.as_ref().map(Otlp::layer);
                let _ = tracing_subscriber::registry().with(lines).with(spans).try_init();
            }
            Observing { otlp }
        }
    }

    /// Sends what is left.
    pub(super) fn end(self, console: &Console) {
        #[cfg(feature = "otlp")]
        if let Some(Err(error)) = self.otlp.map(Otlp::end) {
            console.warn(&error.to_string());
        }
        #[cfg(not(feature = "otlp"))]
        let _ = console;
    }
}

/// Where telemetry goes.
struct Collector {
    endpoint: String,
    /// It was named for spans alone.
    #[cfg_attr(not(feature = "otlp"), allow(dead_code, reason = "nothing is sent"))]
    only_spans: bool,
}

#[cfg(feature = "otlp")]
fn options(configured: &Configured, collector: Collector) -> OtlpOptions {
    let telemetry = &configured.resolved.config.telemetry;
    let file = |name: &str| (!name.is_empty()).then(|| configured.surroundings.working_folder.join(name));
    OtlpOptions {
        endpoint: collector.endpoint,
        ca_file: file(&telemetry.otlp_ca_file),
        headers_file: file(&telemetry.otlp_headers_file),
        only_spans: collector.only_spans,
    }
}

/// The collector: haft's own key, else the variables that every program with OpenTelemetry reads.
fn collector(configured: &Configured) -> Option<Collector> {
    let own = Some(configured.resolved.config.telemetry.otlp_endpoint.clone());
    let variable = |name: &str| {
        let (_, value) = configured.surroundings.env.iter().find(|(known, _)| known == OsStr::new(name))?;
        value.to_str().map(str::to_owned)
    };
    let is_off = variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let named = [
        (own, false),
        (variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), true),
        (variable("OTEL_EXPORTER_OTLP_ENDPOINT"), false),
    ];
    let named = named.into_iter().filter_map(|(endpoint, only_spans)| Some((endpoint?, only_spans)));
    named
        .map(|(endpoint, only_spans)| Collector { endpoint, only_spans })
        .find(|collector| !collector.endpoint.trim().is_empty() && !is_off)
}
