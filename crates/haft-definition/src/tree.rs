//! A value that knows where in the text its parts are.

use serde_json::Value;

/// A value, and where it begins.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) at: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    /// Anything that has no parts.
    Scalar(Value),
    List(Vec<Node>),
    Table(Vec<(Key, Node)>),
}

/// The name of a member, and where it begins.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) at: usize,
}

impl Node {
    /// The value without the places.
    pub(crate) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::List(items) => items.iter().map(Node::to_value).collect(),
            Kind::Table(members) => {
                members.iter().map(|(key, value)| (key.name.clone(), value.to_value())).collect()
            }
        }
    }

    /// The member of that name.
    pub(crate) fn member_mut(&mut self, name: &str) -> Option<&mut Node> {
        match &mut self.kind {
            Kind::Table(members) => {
                members.iter_mut().find(|(key, _)| key.name == name).map(|(_, value)| value)
            }
            Kind::Scalar(_) | Kind::List(_) => None,
        }
    }

    /// Where the value is that the steps lead to, as far as they lead anywhere; for the last of them, where its key is.
    pub(crate) fn key_at(&self, steps: &[String]) -> usize {
        let Some((last, before)) = steps.split_last() else {
            return self.at;
        };
        let (parent, led) = self.follow(before);
        match &parent.kind {
            Kind::Table(members) if led => {
                members.iter().find(|(key, _)| key.name == *last).map_or(parent.at, |(key, _)| key.at)
            }
            Kind::List(items) if led => item(items, last).map_or(parent.at, |item| item.at),
            _ => parent.at,
        }
    }

    /// Where the value is that the steps lead to, as far as they lead anywhere.
    pub(crate) fn value_at(&self, steps: &[String]) -> usize {
        self.follow(steps).0.at
    }

    fn follow(&self, steps: &[String]) -> (&Node, bool) {
        let mut node = self;
        for step in steps {
            let next = match &node.kind {
                Kind::Table(members) => {
                    members.iter().find(|(key, _)| key.name == *step).map(|(_, value)| value)
                }
                Kind::List(items) => item(items, step),
                Kind::Scalar(_) => None,
            };
            match next {
                Some(next) => node = next,
                None => return (node, false),
            }
        }
        (node, true)
    }
}

fn item<'n>(items: &'n [Node], step: &str) -> Option<&'n Node> {
    items.get(step.parse::<usize>().ok()?)
}
