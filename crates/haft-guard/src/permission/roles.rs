//! Roles: what viewers, contributors, editors and administrators may.

use super::PermissionStrings;
use foldhash::{HashMap, fast::RandomState};
use haft_core::{
    CallContext, RoleSupport, Tier, ToolDefinition,
    port::{Authorisation, Authoriser, BoxFuture, GuardError},
};
use std::{
    future::ready,
    hash::BuildHasher,
    sync::{PoisonError, RwLock},
};

/// What a role allows and denies.
///
/// ```
/// use haft_guard::Role;
/// let auditor = Role::new(["tool.*.read", "audit.*"]).denying(["tool.secrets.*"]);
/// assert_eq!(auditor.deny.len(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// Permissions, with wildcards.
    pub allow: Vec<String>,
    /// Permissions that it takes away, even where another role grants them.
    pub deny: Vec<String>,
}

impl Role {
    /// A role as a configuration writes it: `[TENANT/]NAME: PERMISSION …`, where `!` takes a permission away.
    ///
    /// ```
    /// use haft_guard::Role;
    /// let (tenant, name, role) = Role::read("acme/auditor: tool.*.read !tool.secrets.*")?;
    /// assert_eq!((tenant.as_deref(), name.as_str()), (Some("acme"), "auditor"));
    /// assert_eq!((role.allow, role.deny), (vec!["tool.*.read".into()], vec!["tool.secrets.*".into()]));
    /// assert!(Role::read("auditor tool.*").is_err());
    /// # Ok::<(), String>(())
    /// ```
    pub fn read(text: &str) -> Result<(Option<String>, String, Role), String> {
        let wrong = |why: &str| {
            format!("`{text}` is no role: {why}; write it like \"auditor: tool.*.read !tool.secrets.*\"")
        };
        let (name, permissions) =
            text.split_once(':').ok_or_else(|| wrong("it has no `:` after its name"))?;
        let (tenant, name) = match name.trim().split_once('/') {
            Some((tenant, name)) => (Some(tenant.trim()), name.trim()),
            None => (None, name.trim()),
        };
        let is_plain = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
        if !is_plain(name) || tenant.is_some_and(|tenant| !is_plain(tenant)) {
            return Err(wrong("its name is no single word"));
        }
        let mut role = Role::default();
        for permission in permissions.split([' ', ',', '\t']).filter(|permission| !permission.is_empty()) {
            match permission.strip_prefix('!') {
                Some("") => return Err(wrong("`!` stands alone")),
                Some(denied) => role.deny.push(denied.to_owned()),
                None => role.allow.push(permission.to_owned()),
            }
        }
        match role.allow.is_empty() && role.deny.is_empty() {
            true => Err(wrong("it names no permission")),
            false => Ok((tenant.map(str::to_owned), name.to_owned(), role)),
        }
    }

    /// A role that allows these.
    pub fn new<P: Into<String>>(allow: impl IntoIterator<Item = P>) -> Self {
        Role { allow: allow.into_iter().map(Into::into).collect(), deny: Vec::new() }
    }

    /// This role, which denies these permissions.
    pub fn denying<P: Into<String>>(mut self, deny: impl IntoIterator<Item = P>) -> Self {
        self.deny.extend(deny.into_iter().map(Into::into));
        self
    }

    /// A role that comes with haft, by its name.
    ///
    /// Each includes the one before: a viewer reads, a contributor also writes, an editor also runs, an administrator
    /// may everything.
    pub fn built_in(name: &str) -> Option<Role> {
        const VIEWER: &[&str] = &["tool.*.read", "tool.*.search", "tool.*.list"];
        const CONTRIBUTOR: &[&str] = &["tool.*.write", "tool.*.create", "tool.system.validate"];
        const EDITOR: &[&str] = &["tool.*.delete", "tool.*.execute", "tool.*.run", "tool.*.send"];
        let parts: &[&[&str]] = match name {
            "viewer" => &[VIEWER],
            "contributor" => &[VIEWER, CONTRIBUTOR],
            "editor" => &[VIEWER, CONTRIBUTOR, EDITOR],
            "admin" => &[&["*"]],
            _ => return None,
        };
        Some(Role::new(parts.iter().flat_map(|part| part.iter().copied())))
    }
}

