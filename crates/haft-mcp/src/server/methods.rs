//! The methods that a client may ask for with parameters.

/// In every revision.
const ALWAYS: &[&str] =
    &["tools/list", "tools/call", "resources/list", "resources/read", "resources/templates/list"];
/// Before 2026-07-28, and since.
const BEFORE: &[&str] = &["resources/subscribe", "resources/unsubscribe", "logging/setLevel"];
const SINCE: &[&str] = &["subscriptions/listen"];
const TASKS: &[&str] = &["tasks/get", "tasks/update", "tasks/cancel"];
const PROMPTS: &[&str] = &["prompts/list", "prompts/get"];
const COMPLETIONS: &[&str] = &["completion/complete"];

/// What a server offers to one client.
#[derive(Clone, Copy)]
pub(super) struct Offered {
    pub(super) is_stateless: bool,
    pub(super) has_tasks: bool,
    pub(super) has_prompts: bool,
    pub(super) has_completions: bool,
}

impl Offered {
    /// Whether there is such a method.
    pub(super) fn has(self, method: &str) -> bool {
        let groups = [
            (true, ALWAYS),
            (!self.is_stateless, BEFORE),
            (self.is_stateless, SINCE),
            (self.is_stateless && self.has_tasks, TASKS),
            (self.has_prompts, PROMPTS),
            (self.has_completions, COMPLETIONS),
        ];
        groups.into_iter().any(|(is_offered, methods)| is_offered && methods.contains(&method))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_offered_is_not_there() {
        let nothing =
            Offered { is_stateless: false, has_tasks: true, has_prompts: false, has_completions: false };
        assert!(nothing.has("tools/call") && nothing.has("logging/setLevel"));
        for method in ["tasks/get", "prompts/get", "completion/complete", "subscriptions/listen", ""] {
            assert!(!nothing.has(method), "{method}");
        }
        let all = Offered { is_stateless: true, has_tasks: true, has_prompts: true, has_completions: true };
        for method in ["tasks/get", "prompts/get", "completion/complete", "subscriptions/listen"] {
            assert!(all.has(method), "{method}");
        }
        assert!(!all.has("logging/setLevel"));
    }
}
