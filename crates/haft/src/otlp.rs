//! Spans, log records and counts for a collector that speaks OTLP, over HTTP.
//!
//! What they hold is decided where they are made, in `haft-engine/src/telemetry.rs`: no arguments, no output, names
//! without secrets. Here they are only sent. Nothing else is: what libraries say under other names stays here.

use client::{Client, Failed};
use messages::Messages;
use opentelemetry::{logs::LoggerProvider as _, metrics::MeterProvider as _, trace::TracerProvider as _};
use opentelemetry_otlp::{ExporterBuildError, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource, error::OTelSdkResult, logs::SdkLoggerProvider, metrics::SdkMeterProvider,
    trace::SdkTracerProvider,
};
use std::{
    path::PathBuf,
    sync::{Arc, PoisonError},
    time::Duration,
};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

mod client;
mod messages;

/// How long a process that ends waits until the last of it is taken, and how long one request takes.
const PATIENCE: Duration = Duration::from_secs(3);
/// The variable that chooses the form of everything; each signal has one of its own, too.
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
/// Where collectors take spans.
const SPANS: &str = "/v1/traces";
const COUNTS: &str = "/v1/metrics";
const RECORDS: &str = "/v1/logs";

/// Telemetry could not be sent, or never will be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OtlpError(String);

/// Where telemetry goes.
///
/// ```
/// let to = haft::OtlpOptions { ca_file: Some("/etc/company/ca.pem".into()), ..haft::OtlpOptions::new("https://otel:4318") };
/// assert!(!to.only_spans);
/// ```
#[derive(Clone, Debug, Default)]
pub struct OtlpOptions {
    /// The collector, such as `http://localhost:4318` or `https://otel.example.com`. It need not be there yet.
    pub endpoint: String,
    /// Certificates in PEM that are trusted besides those of the machine.
    pub ca_file: Option<PathBuf>,
    /// A file with headers of every request, `name: value` on each line, which only its owner can read.
    pub headers_file: Option<PathBuf>,
    /// Whether log records and counts are left out.
    pub only_spans: bool,
}

impl OtlpOptions {
    /// Everything to that address, with what the machine trusts.
    pub fn new(endpoint: impl Into<String>) -> Self {
        OtlpOptions { endpoint: endpoint.into(), ..OtlpOptions::default() }
    }
}

/// Sends haft's spans, log records and counts to a collector, in groups, from threads of its own. No call waits for it.
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
/// `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_PROTOCOL` (`http/protobuf`, or `http/json`), `OTEL_BSP_…`,
/// `OTEL_METRIC_EXPORT_INTERVAL`.
#[derive(Debug)]
pub struct Otlp {
    spans: SdkTracerProvider,
    rest: Option<(SdkLoggerProvider, SdkMeterProvider)>,
    endpoint: String,
    failed: Failed,
}

/// Makes what sends one signal.
fn exporter<B: WithExportConfig + WithHttpConfig, E>(
    builder: B,
    (base, path, client): (&str, &str, &Arc<Client>),
    build: impl FnOnce(B) -> Result<E, ExporterBuildError>,
) -> Result<E, OtlpError> {
    let signal = path.trim_start_matches("/v1/").to_ascii_uppercase();
    let own = format!("OTEL_EXPORTER_OTLP_{signal}_PROTOCOL");
    let address = format!("{base}{path}");
    let mut builder = builder
        .with_shared_http_client(Arc::clone(client) as _)
        .with_endpoint(&address)
        .with_timeout(PATIENCE);
    // What every collector reads, unless the operator chose; the library would rather send JSON.
    if [PROTOCOL, &own].iter().all(|name| std::env::var_os(name).is_none()) {
        builder = builder.with_protocol(opentelemetry_otlp::Protocol::HttpBinary);
    }
    build(builder).map_err(|error| OtlpError(format!("nothing can be sent to {address}: {error}")))
}

fn resource() -> Resource {
    let mut resource = Resource::builder();
    // The name that the operator gave wins.
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name("haft");
    }
    resource
        .with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build()
}

impl Otlp {
    /// For a collector at that address, such as `http://localhost:4318`. It need not be there yet.
    pub fn new(endpoint: &str) -> Result<Self, OtlpError> {
        Otlp::with(&OtlpOptions::new(endpoint))
    }

    /// For a collector that takes more than an address.
    pub fn with(options: &OtlpOptions) -> Result<Self, OtlpError> {
        let base = address(&options.endpoint)?;
        let is_encrypted = base.starts_with("https://");
        let tls = is_encrypted.then(|| client::trusting(options.ca_file.as_deref())).transpose()?;
        let headers = options.headers_file.as_deref().map(client::headers).transpose()?.unwrap_or_default();
        if !headers.is_empty() && !is_encrypted && !is_here(&base) {
            let text = "telemetry.otlp_headers_file holds secrets, and http:// sends them to another machine in the \
                        clear; use https://";
            return Err(OtlpError(text.to_owned()));
        }
        let failed = Failed::default();
        let client = Arc::new(Client { tls, headers, failed: Arc::clone(&failed) });
        let resource = resource();
        let spans = opentelemetry_otlp::SpanExporter::builder().with_http();
        let spans = SdkTracerProvider::builder()
            .with_batch_exporter(exporter(spans, (&base, SPANS, &client), |builder| builder.build())?)
            .with_resource(resource.clone())
            .build();
        let rest = (!options.only_spans).then(|| {
            let records = opentelemetry_otlp::LogExporter::builder().with_http();
            let records = exporter(records, (&base, RECORDS, &client), |builder| builder.build())?;
            let counts = opentelemetry_otlp::MetricExporter::builder().with_http();
            let counts = exporter(counts, (&base, COUNTS, &client), |builder| builder.build())?;
            Ok((
                SdkLoggerProvider::builder()
                    .with_batch_exporter(records)
                    .with_resource(resource.clone())
                    .build(),
                SdkMeterProvider::builder().with_periodic_exporter(counts).with_resource(resource).build(),
            ))
        });
        Ok(Otlp { spans, rest: rest.transpose()?, endpoint: base, failed })
    }