/// Permissions by role, for each tenant its own.
///
/// What a caller may is what its roles and its own permissions allow, less what any of them denies; a denial is a
/// role's, or a permission on the context that begins with `!`. An unknown role allows nothing. Answers are remembered
/// until anything here changes; then all are forgotten at once.
///
/// ```
/// use haft_core::{CallContext, Tier, ToolDefinition, port::Authorisation};
/// use haft_guard::{Permissions, Role};
/// let permissions = Permissions::default();
/// permissions.define("acme", "deployer", Role::new(["tool.deploy.*"]));
///
/// let mut definition = ToolDefinition::new("deploy", "Deploys");
/// definition.required_permissions = vec!["tool.deploy.run".into()];
/// let mut caller = CallContext::new("acme", "agent");
/// (caller.roles, caller.tier) = (vec!["deployer".into()], Tier::Teams);
/// assert_eq!(permissions.check(&caller, &definition), Authorisation::Granted);
/// caller.tenant = "other".into();
/// assert!(matches!(permissions.check(&caller, &definition), Authorisation::Denied { .. }));
/// ```
#[derive(Default)]
pub struct Permissions {
    book: RwLock<Book>,
    hasher: RandomState,
}

#[derive(Default)]
struct Book {
    /// By tenant and name.
    roles: HashMap<(String, String), Role>,
    /// Counted in entries, not in keys: two questions with the same hash stand side by side.
    remembered: HashMap<u64, Vec<(Question, Authorisation)>>,
    entries: usize,
}

/// More are not remembered: then all are forgotten.
const MOST_REMEMBERED: usize = 10_000;

/// Everything that an answer depends on, apart from the roles themselves.
#[derive(PartialEq, Eq)]
struct Question {
    own_roles: bool,
    tenant: String,
    roles: Vec<String>,
    permissions: Vec<String>,
    required: Vec<String>,
}

impl Question {
    fn is(&self, context: &CallContext, definition: &ToolDefinition) -> bool {
        self.own_roles == has_own_roles(context.tier)
            && *self.tenant == *context.tenant
            && self.roles == context.roles
            && self.permissions == context.permissions
            && self.required == definition.required_permissions
    }
}

impl Permissions {
    /// Defines a role of a tenant. One with the name of a built-in takes its place, for that tenant alone.
    pub fn define(&self, tenant: impl Into<String>, name: impl Into<String>, role: Role) {
        self.change(|roles| roles.insert((tenant.into(), name.into()), role));
    }

    /// Defines a role of every tenant. One that a tenant has of the same name comes before it.
    pub fn define_for_all(&self, name: impl Into<String>, role: Role) {
        // No caller has an empty tenant.
        self.define("", name, role);
    }

    /// Removes a role of a tenant. A built-in of that name holds again.
    pub fn remove(&self, tenant: &str, name: &str) -> bool {
        self.change(|roles| roles.remove(&(tenant.to_owned(), name.to_owned()))).is_some()
    }

    /// Changes roles and forgets every answer, in one step: no call is answered by what held before.
    fn change<T>(&self, change: impl FnOnce(&mut HashMap<(String, String), Role>) -> T) -> T {
        let mut book = self.book.write().unwrap_or_else(PoisonError::into_inner);
        book.remembered.clear();
        book.entries = 0;
        change(&mut book.roles)
    }

    /// Whether a caller has what a tool requires, and why not.
    pub fn check(&self, context: &CallContext, definition: &ToolDefinition) -> Authorisation {
        if definition.required_permissions.is_empty() {
            return Authorisation::Granted;
        }
        let place = self.hasher.hash_one((
            has_own_roles(context.tier),
            &*context.tenant,
            &context.roles,
            &context.permissions,
            &definition.required_permissions,
        ));
        {
            let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
            let same = book.remembered.get(&place).into_iter().flatten();
            if let Some((_, answer)) = same.into_iter().find(|(question, _)| question.is(context, definition))
            {
                return answer.clone();
            }
        }
        // Answered and remembered under one lock, so that no answer outlives the roles that it came from.
        let mut book = self.book.write().unwrap_or_else(PoisonError::into_inner);
        let answer = decide(&book.roles, context, definition);
        if book.entries >= MOST_REMEMBERED {
            book.remembered.clear();
            book.entries = 0;
        }
        let question = Question {
            own_roles: has_own_roles(context.tier),
            tenant: context.tenant.to_string(),
            roles: context.roles.clone(),
            permissions: context.permissions.clone(),
            required: definition.required_permissions.clone(),
        };
        book.remembered.entry(place).or_default().push((question, answer.clone()));
        book.entries += 1;
        answer
    }
}

