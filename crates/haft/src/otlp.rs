//! Spans for a collector that speaks OTLP, over HTTP.
//!
//! What the spans hold is decided where they are made, in `haft-engine/src/telemetry.rs`: no arguments, no output,
//! names without secrets. Here they are only sent. Nothing else is: what libraries say under other names stays here.

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::WithExportConfig as _;
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SdkTracerProvider, SpanData, SpanExporter},
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

/// How long a process that ends waits for its last spans to be taken.
const PATIENCE: Duration = Duration::from_secs(3);
/// The variables that choose the form in which spans are sent.
const PROTOCOL: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
/// Where collectors take spans.
const PATH: &str = "/v1/traces";

/// Spans could not be sent, or never will be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OtlpError(String);

/// Sends haft's spans to a collector, in groups, from a thread of its own. No call waits for it.
///
/// ```
/// use haft::Otlp;
/// use tracing_subscriber::layer::SubscriberExt as _;
///
/// let otlp = Otlp::new("http://localhost:4318")?;
/// let subscriber = tracing_subscriber::registry().with(otlp.layer());
/// // tracing::subscriber::set_global_default(subscriber), calls, and at the end:
/// # drop(subscriber);
/// otlp.end()?;
/// # Ok::<(), haft::OtlpError>(())
/// ```
///
/// The variables of OpenTelemetry count as elsewhere: `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`,
/// `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_PROTOCOL` (`http/protobuf`, or `http/json`), `OTEL_BSP_…`.
#[derive(Debug)]
pub struct Otlp {
    provider: SdkTracerProvider,
    endpoint: String,
    failed: Failed,
}

/// Why spans could not be sent the last time, if that was so.
type Failed = Arc<Mutex<Option<String>>>;

/// Remembers failures. The library keeps them to itself.
#[derive(Debug)]
struct Watched {
    exporter: opentelemetry_otlp::SpanExporter,
    failed: Failed,
}

impl SpanExporter for Watched {
    async fn export(&self, spans: Vec<SpanData>) -> OTelSdkResult {
        let sent = self.exporter.export(spans).await;
        let failure = sent.as_ref().err().map(ToString::to_string);
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl Otlp {
    /// For a collector at that address, such as `http://localhost:4318`. It need not be there yet.
    pub fn new(endpoint: &str) -> Result<Self, OtlpError> {
        let endpoint = address(endpoint)?;
        let mut builder = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_endpoint(&endpoint)
            .with_timeout(PATIENCE);
        // What every collector reads, unless the operator chose; the library would rather send JSON.
        if PROTOCOL.iter().all(|name| std::env::var_os(name).is_none()) {
            builder = builder.with_protocol(opentelemetry_otlp::Protocol::HttpBinary);
        }
        let exporter = builder
            .build()
            .map_err(|error| OtlpError(format!("spans cannot be sent to {endpoint}: {error}")))?;
        let mut resource = Resource::builder();
        // The name that the operator gave wins.
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name("haft");
        }
        let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let failed = Failed::default();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(Watched { exporter, failed: Arc::clone(&failed) })
            .with_resource(resource.with_attribute(version).build())
            .build();
        Ok(Otlp { provider, endpoint, failed })
    }

    /// What a subscriber passes haft's spans to. Others are not sent.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + 'static
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let ours = |about: &Metadata<'_>| about.target() == "haft" && *about.level() <= Level::INFO;
        // Where in the source and on which thread is nobody's business outside.
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("haft"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(ours))
    }

    /// Sends what is left, for at most a few seconds. Dropping does the same, and says nothing.
    pub fn end(self) -> Result<(), OtlpError> {
        let ended = self.provider.shutdown_with_timeout(PATIENCE).map_err(|error| error.to_string());
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        match failed.map_or(ended, Err) {
            Ok(()) => Ok(()),
            Err(why) => Err(OtlpError(format!(
                "spans could not be sent to {}: {why}; look whether the collector is there",
                self.endpoint
            ))),
        }
    }
}

impl Drop for Otlp {
    fn drop(&mut self) {
        // A subscriber that is there for the whole process holds the provider, too: nobody else would end it. The
        // second time it does nothing.
        let _ = self.provider.shutdown_with_timeout(PATIENCE);
    }
}

/// Where spans go, for a collector that was named by its base.
fn address(endpoint: &str) -> Result<String, OtlpError> {
    let refuse = |why: &str| Err(OtlpError(format!("the address of the OTLP collector {why}")));
    let endpoint = endpoint.trim();
    let Some(rest) = endpoint.strip_prefix("http://").map(|rest| rest.trim_end_matches('/')) else {
        return refuse(match endpoint.starts_with("https://") {
            true => {
                "begins with https://, and this haft sends without encryption; run a collector on this machine that \
                 passes it on"
            }
            false => "does not begin with http://; write it like \"http://localhost:4318\"",
        });
    };
    let host = rest.split('/').next().unwrap_or_default();
    if host.is_empty() {
        return refuse("names no host; write it like \"http://localhost:4318\"");
    }
    if host.contains('@') {
        return refuse("holds a name or password; put those into OTEL_EXPORTER_OTLP_HEADERS");
    }
    let path = if rest.ends_with(PATH) { "" } else { PATH };
    Ok(format!("http://{rest}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_named_by_its_base_or_its_whole_address() {
        for (named, whole) in [
            ("http://localhost:4318", "http://localhost:4318/v1/traces"),
            (" http://localhost:4318/ ", "http://localhost:4318/v1/traces"),
            ("http://[::1]:4318/v1/traces", "http://[::1]:4318/v1/traces"),
            ("http://host/collector", "http://host/collector/v1/traces"),
        ] {
            assert_eq!(address(named).unwrap(), whole);
        }
        for (named, why) in [
            ("https://host:4318", "without encryption"),
            ("localhost:4318", "does not begin with http://"),
            ("", "does not begin with http://"),
            ("http://", "names no host"),
            ("http:///v1/traces", "names no host"),
            ("http://me:secret-word@host", "OTEL_EXPORTER_OTLP_HEADERS"),
        ] {
            let error = address(named).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("secret-word"), "{named}: {error}");
        }
    }
}
