//! Finding secrets: one pass for the literals, then shapes where one was found.
//!
//! Two questions are answered at once. Where are secrets, if nothing more comes? And from where on could bytes that
//! have not come yet still change the answer? For the second the states of the automata are looked at: as long as one
//! is alive at the last byte, its candidate is open.

use super::{
    encoded, entropy,
    framed::FRAMED,
    literals::Literals,
    own::OWN,
    shape::{Frame, Shape, is_word},
    table::{ASSIGNED, TOKENS},
};
use regex_automata::{
    Anchored, MatchKind,
    dfa::{Automaton, StartKind, dense},
    nfa::thompson,
    util::{primitives::StateID, syntax},
};
use std::sync::OnceLock;

mod block;
use block::block;
pub(super) use block::{is_base64, line_break};

/// A secret: where it stands, and where what gives it away begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Where the name or literal begins that gave it away. Not to be cut off from it.
    pub(super) from: usize,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: &'static str,
}

/// What a text came to.
pub(super) struct Scan {
    /// Secrets, in the order in which they were found.
    pub(super) spans: Vec<Span>,
    /// From here on more bytes could matter.
    pub(super) open: usize,
}

/// Nothing longer than this is one secret, so that a stream is never held for long.
pub(super) const LONGEST: usize = 4096;
/// Nothing further away than this gives a secret away. A frame is bounded here, not by a count in its expression:
/// counts are what makes automata large.
const LONGEST_FRAME: usize = 256;
/// A block with a private key may be that long.
pub(super) const LONGEST_BLOCK: usize = 32 * 1024;
/// How far an end of a piece is moved back to the beginning of what it would cut through.
const LONGEST_RUN: usize = 512;

/// An automaton that begins where it is told to and reports every end.
pub(super) struct Machine {
    dfa: dense::DFA<Vec<u32>>,
    start: StateID,
}

impl Machine {
    fn new(pattern: &str) -> Option<Machine> {
        Machine::within(pattern, 4 << 20)
    }

    /// One that takes no more than so many bytes.
    pub(super) fn within(pattern: &str, most: usize) -> Option<Machine> {
        let dfa = dense::Builder::new()
            .syntax(syntax::Config::new().unicode(false).utf8(false))
            .thompson(thompson::Config::new().utf8(false).shrink(false).nfa_size_limit(Some(most)))
            .configure(
                dense::Config::new()
                    .start_kind(StartKind::Anchored)
                    .match_kind(MatchKind::All)
                    .accelerate(false)
                    .dfa_size_limit(Some(most))
                    .determinize_size_limit(Some(4 * most)),
            )
            .build(pattern)
            .ok()?;
        let start = dfa.universal_start_state(Anchored::Yes)?;
        Some(Machine { dfa, start })
    }

    /// Tells every end of a match that begins at `from`, and returns whether more bytes could give another one.
    pub(super) fn run(
        &self,
        bytes: &[u8],
        from: usize,
        longest: usize,
        mut matched: impl FnMut(usize),
    ) -> bool {
        let stop = bytes.len().min(from.saturating_add(longest));
        let mut state = self.start;
        for (at, &byte) in bytes.iter().enumerate().take(stop).skip(from) {
            state = self.dfa.next_state(state, byte);
            if self.dfa.is_special_state(state) {
                if self.dfa.is_match_state(state) {
                    matched(at);
                } else if self.dfa.is_dead_state(state) {
                    return false;
                }
            }
        }
        if self.dfa.is_match_state(self.dfa.next_eoi_state(state)) {
            matched(stop);
        }
        stop == bytes.len() && from + longest > stop
    }
}

/// A shape with its automata, which are built when they are needed first.
struct Known {
    shape: &'static Shape,
    value: OnceLock<Option<Machine>>,
    frame: OnceLock<Option<Machine>>,
}

impl Known {
    fn value(&self) -> Option<&Machine> {
        let any_case = if self.shape.frame == Frame::None { "" } else { "(?i)" };
        self.value.get_or_init(|| Machine::new(&format!("{any_case}(?:{})", self.shape.value))).as_ref()
    }

    fn frame(&self, pattern: &str) -> Option<&Machine> {
        self.frame.get_or_init(|| Machine::new(&format!("(?i)(?:{pattern})"))).as_ref()
    }
}

/// What stands between a name and its value: the rest of the name, quotes, an operator, quotes.
const ASSIGNMENT: &str = r#"[ \t\w.-]{0,20}[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"#;

const BLOCK_BEGIN: &str = "-----begin";

/// All shapes of one strength, ready to look for.
pub(super) struct Scanner {
    literals: Literals,
    /// Which shapes each literal may begin; an empty list is the block of a key.
    of_literal: Vec<Vec<usize>>,
    /// Literals with signs in them, of which a beginning at the end of a piece would be overlooked.
    with_signs: Vec<&'static str>,
    shapes: Vec<Known>,
    assignment: OnceLock<Option<Machine>>,
    is_full: bool,
}

