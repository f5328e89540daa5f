//! From what the parser made of a line to its parts.

use super::{
    line::{Aside, Part, Unread},
    screen,
    word::{self, Word},
    wrapper::{Role, Seen, role},
};
use brush_parser::{
    Parser, ParserOptions, SourceInfo,
    ast::{
        AndOr, Command, CommandPrefixOrSuffixItem as Item, CompoundCommand, CompoundList, IoFileRedirectKind,
        IoFileRedirectTarget, IoRedirect, Pipeline, Program, RedirectList, SimpleCommand,
    },
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The most parts of a line. More are one unread part.
const MOST: usize = 64;
/// How often a line may be in a line: `sh -c "sh -c '…'"`.
const DEEPEST: usize = 3;

/// Names that a loop may give its values to: none of them means anything to a program.
const LOOP_NAMES: &[&str] = &[
    "crate", "d", "dir", "f", "file", "i", "item", "j", "k", "line", "m", "n", "name", "p", "pkg", "t",
    "test", "x",
];

/// Collects the parts of a line.
pub(super) struct Walk {
    parts: Vec<Part>,
    depth: usize,
    /// Whether the shell may be in another folder by now.
    moved: bool,
    /// How many programs were named by a relative path so far.
    relative: usize,
}

impl Walk {
    /// The parts of a line.
    pub(super) fn of(text: &str) -> Vec<Part> {
        let mut walk = Walk { parts: Vec::new(), depth: 0, moved: false, relative: 0 };
        walk.line(text);
        if walk.parts.len() > MOST {
            // Those that are there are still looked at by what denies.
            walk.unread(Unread::TooMany);
        }
        walk.parts
    }

    fn add(&mut self, part: Part) {
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
    }

    fn unread(&mut self, why: Unread) {
        self.add(Part::Unread(why));
    }

    fn line(&mut self, text: &str) {
        match parse(text) {
            Ok(program) => program.complete_commands.iter().for_each(|list| self.list(list)),
            Err(why) => {
                self.unread(why);
                // A shell runs what stands before a line that it cannot read.
                if why == Unread::Syntax && text.contains('\n') {
                    text.lines().for_each(|line| self.inner(line));
                }
            }
        }
    }

    /// A line within the line, which is read only so that what is denied in it is seen.
    fn inner(&mut self, text: &str) {
        if self.depth < DEEPEST && self.parts.len() <= MOST {
            self.depth += 1;
            self.line(text);
            self.depth -= 1;
        }
    }

    fn list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            self.pipeline(&item.0.first);
            for next in &item.0.additional {
                match next {
                    AndOr::And(pipeline) | AndOr::Or(pipeline) => self.pipeline(pipeline),
                }
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        // A word of the language to some shells, a program to others.
        if pipeline.timed.is_some() {
            self.add(Part::Harmless(vec![Word::Exact("time".to_owned())]));
        }
        pipeline.seq.iter().for_each(|command| self.command(command));
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                self.compound(compound);
                self.redirects(redirects.as_ref());
            }
            Command::Function(function) => {
                self.unread(Unread::Language);
                self.compound(&function.body.0);
                self.redirects(function.body.1.as_ref());
            }
            Command::ExtendedTest(_) => self.unread(Unread::Language),
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(subshell) => {
                let moved = self.moved;
                self.list(&subshell.list);
                self.moved = moved;
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition);
                self.list(&clause.then);
                for other in clause.elses.iter().flatten() {
                    if let Some(condition) = &other.condition {
                        self.list(condition);
                    }
                    self.list(&other.body);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.repeated(&[&clause.0, &clause.1.list]);
            }
            CompoundCommand::ForClause(clause) => {
                if !LOOP_NAMES.contains(&clause.variable_name.as_str()) {
                    self.add(Part::Aside(Aside::Sets));
                }
                for value in clause.values.iter().flatten() {
                    self.word(&value.value);
                }
                self.repeated(&[&clause.body.list]);
            }
            CompoundCommand::CaseClause(clause) => {
                self.unread(Unread::Language);
                clause.cases.iter().filter_map(|case| case.cmd.as_ref()).for_each(|list| self.list(list));
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                self.unread(Unread::Language);
                self.list(&clause.body.list);
            }
            // To some shells this is a subshell in a subshell.
            CompoundCommand::Arithmetic(arithmetic) => {
                self.unread(Unread::Language);
                self.inner(&arithmetic.expr.value);
            }
        }
    }

    /// Lists that may run again, in the folder that they went to.
    fn repeated(&mut self, lists: &[&CompoundList]) {
        let (moved, relative) = (self.moved, self.relative);
        lists.iter().for_each(|list| self.list(list));
        if !moved && self.moved && self.relative > relative {
            self.unread(Unread::Moved);
        }
    }

    /// What a command by its relative path is depends on the folder.
    fn place(&mut self, words: &[Word]) {
        let Some(program) = words.first().and_then(Word::exact) else { return };
        if program.contains('/') && !program.starts_with('/') {
            self.relative += 1;
            if self.moved {
                self.unread(Unread::Moved);
            }
        }
        self.moved |= program == "cd" && words.get(1).and_then(Word::exact) != Some(".");
    }

    fn simple(&mut self, command: &SimpleCommand) {
        let mut words = Vec::new();
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                Item::AssignmentWord(_, word) => {
                    self.add(Part::Aside(Aside::Sets));
                    self.word(&word.value);
                }
                other => self.item(other, &mut words),
            }
        }
        if let Some(name) = &command.word_or_name {
            let word = self.word(&name.value).unwrap_or(Word::Any);
            // One with a `=` is a setting to some shells, one with a `-` in front an option of what stood before.
            let is_name = |name: &str| !name.is_empty() && !name.contains('=') && !name.starts_with('-');
            if !word.exact().is_some_and(is_name) {
                self.unread(Unread::Program);
            }
            words.push(word);
        }
        let mut split = None;
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            if let Item::IoRedirect(IoRedirect::OutputAndError(..)) = item {
                split = split.or(Some(words.len()));
            }
            self.item(item, &mut words);
        }
        if !words.is_empty() {
            self.words(&words);
        }
        // `ls &>x rm y` is one command to bash. To dash it is `ls &`, and then `>x rm y`.
        if let Some(behind) = split.and_then(|at| words.get(at..)).filter(|behind| !behind.is_empty()) {
            self.words(behind);
        }
    }

    /// Takes one item of a command.
    fn item(&mut self, item: &Item, words: &mut Vec<Word>) {
        match item {
            Item::Word(word) | Item::AssignmentWord(_, word) => {
                words.push(self.word(&word.value).unwrap_or(Word::Any));
            }
            Item::IoRedirect(redirect) => self.redirect(redirect),
            Item::ProcessSubstitution(_, subshell) => {
                self.unread(Unread::Substitution);
                self.list(&subshell.list);
                words.push(Word::Any);
            }
        }
    }

    /// A word, or `None` where it could not be read, which is then a part.
    fn word(&mut self, raw: &str) -> Option<Word> {
        match word::read(raw) {
            Ok(word) => Some(word),
            Err(why) => {
                self.unread(why);
                substituted(raw).into_iter().for_each(|text| self.inner(text));
                None
            }
        }
    }

    /// A command by its words.
    fn words(&mut self, words: &[Word]) {
        self.place(words);
        match role(words) {
            Role::Plain => self.add(Part::Command(words.to_vec())),
            Role::Harmless => self.add(Part::Harmless(words.to_vec())),
            Role::Passes(inner) => {
                self.add(Part::Harmless(words.to_vec()));
                self.within(&inner);
            }
            Role::Hides(why, seen) => {
                self.unread(why);
                self.add(Part::Command(words.to_vec()));
                for seen in seen {
                    match seen {
                        Seen::Words(inner) => self.within(inner),
                        Seen::Line(text) => self.inner(&text),
                    }
                }
            }
        }
    }

    fn within(&mut self, words: &[Word]) {
        if words.first().and_then(Word::exact).is_none() {
            self.unread(Unread::Program);
        } else if self.depth < DEEPEST {
            self.depth += 1;
            self.words(words);
            self.depth -= 1;
        } else {
            self.unread(Unread::TooDeep);
        }
    }

    fn redirects(&mut self, redirects: Option<&RedirectList>) {
        redirects.iter().flat_map(|list| &list.0).for_each(|redirect| self.redirect(redirect));
    }

    fn redirect(&mut self, redirect: &IoRedirect) {
        match redirect {
            IoRedirect::HereDocument(_, document) => {
                self.unread(Unread::HereDocument);
                if document.requires_expansion {
                    substituted(&document.doc.value).into_iter().for_each(|text| self.inner(text));
                }
            }
            IoRedirect::HereString(_, word) => {
                self.unread(Unread::HereDocument);
                self.word(&word.value);
            }
            IoRedirect::OutputAndError(word, _) => self.writes(&word.value),
            IoRedirect::File(_, kind, target) => self.file(kind, target),
        }
    }

    fn file(&mut self, kind: &IoFileRedirectKind, target: &IoFileRedirectTarget) {
        let raw = match target {
            IoFileRedirectTarget::Fd(_) => return,
            IoFileRedirectTarget::Duplicate(word) if is_descriptor(&word.value) => return,
            IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => &word.value,
            IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                self.unread(Unread::Substitution);
                self.list(&subshell.list);
                return;
            }
        };
        match kind {
            IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput => self.reads(raw),
            IoFileRedirectKind::Write
            | IoFileRedirectKind::Append
            | IoFileRedirectKind::ReadAndWrite
            | IoFileRedirectKind::Clobber
            | IoFileRedirectKind::DuplicateOutput => self.writes(raw),
        }
    }

    fn writes(&mut self, raw: &str) {
        match self.word(raw) {
            Some(Word::Exact(path)) if is_sink(&path) => {}
            Some(Word::Exact(path)) => self.add(Part::Aside(Aside::Writes(Some(path)))),
            Some(Word::Glob(_) | Word::Any) | None => self.add(Part::Aside(Aside::Writes(None))),
        }
    }

    /// Reading a file that is named is what every command may do; a device may be a connection.
    fn reads(&mut self, raw: &str) {
        match self.word(raw) {
            Some(Word::Exact(path)) if !path.starts_with("/dev/") || path == "/dev/null" => {}
            _ => self.add(Part::Aside(Aside::Reads)),
        }
    }
}

