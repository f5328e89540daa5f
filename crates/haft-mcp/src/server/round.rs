//! What travels with a client between two rounds of a call, under a seal.
//!
//! In revision 2026-07-28 a server keeps nothing between two requests: what it has to know when the call comes again,
//! it gives to the client and gets back. What comes back could be anything, so it is sealed: with a key of this
//! process, for this caller, this tool and these arguments, for a while. An approval is good for one call: its seal
//! counts once.

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
    /// The folders that the client works in.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub(super) roots: Option<Vec<String>>,
}

impl State {
    pub(super) fn is_empty(&self) -> bool {
        // Without `..`: whatever a round has to know must be sealed.
        let State { nonce: _, tool, asked, approved, roots } = self;
        tool.is_none() && asked.is_none() && approved.is_none() && roots.is_none()
    }

    /// Whether a person was asked about the call with that fingerprint: only then is an answer one to it.
    pub(super) fn asked_about(&self, fingerprint: &str) -> bool {
        self.asked.as_deref() == Some(fingerprint)
    }

    /// Whether a person agreed to the call with that fingerprint.
    pub(super) fn agreed_to(&self, fingerprint: &str) -> bool {
        self.approved.as_deref() == Some(fingerprint)
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
    lasts: Duration,
    used: Mutex<HashMap<String, Instant>>,
}

impl Seals {
    /// With a key that this process alone has. After a restart a client is asked again.
    pub(super) fn new() -> Self {
        let key = [Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes).concat();
        Seals { codec: RequestStateCodec::new_unchecked(key), lasts: LASTS, used: Mutex::default() }
    }

    /// The state as a client carries it.
    pub(super) fn seal(&self, mut state: State, binding: &Binding) -> Option<String> {
        state.nonce = Uuid::new_v4().simple().to_string();
        let options = SealOptions::new().associated_data(&binding.0).ttl(self.lasts);
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
        used.insert(state.nonce.clone(), now + self.lasts);
        true
    }
}

/// What a state is sealed for: who calls what. All of it is in the seal, so what changes in any of it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound<'a> {
    tenant: &'a str,
    user: Option<&'a str>,
    agent: &'a str,
    session: Option<&'a str>,
    conversation: Option<&'a str>,
    tool: &'a str,
    arguments: &'a str,
}

impl<'a> Bound<'a> {
    pub(super) fn new(context: &'a CallContext, tool: &'a str, arguments: &'a Arguments) -> Self {
        Bound {
            tenant: &context.tenant,
            user: context.user.as_deref(),
            agent: &context.agent,
            session: context.session.as_deref(),
            conversation: context.conversation.as_deref(),
            tool,
            arguments: arguments.as_str(),
        }
    }

