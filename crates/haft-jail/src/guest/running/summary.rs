//! How a guest ended, in words and numbers.

use super::*;

/// A limit that haft itself saw passed.
pub(super) fn of_a_limit(passed: &Passed) -> Violation {
    blocked(passed.kind, passed.exceeded.limit, passed.exceeded.error().message)
}

fn blocked(kind: &str, resource: &str, description: String) -> Violation {
    Violation {
        kind: kind.to_owned(),
        resource: resource.to_owned(),
        description,
        timestamp: jiff::Timestamp::now(),
        was_blocked: true,
    }
}

impl InitGuest {
    /// What became of it.
    pub(super) fn sum_up(&self, end: InitEnd, passed: Option<Passed>) -> GuestEnd {
        let wall = self.started.elapsed();
        let counted = self.cgroups.counted().since(self.before);
        let report = self.gate.as_ref().map(|gate| gate.report());
        let cpu_micros = counted.cpu_micros.unwrap_or(end.cpu_micros);
        let peak = counted.peak_memory.unwrap_or(end.max_process_bytes);
        let evidence = Evidence {
            exit_code: end.exit_code,
            signal: end.signal,
            out_of_memory: counted.out_of_memory,
            peak_memory: Some(peak),
            cpu_millis: cpu_micros / 1000,
        };
        let by_kernel = limits::exceeded(&self.limits, evidence);
        let mut violations = self.violations(&counted, &end, passed.as_ref());
        violations.extend(report.iter().flat_map(|report| report.violations.iter().cloned()));
        let [bytes_read, bytes_written, operations] = match end.io {
            Some(io) => io.map(Some),
            None => [None; 3],
        };
        GuestEnd {
            exit_code: end.exit_code,
            signal: end.signal,
            exceeded: passed.map(|passed| passed.exceeded).or(by_kernel),
            metrics: Metrics {
                peak_memory_bytes: Some(peak),
                cpu_time_ms: Some(cpu_micros as f64 / 1000.0),
                wall_time_ms: Some(wall.as_secs_f64() * 1000.0),
                bytes_read,
                bytes_written,
                filesystem_operations: operations,
                network_requests: report.as_ref().map(|report| report.requests),
                network_bytes_received: report.as_ref().map(|report| report.bytes_received),
                network_bytes_sent: report.as_ref().map(|report| report.bytes_sent),
            },
            violations,
            staged: Vec::new(),
        }
    }

    fn violations(&self, counted: &Counted, end: &InitEnd, passed: Option<&Passed>) -> Vec<Violation> {
        let mut all = Vec::new();
        let mut add = |kind: &str, resource: &str, description: String| {
            all.push(blocked(kind, resource, description));
        };
        if counted.out_of_memory > 0 {
            let limit = self.limits.memory_bytes.unwrap_or(0);
            let text = format!(
                "{} processes were ended because all together used {limit} bytes",
                counted.out_of_memory
            );
            add("MemoryLimitExceeded", "memoryBytes", text);
        }
        if counted.refused_forks > 0 {
            let text = format!("{} new processes were refused", counted.refused_forks);
            add("RestrictedResourceAccess", "processes", text);
        }
        if let Some(passed) = passed {
            all.push(of_a_limit(passed));
        }
        let mut add = |kind: &str, resource: &str, description: String| {
            all.push(blocked(kind, resource, description));
        };
        if end.signal == Some(libc::SIGSYS) || end.exit_code == Some(128 + libc::SIGSYS) {
            let text = "the program was ended by a system call that no guest may make";
            add("SandboxEscapeAttempt", "system call", text.to_owned());
        }
        if end.signal == Some(libc::SIGXFSZ) || end.exit_code == Some(128 + libc::SIGXFSZ) {
            add("RestrictedResourceAccess", "fileBytes", "a file grew over its limit".to_owned());
        }
        if end.signal == Some(libc::SIGXCPU) {
            add("CpuLimitExceeded", "cpuTime", "a process used its time on a core".to_owned());
        }
        all
    }
}
