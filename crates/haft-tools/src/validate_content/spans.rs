//! Where each value and key of a content stands: a tree of byte ranges, asked by JSON pointer.

use std::collections::BTreeMap;
use std::ops::Range;

/// The place of one value, and of what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) inside: Inside,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Inside {
    Nothing,
    Items(Vec<Node>),
    Members(BTreeMap<String, Member>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) key: Range<usize>,
    pub(super) value: Node,
}

impl Node {
    pub(super) fn leaf(span: Range<usize>) -> Self {
        Self { span, inside: Inside::Nothing }
    }

    /// The value at `pointer`.
    pub(super) fn value_at(&self, pointer: &str) -> Option<&Node> {
        segments(pointer).try_fold(self, |node, segment| node.child(&segment).map(|(_, value)| value))
    }

    /// The key that leads to the value at `pointer`; none for items of arrays and for the whole content.
    pub(super) fn key_at(&self, pointer: &str) -> Option<Range<usize>> {
        let (parent, name) = pointer.rsplit_once('/')?;
        let (key, _) = self.value_at(parent)?.child(&unescape(name))?;
        key.cloned()
    }

    /// The innermost value on the way to `pointer` that is there.
    pub(super) fn nearest_to(&self, pointer: &str) -> &Node {
        let mut node = self;
        for segment in segments(pointer) {
            match node.child(&segment) {
                Some((_, value)) => node = value,
                None => break,
            }
        }
        node
    }

    fn child(&self, segment: &str) -> Option<(Option<&Range<usize>>, &Node)> {
        match &self.inside {
            Inside::Nothing => None,
            Inside::Items(items) => Some((None, items.get(segment.parse::<usize>().ok()?)?)),
            Inside::Members(members) => members.get(segment).map(|member| (Some(&member.key), &member.value)),
        }
    }
}

fn segments(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(unescape)
}

fn unescape(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_escaped_and_found() {
        let mut pointer = String::new();
        haft_schema::pointer::push_segment(&mut pointer, "a/b~c");
        assert_eq!(pointer, "/a~1b~0c");
        let member = Member { key: 1..8, value: Node::leaf(10..11) };
        let root = Node { span: 0..12, inside: Inside::Members([("a/b~c".to_owned(), member)].into()) };
        assert_eq!(root.value_at(&pointer), Some(&Node::leaf(10..11)));
        assert_eq!(root.key_at(&pointer), Some(1..8));
        assert_eq!(root.key_at(""), None);
        assert_eq!(root.value_at("/missing"), None);
        assert_eq!(root.nearest_to("/missing/0"), &root);
    }
}
