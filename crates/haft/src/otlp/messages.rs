//! haft's messages as log records, and what they say as counts.
//!
//! Both hold what the messages hold, which is decided in `haft-engine/src/telemetry.rs`: no arguments, no output, names
//! without secrets.

use opentelemetry::{
    KeyValue,
    logs::{AnyValue, LogRecord as _, Logger as _, Severity},
    metrics::{Counter, Histogram, Meter},
};
use opentelemetry_sdk::logs::SdkLogger;
use tracing::{Event, Level, Subscriber, field::Field};
use tracing_subscriber::{Layer, layer::Context, registry::LookupSpan};

/// What each message becomes. The names are those of `/metrics`.
pub(super) struct Messages {
    logger: SdkLogger,
    executions: Counter<u64>,
    duration: Histogram<f64>,
    timeouts: Counter<u64>,
    retries: Counter<u64>,
    batches: Counter<u64>,
    batch_size: Histogram<u64>,
}

impl Messages {
    pub(super) fn new(logger: SdkLogger, meter: &Meter) -> Self {
        let counter = |name, what| meter.u64_counter(name).with_description(what).build();
        Messages {
            logger,
            executions: counter("tools.executions.total", "Calls that have ended, by tool and status"),
            duration: meter
                .f64_histogram("tools.executions.duration")
                .with_unit("s")
                .with_description("From the call to its result")
                .build(),
            timeouts: counter("tools.executions.timeouts", "Calls that ran out of time"),
            retries: counter("tools.retries.total", "Attempts that failed and were made again"),
            batches: counter("tools.batches.total", "Batches that have ended"),
            batch_size: meter
                .u64_histogram("tools.batches.size")
                .with_description("Calls of a batch")
                .build(),
        }
    }

    fn count(&self, said: &Said) {
        let tool = || KeyValue::new("tool", said.tool());
        match &*said.message {
            "Tool execution finished." => {
                let status = KeyValue::new("status", said.text("status").unwrap_or_default());
                self.executions.add(1, &[tool(), status]);
                if let Some(AnyValue::Double(millis)) = said.field("duration_ms") {
                    self.duration.record(millis / 1000.0, &[tool()]);
                }
            }
            "Execution timed out." => self.timeouts.add(1, &[tool()]),
            "Attempt failed, retrying." => self.retries.add(1, &[tool()]),
            "Batch execution completed." => {
                self.batches.add(1, &[]);
                if let Some(AnyValue::Int(size)) = said.field("total") {
                    self.batch_size.record(u64::try_from(*size).unwrap_or(0), &[]);
                }
            }
            _ => {}
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Messages {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut said = Said::default();
        event.record(&mut said);
        self.count(&said);
        let level = event.metadata().level();
        let mut record = self.logger.create_log_record();
        record.set_severity_number(severity(*level));
        record.set_severity_text(level.as_str());
        record.set_body(AnyValue::from(said.message));
        record.add_attributes(said.fields);
        // With the span that it is in, which the layer of spans has made the current one.
        self.logger.emit(record);
    }
}

fn severity(level: Level) -> Severity {
    match level {
        Level::ERROR => Severity::Error,
        Level::WARN => Severity::Warn,
        Level::INFO => Severity::Info,
        Level::DEBUG => Severity::Debug,
        Level::TRACE => Severity::Trace,
    }
}

/// A message with its fields.
#[derive(Default)]
struct Said {
    message: String,
    fields: Vec<(&'static str, AnyValue)>,
}

impl Said {
    fn field(&self, name: &str) -> Option<&AnyValue> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn text(&self, name: &str) -> Option<String> {
        match self.field(name) {
            Some(AnyValue::String(text)) => Some(text.to_string()),
            _ => None,
        }
    }

    /// The tool, where there is one of that name: names that models make up are without number.
    fn tool(&self) -> String {
        match self.text("error").as_deref() {
            Some("TOOL_NOT_FOUND") => "(none)".to_owned(),
            _ => self.text("tool").unwrap_or_else(|| "(none)".to_owned()),
        }
    }

    fn add(&mut self, field: &Field, value: impl Into<AnyValue>) {
        self.fields.push((field.name(), value.into()));
    }
}

impl tracing::field::Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = text,
            _ => self.add(field, text),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = value.to_owned(),
            _ => self.add(field, value.to_owned()),
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }
}
