//! What travels with a client between two rounds of a call, under a seal.
//!
//! In revision 2026-07-28 a server keeps nothing between two requests: what it has to know when the call comes again, it
//! gives to the client and gets back. What comes back could be anything, so it is sealed: with a key of this process, for
//! this caller, this tool and these arguments, for a while. An approval is good for one call: its seal counts once.

use haft_core::{Arguments, CallContext};
use rmcp::{
    ErrorData,
    model::{InputResponses, RequestStateCodec, SealOptions},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};
use uuid::Uuid;

/// How long a client may take between two rounds.
const LASTS: Duration = Duration::from_secs(15 * 60);
/// How many used seals are known at most. Where there are more, none counts any more until some have run out.
const MOST_USED: usize = 65_536;

/// What a call knows of the rounds before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// Tells seals apart.
    #[serde(rename = "n", default, skip_serializing_if = "String::is_empty")]
    pub(super) nonce: String,
    /// What the tool wants to know again.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(super) tool: Option<Value>,
    /// The call that a person was asked about: its fingerprint.
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    pub(super) asked: Option<String>,
    /// The call that a person has agreed to, in a round before, and that has not run since.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub(super) approved: Option<String>,
}

impl State {
    pub(super) fn is_empty(&self) -> bool {
        self.tool.is_none() && self.asked.is_none() && self.approved.is_none()
    }
}

/// What a request brings along from the round before.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) answers: InputResponses,
    pub(super) state: Option<State>,
}

/// Seals states, opens them, and knows which approvals were used.
pub(super) struct Seals {
    codec: RequestStateCodec,
    used: Mutex<HashMap<String, Instant>>,
}

impl Seals {
    /// With a key that this process alone has. After a restart a client is asked anew.
    pub(super) fn new() -> Self {
        let key = [Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes).concat();
        Seals { codec: RequestStateCodec::new_unchecked(key), used: Mutex::default() }
    }

    /// The state as a client carries it.
    pub(super) fn seal(&self, mut state: State, binding: &Binding) -> Option<String> {
        state.nonce = Uuid::new_v4().simple().to_string();
        let options = SealOptions::new().associated_data(&binding.0).ttl(LASTS);
        self.codec.seal_json_with(&state, &options).ok()
    }

    /// The state that a client brought back; an error where it is not one of ours, for this very call.
    pub(super) fn open(&self, sealed: &str, binding: &Binding) -> Result<State, ErrorData> {
        self.codec.open_json_with(sealed, &binding.0).map_err(|_| {
            let text = "the request state is not one that this server gave for this call, or it is too old. Send the \
                        call again without it";
            ErrorData::invalid_params(text, None)
        })
    }

    /// Whether this is the first use of that state. Asking is using.
    pub(super) fn use_once(&self, state: &State) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if used.len() >= MOST_USED {
            used.retain(|_, until| *until > now);
        }
        if used.len() >= MOST_USED || state.nonce.is_empty() || used.contains_key(&state.nonce) {
            return false;
        }
        used.insert(state.nonce.clone(), now + LASTS);
        true
    }
}

/// What a state is sealed for: who calls what.
pub(super) struct Binding([u8; 32]);

impl Binding {
    pub(super) fn new(context: &CallContext, tool: &str, arguments: &Arguments) -> Self {
        let mut hash = Sha256::new();
        let user = context.user.as_deref().unwrap_or_default();
        for part in [&*context.tenant, user, &*context.agent, "tools/call", tool, arguments.as_str()] {
            // With its length, so that no two lists of parts look alike.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Binding(hash.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn binding(agent: &str, tool: &str, arguments: Value) -> Binding {
        Binding::new(&CallContext::new("t", agent), tool, &Arguments::from(arguments))
    }

    #[test]
    fn a_state_comes_back_for_the_same_call_only() {
        let seals = Seals::new();
        let ours = binding("a", "write", json!({"path": "x"}));
        let state = State { asked: Some("f".into()), ..State::default() };
        let sealed = seals.seal(state, &ours).unwrap();
        assert_eq!(seals.open(&sealed, &ours).unwrap().asked.as_deref(), Some("f"));
        for other in [
            binding("b", "write", json!({"path": "x"})),
            binding("a", "delete", json!({"path": "x"})),
            binding("a", "write", json!({"path": "y"})),
        ] {
            assert!(seals.open(&sealed, &other).is_err());
        }
        assert!(Seals::new().open(&sealed, &ours).is_err(), "another process has another key");
        // Whose it is, part by part: nothing of it may be another's.
        let of = |tenant: &str, user: Option<&str>, agent: &str| {
            let mut context = CallContext::new(tenant, agent);
            context.user = user.map(Into::into);
            Binding::new(&context, "write", &Arguments::from(json!({"path": "x"})))
        };
        let ours = of("t", Some("ada"), "a");
        let sealed = seals.seal(State::default(), &ours).unwrap();
        assert!(seals.open(&sealed, &of("t", Some("ada"), "a")).is_ok(), "the control");
        for (tenant, user, agent) in [
            ("u", Some("ada"), "a"),
            ("t", Some("bob"), "a"),
            ("t", None, "a"),
            ("t", Some("ada"), "b"),
            ("ta", Some("da"), "a"),
        ] {
            assert!(seals.open(&sealed, &of(tenant, user, agent)).is_err(), "{tenant} {user:?} {agent}");
        }
    }

    #[test]
    fn whatever_byte_is_changed_it_is_refused() {
        let seals = Seals::new();
        let ours = binding("a", "write", json!({}));
        let sealed = seals.seal(State { asked: Some("f".into()), ..State::default() }, &ours).unwrap();
        for place in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            // The last letter of base64 can stand for the same bytes; then nothing was changed.
            if let Ok(state) = seals.open(&changed, &ours) {
                assert_eq!(state.asked.as_deref(), Some("f"), "{changed}");
            }
        }
        for nonsense in ["", "rs1", "rs1..", "{}", "rs1.AAAA.AAAA", &"x".repeat(1 << 16)] {
            assert!(seals.open(nonsense, &ours).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn a_seal_counts_once() {
        let seals = Seals::new();
        let ours = binding("a", "write", json!({}));
        let seal = || seals.open(&seals.seal(State::default(), &ours).unwrap(), &ours).unwrap();
        let (one, other) = (seal(), seal());
        assert!(seals.use_once(&one));
        assert!(!seals.use_once(&one));
        assert!(seals.use_once(&other));
        assert!(!seals.use_once(&State::default()), "what was never sealed is never used");
    }
}