/// Whether roles of one's own count in a tier. Those that come with haft count in every one.
fn has_own_roles(tier: Tier) -> bool {
    tier.role_support() >= RoleSupport::Full
}

/// A role of a caller.
struct Held<'a> {
    name: &'a String,
    /// `None` where there is no such role.
    role: Option<Role>,
    /// Whether the licence includes it. What one that is not included takes away is taken away all the same.
    counts: bool,
}

fn held<'a>(book: &HashMap<(String, String), Role>, context: &'a CallContext) -> Vec<Held<'a>> {
    let own_roles = has_own_roles(context.tier);
    let held = context.roles.iter().map(|name| {
        let of = |tenant: &str| book.get(&(tenant.to_owned(), name.clone())).cloned();
        match of(&context.tenant).or_else(|| of("")) {
            Some(own) => Held { name, role: Some(own), counts: own_roles },
            None => Held { name, role: Role::built_in(name), counts: true },
        }
    });
    held.collect()
}

/// The decision itself: deny beats allow, and what nobody allows is denied.
fn decide(
    book: &HashMap<(String, String), Role>,
    context: &CallContext,
    definition: &ToolDefinition,
) -> Authorisation {
    let roles = held(book, context);
    for required in &definition.required_permissions {
        let covers = |held: &String| PermissionStrings::covers(held, required);
        let denied = |reason: String| Authorisation::Denied { missing: required.clone(), reason };
        let denies = |held: &&Held<'_>| held.role.as_ref().is_some_and(|role| role.deny.iter().any(covers));
        if let Some(Held { name, .. }) = roles.iter().find(denies) {
            return denied(format!("the role `{name}` denies it"));
        }
        let minus = context.permissions.iter().filter_map(|held| held.strip_prefix('!'));
        if minus.into_iter().any(|held| PermissionStrings::covers(held, required)) {
            return denied("it was taken away from this caller".to_owned());
        }
        let allows = |held: &&Held<'_>| held.role.as_ref().is_some_and(|role| role.allow.iter().any(covers));
        if roles.iter().filter(|held| held.counts).any(|held| allows(&held))
            || context.permissions.iter().any(covers)
        {
            continue;
        }
        // What a better licence would allow is refused with its name.
        if let Some(Held { name, .. }) = roles.iter().filter(|held| !held.counts).find(allows) {
            let needed = Tier::ALL.into_iter().find(|tier| has_own_roles(*tier)).unwrap_or(Tier::Enterprise);
            return Authorisation::Unlicensed {
                what: format!("the role `{name}`, which is not haft's own,"),
                needed,
            };
        }
        let unknown = roles.iter().find(|held| held.role.is_none()).map(|held| held.name);
        let names: Vec<&str> = context.roles.iter().map(String::as_str).collect();
        return denied(match (unknown, names.is_empty()) {
            (Some(unknown), _) => format!("there is no role `{unknown}` here, and nothing else grants it"),
            (None, true) => "the caller has no role, and nobody granted it".to_owned(),
            (None, false) => format!("the caller's roles ({}) do not include it", names.join(", ")),
        });
    }
    Authorisation::Granted
}