impl Scanner {
    /// Everything.
    pub(super) fn full() -> &'static Scanner {
        static FULL: OnceLock<Scanner> = OnceLock::new();
        FULL.get_or_init(|| Scanner::new(true))
    }

    /// Only what has a look of its own.
    pub(super) fn results() -> &'static Scanner {
        static RESULTS: OnceLock<Scanner> = OnceLock::new();
        RESULTS.get_or_init(|| Scanner::new(false))
    }

    pub(super) fn new(is_full: bool) -> Scanner {
        let all = TOKENS.iter().chain(ASSIGNED).chain(FRAMED).chain(OWN);
        let shapes: Vec<Known> = all
            .filter(|shape| is_full || shape.in_results)
            .map(|shape| Known { shape, value: OnceLock::new(), frame: OnceLock::new() })
            .collect();
        let mut literals: Vec<&'static str> = vec![BLOCK_BEGIN, encoded::BEGIN];
        let mut of_literal: Vec<Vec<usize>> = vec![Vec::new(); 2];
        for (index, known) in shapes.iter().enumerate() {
            for literal in known.shape.literals {
                let place = literals.iter().position(|known| known == literal).unwrap_or_else(|| {
                    literals.push(literal);
                    of_literal.push(Vec::new());
                    literals.len() - 1
                });
                of_literal[place].push(index);
            }
        }
        let with_signs = literals.iter().filter(|text| !text.bytes().all(is_run)).copied().collect();
        let literals = Literals::new(literals);
        Scanner { literals, of_literal, with_signs, shapes, assignment: OnceLock::new(), is_full }
    }

    /// Builds every automaton now, and says which could not be.
    pub(super) fn build_all(&self) -> Vec<&'static str> {
        let mut failed = Vec::new();
        for known in &self.shapes {
            let frame = match known.shape.frame {
                Frame::None | Frame::Assignment => true,
                Frame::Name(pattern) | Frame::After(pattern) => known.frame(pattern).is_some(),
            };
            if known.value().is_none() || !frame || self.assignment().is_none() {
                failed.push(known.shape.id);
            }
        }
        failed
    }

    /// The rules of the collection that there are shapes for.
    pub(super) fn ids(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.shapes.iter().map(|known| known.shape.id).chain(["private-key"])
    }

    fn assignment(&self) -> Option<&Machine> {
        self.assignment.get_or_init(|| Machine::new(&format!("(?i){ASSIGNMENT}"))).as_ref()
    }

    /// Looks at bytes once.
    pub(super) fn scan(&self, bytes: &[u8]) -> Scan {
        let mut scan = Scan { spans: Vec::new(), open: bytes.len() };
        let mut frame_ends = Vec::new();
        self.literals.find(bytes, |literal, start, end| {
            let shapes = &self.of_literal[literal];
            if shapes.is_empty() {
                // Within a block there is none.
                let is_inside =
                    scan.spans.iter().rev().take(8).any(|span| span.start < start && start < span.end);
                match literal {
                    _ if is_inside => {}
                    0 => block(bytes, start, &mut scan),
                    _ => encoded::block(bytes, start, &mut scan),
                }
                return;
            }
            // Cheap looks before an automaton is started, each at most once for a literal, however many shapes it has.
            let (mut assigned, mut named) = (None, None);
            for &index in shapes {
                let known = &self.shapes[index];
                let may_be = match known.shape.frame {
                    Frame::None => may_be_token(bytes, start, end, known.shape.back),
                    Frame::Assignment => *assigned.get_or_insert_with(|| may_be_assigned_at(bytes, end)),
                    Frame::Name(_) => *named.get_or_insert_with(|| may_be_named_at(bytes, end)),
                    Frame::After(_) => true,
                };
                if !may_be {
                    continue;
                }
                self.candidate(known, bytes, (start, end), &mut scan, &mut frame_ends);
            }
        });
        if self.is_full {
            entropy::spans(bytes, &mut scan.spans);
        }
        scan.open = scan.open.min(self.open_literal(bytes));
        scan
    }

    fn candidate(
        &self,
        known: &Known,
        bytes: &[u8],
        (hit_start, hit_end): (usize, usize),
        scan: &mut Scan,
        frame_ends: &mut Vec<usize>,
    ) {
        let shape = known.shape;
        let Some(from) = hit_start.checked_sub(shape.back) else { return };
        if shape.boundary && from > 0 && is_word(bytes[from - 1]) {
            return;
        }
        let Some(value) = known.value() else { return };
        let machine = match shape.frame {
            Frame::None => None,
            Frame::Assignment => self.assignment(),
            Frame::Name(pattern) | Frame::After(pattern) => known.frame(pattern),
        };
        frame_ends.clear();
        let mut is_open = false;
        match (shape.frame, machine) {
            (Frame::None, _) => frame_ends.push(from),
            (_, None) => return,
            (_, Some(machine)) => {
                is_open = machine.run(bytes, hit_end, LONGEST_FRAME, |end| frame_ends.push(end))
            }
        }
        // The longest frame first, as a greedy expression would have it.
        for &start in frame_ends.iter().rev() {
            let mut best = None;
            is_open |= value.run(bytes, start, LONGEST, |end| {
                let at_most = end - start == LONGEST;
                if end > start && (at_most || shape.end.allows(bytes.get(end).copied())) {
                    best = Some(end);
                }
            });
            if let Some(end) = best
                && shape.is_secret(&bytes[start..end])
            {
                scan.spans.push(Span { from, start, end, kind: shape.kind });
                // What follows a literal at some distance may do so more than once: `curl -u a:b && curl -u c:d`.
                if !matches!(shape.frame, Frame::After(_)) {
                    break;
                }
            }
        }
        if is_open {
            scan.open = scan.open.min(from);
        }
    }

    /// Where a literal begins that the bytes end in the middle of.
    fn open_literal(&self, bytes: &[u8]) -> usize {
        let begun = |literal: &&'static str| {
            (1..literal.len())
                .rev()
                .find(|&length| {
                    let tail = bytes.len().checked_sub(length).map(|at| &bytes[at..]);
                    tail.is_some_and(|tail| tail.eq_ignore_ascii_case(&literal.as_bytes()[..length]))
                })
                .unwrap_or(0)
        };
        bytes.len() - self.with_signs.iter().map(begun).max().unwrap_or(0)
    }
}

