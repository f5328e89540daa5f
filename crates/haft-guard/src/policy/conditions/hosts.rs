//! Which hosts a pattern names.

/// A host without its port, and the port.
pub(in crate::policy) fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (name, Some(port))
        }
        _ => (host, None),
    }
}

fn same_host(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix("*.") {
        // `*.example.com` is what is below example.com, not example.com itself, and not badexample.com.
        Some(below) => {
            host.len().checked_sub(below.len()).and_then(|at| host.split_at_checked(at)).is_some_and(
                |(front, end)| front.len() > 1 && front.ends_with('.') && end.eq_ignore_ascii_case(below),
            )
        }
        None => pattern == "*" || pattern.eq_ignore_ascii_case(host),
    }
}

/// Whether a host is allowed by a pattern: one without a port means the ports of the web.
pub(crate) fn host_allowed(pattern: &str, host: &str) -> bool {
    let ((named, wanted), (host, port)) = (split_port(pattern), split_port(host));
    let port_fits = match (wanted, port) {
        (Some(wanted), Some(port)) => wanted == port,
        (Some(_), None) => false,
        (None, port) => matches!(port, None | Some("80" | "443")),
    };
    port_fits && same_host(named, host.trim_end_matches('.'))
}

/// Whether a host is meant by a pattern that forbids it: one without a port means every port.
pub(super) fn host_named(pattern: &str, host: &str) -> bool {
    let ((named, wanted), (host, port)) = (split_port(pattern), split_port(host));
    let host = host.trim_end_matches('.');
    (wanted.is_none() || port.is_none() || wanted == port) && same_host(named, host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_by_name_and_port() {
        let cases = [
            ("example.com", "example.com", true, true),
            ("example.com", "EXAMPLE.com.", true, true),
            ("example.com", "example.com:443", true, true),
            ("example.com", "example.com:8080", false, true),
            ("example.com:8080", "example.com:8080", true, true),
            ("example.com:8080", "example.com", false, true),
            ("example.com:8080", "example.com:81", false, false),
            ("*.example.com", "a.example.com", true, true),
            ("*.example.com", "a.b.example.com", true, true),
            ("*.example.com", "example.com", false, false),
            ("*.example.com", "badexample.com", false, false),
            ("*.example.com", ".example.com", false, false),
            ("*", "anything.example", true, true),
            ("example.com", "example.com.evil.org", false, false),
        ];
        for (pattern, host, allowed, named) in cases {
            assert_eq!(host_allowed(pattern, host), allowed, "allows {pattern} {host}");
            assert_eq!(host_named(pattern, host), named, "names {pattern} {host}");
        }
    }
}