    /// What a subscriber passes haft's spans and messages to. Others are not sent.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + 'static
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let ours = |about: &Metadata<'_>| about.target() == "haft" && *about.level() <= Level::INFO;
        // Where in the source and on which thread is nobody's business outside.
        let spans = tracing_opentelemetry::layer()
            .with_tracer(self.spans.tracer("haft"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false);
        let rest = self.rest.as_ref();
        let rest = rest.map(|(records, counts)| Messages::new(records.logger("haft"), &counts.meter("haft")));
        spans.and_then(rest).with_filter(filter_fn(ours))
    }

    /// Ends all that sends, at the same time: each waits for the collector.
    fn shut_down(&self) -> Result<(), String> {
        std::thread::scope(|threads| {
            let rest = self.rest.as_ref();
            let records = rest.map(|(records, _)| threads.spawn(|| records.shutdown_with_timeout(PATIENCE)));
            let counts = rest.map(|(_, counts)| threads.spawn(|| counts.shutdown_with_timeout(PATIENCE)));
            let mut ended: Vec<OTelSdkResult> = vec![self.spans.shutdown_with_timeout(PATIENCE)];
            ended.extend([records, counts].into_iter().flatten().filter_map(|thread| thread.join().ok()));
            ended.into_iter().collect::<OTelSdkResult>().map_err(|error| error.to_string())
        })
    }

    /// Sends what is left, for at most a few seconds. Dropping does the same, and says nothing.
    pub fn end(self) -> Result<(), OtlpError> {
        let ended = self.shut_down();
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        match failed.map_or(ended, Err) {
            Ok(()) => Ok(()),
            Err(why) => Err(OtlpError(format!(
                "telemetry could not be sent to {}: {why}; look whether the collector is there",
                self.endpoint
            ))),
        }
    }
}

impl Drop for Otlp {
    fn drop(&mut self) {
        // A subscriber that is there for the whole process holds what sends, too: nobody else would end it. The
        // second time it does nothing.
        let _ = self.shut_down();
    }
}

/// The base of a collector's address, which may be named by where it takes spans, too.
fn address(endpoint: &str) -> Result<String, OtlpError> {
    let refuse = |why: &str| Err(OtlpError(format!("the address of the OTLP collector {why}")));
    let endpoint = endpoint.trim().trim_end_matches('/');
    let endpoint = endpoint.strip_suffix(SPANS).unwrap_or(endpoint).trim_end_matches('/');
    let Some(rest) = ["http://", "https://"].iter().find_map(|scheme| endpoint.strip_prefix(scheme)) else {
        let is_scheme = ["http:", "https:"].contains(&endpoint);
        return refuse(match is_scheme {
            true => "names no host; write it like \"http://localhost:4318\"",
            false => "does not begin with http:// or https://; write it like \"http://localhost:4318\"",
        });
    };
    let host = rest.split('/').next().unwrap_or_default();
    if host.is_empty() {
        return refuse("names no host; write it like \"http://localhost:4318\"");
    }
    if host.contains('@') {
        return refuse("holds a name or password; put those into the file of telemetry.otlp_headers_file");
    }
    Ok(endpoint.to_owned())
}

/// Whether a collector is on this machine.
fn is_here(base: &str) -> bool {
    let host = base.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, port)| match port.parse::<u16>() {
        Ok(_) => host,
        Err(_) => base,
    });
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_named_by_its_base_or_where_it_takes_spans() {
        for (named, base) in [
            ("http://localhost:4318", "http://localhost:4318"),
            (" https://localhost:4318/ ", "https://localhost:4318"),
            ("http://[::1]:4318/v1/traces", "http://[::1]:4318"),
            ("http://host/collector", "http://host/collector"),
        ] {
            assert_eq!(address(named).as_deref(), Ok(base));
        }
        for (named, why) in [
            ("localhost:4318", "does not begin with http://"),
            ("", "does not begin with http://"),
            ("http://", "names no host"),
            ("http:///v1/traces", "names no host"),
            ("https://me:secret-word@host", "telemetry.otlp_headers_file"),
        ] {
            let error = address(named).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(why) && !error.contains("secret-word"), "{named}: {error}");
        }
    }

    #[test]
    fn only_addresses_of_this_machine_are_here() {
        for here in ["http://localhost", "http://localhost:4318/x", "http://127.0.0.1:1", "http://[::1]:4318"]
        {
            assert!(is_here(here), "{here}");
        }
        for there in
            ["http://10.0.0.1:4318", "http://localhost.example.com", "http://[2001:db8::1]", "http://a:b"]
        {
            assert!(!is_here(there), "{there}");
        }
    }
}