/// Whether an operator can follow a name: a cheap look before the automaton is started. Where the bytes end before it
/// is clear, it may be.
fn may_be_assigned_at(bytes: &[u8], from: usize) -> bool {
    let rest = &bytes[from..];
    let near = &rest[..rest.len().min(24)];
    let is_between = |byte: u8| {
        is_word(byte) || byte.is_ascii_whitespace() || matches!(byte, b'.' | b'-' | b'\'' | b'"' | 0x0b)
    };
    match near.iter().find(|byte| !is_between(**byte)) {
        Some(byte) => matches!(byte, b'=' | b'>' | b':' | b'|' | b'?' | b','),
        None => near.len() == rest.len(),
    }
}

/// Whether a token can be around a literal: words are short, tokens are not. The bytes before it that belong to it, and
/// some after it, must be such as tokens consist of.
fn may_be_token(bytes: &[u8], start: usize, end: usize, back: usize) -> bool {
    let before = start.checked_sub(back).map(|from| &bytes[from..start]);
    let after = match back {
        0 => &bytes[end..bytes.len().min(end + 8)],
        _ => &[],
    };
    before.is_some_and(|before| before.iter().rev().all(|byte| is_run(*byte)))
        && after.iter().all(|byte| is_run(*byte) || matches!(byte, b'\\' | b'\r' | b'\n'))
}

/// Whether a value can be given to a name here: quotes and spaces, then `=` or `:`.
fn may_be_named_at(bytes: &[u8], from: usize) -> bool {
    let rest = &bytes[from..];
    let near = &rest[..rest.len().min(8)];
    match near.iter().find(|byte| !matches!(byte, b'"' | b'\'' | b'\\' | b' ' | b'\t')) {
        Some(byte) => matches!(byte, b'=' | b':'),
        None => near.len() == rest.len(),
    }
}

/// What a token may consist of. An end of a piece never stands within such a run, unless it is very long.
fn is_run(byte: u8) -> bool {
    const RUN: [bool; 256] = {
        let mut run = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            run[byte] = (byte as u8).is_ascii_alphanumeric()
                || matches!(byte as u8, b'_' | b'.' | b'~' | b'%' | b'|' | b'+' | b'/' | b'=' | b'-');
            byte += 1;
        }
        run
    };
    RUN[usize::from(byte)]
}

/// How far a text can be let go of: before what is open, not within a run, not between a name and its value.
pub(super) fn cut(bytes: &[u8], open: usize, spans: &mut [Span]) -> usize {
    let run = bytes[..open].iter().rev().take(LONGEST_RUN).take_while(|byte| is_run(**byte)).count();
    let mut cut = match run {
        // Of a very long run so much stays that what follows is still known to be one.
        LONGEST_RUN => open - 2 * entropy::LONGEST,
        _ => open - run,
    };
    spans.sort_by_key(|span| std::cmp::Reverse(span.end));
    // Those that end last first: moving back for one may move into another.
    for _ in 0..2 {
        for span in spans.iter() {
            if span.from < cut && cut < span.end {
                cut = span.from;
            }
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_can_be_built() {
        for is_full in [true, false] {
            assert_eq!(Scanner::new(is_full).build_all(), Vec::<&str>::new());
        }
    }

    #[test]
    fn every_shape_of_a_token_begins_with_its_literal() {
        for known in Scanner::new(true).shapes {
            assert!(!known.shape.literals.is_empty(), "{}", known.shape.id);
            assert!(
                known.shape.literals.iter().all(|text| *text == text.to_ascii_lowercase()),
                "{}",
                known.shape.id
            );
        }
    }
}