impl Authoriser for Permissions {
    fn authorise<'a>(
        &'a self,
        context: &'a CallContext,
        definition: &'a ToolDefinition,
    ) -> BoxFuture<'a, Result<Authorisation, GuardError>> {
        Box::pin(ready(Ok(self.check(context, definition))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(required: &[&str]) -> ToolDefinition {
        let mut definition = ToolDefinition::new("tool", "A tool");
        definition.required_permissions = required.iter().map(|&name| name.to_owned()).collect();
        definition
    }

    fn caller(roles: &[&str], permissions: &[&str]) -> CallContext {
        let mut context = CallContext::new("acme", "agent");
        context.tier = Tier::Enterprise;
        context.roles = roles.iter().map(|&name| name.to_owned()).collect();
        context.permissions = permissions.iter().map(|&name| name.to_owned()).collect();
        context
    }

    fn reason(answer: Authorisation) -> String {
        match answer {
            Authorisation::Granted => "granted".to_owned(),
            Authorisation::Denied { missing, reason } => format!("{missing}: {reason}"),
            Authorisation::NotListed { agent } => format!("not listed for {agent}"),
            Authorisation::Unlicensed { what, needed } => format!("{what}: {needed:?}"),
        }
    }

    #[test]
    fn roles_in_a_table() {
        let permissions = Permissions::default();
        permissions.define("acme", "careful", Role::new(["tool.*"]).denying(["tool.*.delete"]));
        let (read, write, delete, admin) =
            ("tool.filesystem.read", "tool.filesystem.write", "tool.filesystem.delete", "haft.admin");
        let cases: [(&[&str], &[&str], [bool; 4]); 11] = [
            (&[], &[], [false; 4]),
            (&["viewer"], &[], [true, false, false, false]),
            (&["contributor"], &[], [true, true, false, false]),
            (&["editor"], &[], [true, true, true, false]),
            (&["admin"], &[], [true; 4]),
            (&["careful"], &[], [true, true, false, false]),
            (&["admin", "careful"], &[], [true, true, false, true]),
            (&["viewer"], &["tool.filesystem.write"], [true, true, false, false]),
            (&["admin"], &["!tool.filesystem.*"], [false, false, false, true]),
            (&["Viewer"], &[], [false; 4]),
            (&[], &["*", "!haft.*"], [true, true, true, false]),
        ];
        for (roles, own, expected) in cases {
            for (required, expected) in [read, write, delete, admin].into_iter().zip(expected) {
                for _ in 0..2 {
                    let answer = permissions.check(&caller(roles, own), &tool(&[required]));
                    assert_eq!(answer == Authorisation::Granted, expected, "{roles:?} {own:?} {required}");
                }
            }
        }
    }

    #[test]
    fn all_that_is_required_is_required() {
        let permissions = Permissions::default();
        let both = tool(&["tool.a.read", "tool.a.write"]);
        assert_eq!(
            reason(permissions.check(&caller(&["viewer"], &[]), &both)),
            "tool.a.write: the caller's roles (viewer) do not include it"
        );
        assert_eq!(permissions.check(&caller(&[], &[]), &tool(&[])), Authorisation::Granted);
    }

    #[test]
    fn reasons_say_who_denies() {
        let permissions = Permissions::default();
        permissions.define("acme", "careful", Role::new(["*"]).denying(["tool.*.delete"]));
        let cases: [(&[&str], &[&str], &str); 4] = [
            (&["careful"], &[], "the role `careful` denies it"),
            (&["ghost"], &[], "there is no role `ghost` here, and nothing else grants it"),
            (&[], &[], "the caller has no role, and nobody granted it"),
            (&["admin"], &["!*"], "it was taken away from this caller"),
        ];
        for (roles, own, expected) in cases {
            let answer = permissions.check(&caller(roles, own), &tool(&["tool.a.delete"]));
            assert_eq!(reason(answer), format!("tool.a.delete: {expected}"));
        }
    }

    /// A key of the lowest tier calls what that tier has, and a better role never means less.
    #[test]
    fn roles_that_come_with_haft_count_in_every_tier() {
        let permissions = Permissions::default();
        permissions.define("acme", "careful", Role::new(["*"]).denying(["tool.a.delete"]));
        let granted = |tier: Tier, roles: &[&str], required: &str| {
            let context = CallContext { tier, ..caller(roles, &[]) };
            permissions.check(&context, &tool(&[required])) == Authorisation::Granted
        };
        let roles = ["viewer", "contributor", "editor", "admin"];
        for tier in Tier::ALL {
            for required in ["tool.a.read", "tool.a.write", "tool.a.delete", "haft.admin"] {
                for (lesser, better) in roles.iter().zip(&roles[1..]) {
                    assert!(
                        granted(tier, &[better], required) || !granted(tier, &[lesser], required),
                        "{tier:?} {lesser} {better} {required}"
                    );
                    let both = granted(tier, &[lesser, "careful"], required);
                    assert!(
                        both || !granted(tier, &[lesser], required) || required == "tool.a.delete",
                        "{tier:?} {lesser} {required}"
                    );
                }
            }
            assert!(granted(tier, &["editor"], "tool.a.write"), "{tier:?}");
            assert!(!granted(tier, &["editor", "careful"], "tool.a.delete"), "{tier:?}: it takes away");
        }
    }

    #[test]
    fn roles_of_ones_own_grant_nothing_beyond_the_licence() {
        let permissions = Permissions::default();
        permissions.define("acme", "careful", Role::new(["*"]));
        permissions.define("acme", "editor", Role::new(["*"]));
        for (roles, required, from) in [
            (&["careful"][..], "tool.a.read", Tier::Teams),
            (&["editor"], "haft.admin", Tier::Teams),
            (&["viewer", "careful"], "tool.a.read", Tier::Core),
            (&["viewer", "careful"], "tool.a.write", Tier::Teams),
            (&["ghost", "admin"], "haft.admin", Tier::Core),
        ] {
            for tier in Tier::ALL {
                let context = CallContext { tier, ..caller(roles, &[]) };
                for _ in 0..2 {
                    let answer = permissions.check(&context, &tool(&[required]));
                    match tier >= from {
                        true => assert_eq!(answer, Authorisation::Granted, "{tier:?} {roles:?}"),
                        false => assert!(
                            matches!(answer, Authorisation::Unlicensed { needed: Tier::Teams, .. }),
                            "{tier:?} {roles:?} {required}: {answer:?}"
                        ),
                    }
                }
            }
        }
        // Another tenant's editor is the one that comes with haft.
        let theirs = CallContext { tier: Tier::Core, tenant: "other".into(), ..caller(&["editor"], &[]) };
        assert_eq!(permissions.check(&theirs, &tool(&["tool.a.read"])), Authorisation::Granted);
    }

    #[test]
    fn a_change_holds_at_once_and_for_its_tenant_alone() {
        let permissions = Permissions::default();
        let (mut ours, needs) = (caller(&["viewer"], &[]), tool(&["tool.a.write"]));
        let granted = |context: &CallContext| permissions.check(context, &needs) == Authorisation::Granted;
        assert!(!granted(&ours) && !granted(&ours), "the second time from memory");
        permissions.define("acme", "viewer", Role::new(["tool.*"]));
        assert!(granted(&ours) && granted(&ours));
        ours.tenant = "other".into();
        assert!(!granted(&ours));
        ours.tenant = "acme".into();
        assert!(permissions.remove("acme", "viewer") && !permissions.remove("acme", "viewer"));
        assert!(!granted(&ours));
    }

    #[test]
    fn a_role_of_every_tenant_stands_behind_a_tenants_own() {
        let permissions = Permissions::default();
        permissions.define_for_all("auditor", Role::new(["audit.*"]));
        permissions.define("acme", "auditor", Role::new(["tool.*"]));
        let mut ours = caller(&["auditor"], &[]);
        let granted = |context: &CallContext, required| {
            permissions.check(context, &tool(&[required])) == Authorisation::Granted
        };
        assert!(granted(&ours, "tool.read") && !granted(&ours, "audit.read"));
        ours.tenant = "other".into();
        assert!(!granted(&ours, "tool.read") && granted(&ours, "audit.read"));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let permissions = Permissions::default();
        for number in 0..MOST_REMEMBERED + 5 {
            permissions.check(&caller(&[], &[&format!("p{number}")]), &tool(&["x"]));
        }
        assert!(permissions.book.read().unwrap().entries <= MOST_REMEMBERED);
    }
}