    fn seal(self) -> Binding {
        // Without `..`: what is added above has to be added here.
        let Bound { tenant, user, agent, session, conversation, tool, arguments } = self;
        let mut hash = Sha256::new();
        let parts = [
            Some("tools/call"),
            Some(tenant),
            user,
            Some(agent),
            session,
            conversation,
            Some(tool),
            Some(arguments),
        ];
        for part in parts {
            // With its length, so that no two lists of parts look alike; and what is absent is not what is empty.
            hash.update([u8::from(part.is_some())]);
            let part = part.unwrap_or_default();
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Binding(hash.finalize().into())
    }
}

/// The hash of what a state is sealed for.
pub(super) struct Binding([u8; 32]);

impl Binding {
    pub(super) fn new(context: &CallContext, tool: &str, arguments: &Arguments) -> Self {
        Bound::new(context, tool, arguments).seal()
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
    fn a_state_is_too_old_after_its_time() {
        let seals = Seals { lasts: Duration::from_secs(1), ..Seals::new() };
        let ours = binding("a", "write", json!({}));
        let sealed = seals.seal(State::default(), &ours).unwrap();
        let lasting = Seals { lasts: Duration::from_secs(3600), ..seals };
        assert!(lasting.open(&sealed, &ours).is_ok(), "the control");
        std::thread::sleep(Duration::from_millis(2100));
        assert!(lasting.open(&sealed, &ours).is_err(), "the state itself says how long it is good");
        assert_eq!(Seals::new().lasts, LASTS);
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

    fn bound() -> Bound<'static> {
        Bound {
            tenant: "acme",
            user: Some("ada"),
            agent: "ci",
            session: Some("s"),
            conversation: Some("c"),
            tool: "write",
            arguments: "{}",
        }
    }

    /// Each bound field with other values, one at a time. Without `..`: a new field does not compile until it is here.
    fn changed() -> Vec<(&'static str, Bound<'static>)> {
        let Bound { tenant, user, agent, session, conversation, tool, arguments } = bound();
        assert!(user.is_some() && session.is_some() && conversation.is_some());
        let other = |text: &str| -> [&'static str; 3] {
            // Another one, a longer one, and none.
            [&*String::leak(format!("x{text}")), &*String::leak(format!("{text}x")), ""]
        };
        let mut all = Vec::new();
        for text in other(tenant) {
            all.push(("tenant", Bound { tenant: text, ..bound() }));
        }
        for text in other(agent) {
            all.push(("agent", Bound { agent: text, ..bound() }));
        }
        for text in other(tool) {
            all.push(("tool", Bound { tool: text, ..bound() }));
        }
        for text in other(arguments) {
            all.push(("arguments", Bound { arguments: text, ..bound() }));
        }
        for text in other("ada").map(Some).into_iter().chain([None]) {
            all.push(("user", Bound { user: text, ..bound() }));
            all.push(("session", Bound { session: text, ..bound() }));
            all.push(("conversation", Bound { conversation: text, ..bound() }));
        }
        // What moves from one field to the next is another call, too.
        all.push(("tenant and user", Bound { tenant: "acmea", user: Some("da"), ..bound() }));
        all.push(("tool and arguments", Bound { tool: "write{", arguments: "}", ..bound() }));
        all
    }

    #[test]
    fn whatever_a_seal_is_bound_to_is_refused_when_it_changes() {
        let seals = Seals::new();
        let state = || State { asked: Some("f".into()), ..State::default() };
        let sealed = seals.seal(state(), &bound().seal()).unwrap();
        assert!(seals.open(&sealed, &bound().seal()).is_ok());
        for (what, other) in changed() {
            assert_ne!(other, bound(), "{what}");
            assert!(seals.open(&sealed, &other.seal()).is_err(), "{what}: {other:?}");
        }
        // Everything that a call's context says about who calls is taken from it.
        let context = CallContext {
            user: Some("ada".into()),
            session: Some("s".into()),
            conversation: Some("c".into()),
            ..CallContext::new("acme", "ci")
        };
        let arguments = Arguments::from(json!({}));
        assert_eq!(Bound::new(&context, "write", &arguments), bound());
    }

    /// Parts that would read the same one after the other are not the same.
    #[test]
    fn parts_do_not_run_into_each_other() {
        let seals = Seals::new();
        let pairs = [
            // Absent, and empty.
            (Bound { user: None, ..bound() }, Bound { user: Some(""), ..bound() }),
            (Bound { session: None, ..bound() }, Bound { session: Some(""), ..bound() }),
            (Bound { conversation: None, ..bound() }, Bound { conversation: Some(""), ..bound() }),
            // With the mark between two parts within one of them.
            (
                Bound { tenant: "a\u{1}b", user: Some("c"), ..bound() },
                Bound { tenant: "a", user: Some("b\u{1}c"), ..bound() },
            ),
            (
                Bound { tool: "a\u{1}b", arguments: "c", ..bound() },
                Bound { tool: "a", arguments: "b\u{1}c", ..bound() },
            ),
        ];
        for (one, other) in pairs {
            let sealed = seals.seal(State::default(), &one.seal()).unwrap();
            assert!(seals.open(&sealed, &one.seal()).is_ok(), "the control");
            assert!(seals.open(&sealed, &other.seal()).is_err(), "{one:?} {other:?}");
        }
    }

    /// Where no more used seals can be known, none counts.
    #[test]
    fn a_seal_that_could_not_be_remembered_does_not_count() {
        let seals = Seals::new();
        let state = |number: usize| State { nonce: number.to_string(), ..State::default() };
        assert!((0..MOST_USED).all(|number| seals.use_once(&state(number))));
        assert!(!seals.use_once(&state(MOST_USED)), "one too many");
        assert!(!seals.use_once(&state(0)), "nor one that was used");
    }

    #[test]
    fn an_answer_is_one_to_its_own_question_only() {
        let asked = State { asked: Some("one".into()), ..State::default() };
        let agreed = State { approved: Some("one".into()), ..State::default() };
        assert!(asked.asked_about("one") && agreed.agreed_to("one"));
        for (state, fingerprint) in [(&asked, "two"), (&asked, ""), (&agreed, "two"), (&agreed, "")] {
            assert!(!state.asked_about(fingerprint) && !state.agreed_to(fingerprint), "{state:?}");
        }
        assert!(!asked.agreed_to("one"), "to be asked is not to agree");
        assert!(!agreed.asked_about("one"));
        assert!(!State::default().asked_about("") && !State::default().agreed_to(""));
    }

    #[test]
    fn a_seal_runs_out() {
        let seals = Seals::new();
        let binding = bound().seal();
        let old = SealOptions::new().associated_data(&binding.0).ttl(Duration::ZERO);
        let sealed = seals.codec.seal_json_with(&State::default(), &old).unwrap();
        std::thread::sleep(Duration::from_millis(1100));
        assert!(seals.open(&sealed, &binding).is_err());
        assert!(LASTS <= Duration::from_secs(15 * 60));
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
