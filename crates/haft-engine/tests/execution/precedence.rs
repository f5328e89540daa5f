//! The order of policy in every combination, as a call meets it: mode × lists × side effects × the tool's wish ×
//! prompting × grant × `confirms` × rules.

use crate::common::{Setup, call, tool};
use haft_core::{ApprovalMode, ErrorCode, Footprint, Resource};
use haft_engine::Preview;
use haft_guard::{
    Covers, Grant, Lasts, ListPolicy, PolicySet,
    policy::{Conditions, Effect, Rule},
};
use std::sync::Arc;

#[tokio::test]
async fn in_every_combination() {
    let mut seen = 0;
    for mode in [ApprovalMode::Auto, ApprovalMode::Prompt, ApprovalMode::Deny] {
        for bits in 0_u16..1024 {
            let flag = |at: u16| bits >> at & 1 == 1;
            let [listed, denied, effects, asks, prompt, granted, confirms] = [0, 1, 2, 3, 4, 5, 6].map(flag);
            let [allows, questions, denies] = [7, 8, 9].map(flag);
            let lists = ListPolicy {
                enabled: true,
                mode,
                allowlist: listed.then(|| "tool".to_owned()).into_iter().collect(),
                denylist: denied.then(|| "tool".to_owned()).into_iter().collect(),
                prompt_side_effects: prompt,
            };
            let when = Conditions {
                tools: vec!["tool".into()],
                hosts: vec!["example.com".into()],
                ..Conditions::default()
            };
            let rules = [(allows, Effect::Allow), (questions, Effect::Ask), (denies, Effect::Deny)];
            let rules = rules.into_iter().filter(|(there, _)| *there).map(|(_, effect)| {
                let confirms = confirms && effect == Effect::Allow;
                Rule { confirms, ..Rule::new(effect.to_string(), effect, when.clone()) }
            });
            let covers =
                Covers::Host { tool: "tool".into(), host: "example.com".into(), fixed: Default::default() };
            let grants = granted.then(|| Grant::new("g", "local", covers, Lasts::Always));
            let policy = PolicySet::new(lists, rules.collect()).unwrap();
            let policy = Arc::new(policy.with_grants(grants.into_iter().collect()));
            let mut made = tool("tool", |_, _| async { Ok(()) });
            made = if effects { made.effects() } else { made };
            made = if asks { made.asks() } else { made };
            let made = made.on_footprint(|_| Footprint::reads([Resource::Host("example.com".into())]));
            let house = Setup { policy, ..Setup::default() }.build([made]);

            let expected = if denied || denies {
                "deny"
            } else if questions {
                "ask"
            } else if allows {
                if asks && !confirms && !granted { "ask" } else { "allow" }
            } else if granted {
                "allow"
            } else if mode == ApprovalMode::Deny && !listed {
                "deny"
            } else if asks || (mode == ApprovalMode::Prompt && prompt && effects && !listed) {
                "ask"
            } else {
                "allow"
            };
            let found = match house.engine.plan(vec![call("tool")]).await.remove(0) {
                Preview::Ready { .. } => "allow",
                Preview::NeedsApproval { .. } => "ask",
                Preview::Refused(error) if error.code == ErrorCode::ToolDenied => "deny",
                other => panic!("{other:?}"),
            };
            assert_eq!(found, expected, "{mode:?} {bits:010b}");
            seen += 1;
        }
    }
    assert_eq!(seen, 3 * 1024);
}