fn parse(text: &str) -> Result<Program, Unread> {
    if let Some(why) = screen::problem(text) {
        return Err(why);
    }
    let options = ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() };
    let source = SourceInfo::default();
    // Its nesting is bounded above; should it give up on something else, that is no reason to end the process.
    let parsed =
        catch_unwind(AssertUnwindSafe(|| Parser::new(text.as_bytes(), &options, &source).parse_program()));
    match parsed {
        Ok(Ok(program)) => Ok(program),
        Ok(Err(_)) | Err(_) => Err(Unread::Syntax),
    }
}

fn is_descriptor(raw: &str) -> bool {
    let digits = raw.strip_suffix('-').unwrap_or(raw);
    !raw.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_sink(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr")
}

/// The lines in `$(…)` and between backquotes, as well as they can be seen. They only make a decision stricter.
fn substituted(raw: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = raw[from..].find("$(").map(|at| from + at + 2) {
        let mut level = 1_usize;
        let end = raw[start..].char_indices().find_map(|(at, letter)| {
            match letter {
                '(' => level += 1,
                ')' => level -= 1,
                _ => {}
            }
            (level == 0).then_some(start + at)
        });
        let end = end.unwrap_or(raw.len());
        found.push(&raw[start..end]);
        from = end;
    }
    let mut between = raw.split('`').skip(1);
    while let Some(line) = between.next() {
        found.push(line);
        between.next();
    }
    found
}
