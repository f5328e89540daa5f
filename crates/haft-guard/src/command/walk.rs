//! From what the parser made of a line to its parts.

use super::{
    line::{Aside, Part, Unread},
    outside::leads_outside,
    parse::{is_descriptor, is_sink, parse, substituted},
    place::{After, Folder, Place},
    variable,
    word::{self, Word},
    wrapper::{Role, Seen, role},
};
use brush_parser::ast::{
    AndOr, Assignment, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem as Item,
    CompoundCommand, CompoundList, IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, Pipeline,
    RedirectList, SeparatorOperator, SimpleCommand,
};

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
pub(super) struct Walk<'a> {
    parts: Vec<Part>,
    depth: usize,
    folder: Folder<'a>,
    /// Where the shell is.
    place: Place,
    /// The lowest place that it was at since the innermost loop began.
    lowest: Place,
    /// Whether a `&>` was met in the list of `&&` and `||` that is read.
    is_split: bool,
    /// Whether the shell may be in another folder by now.
    moved: bool,
    /// How many programs were named by a relative path so far.
    relative: usize,
}

impl<'a> Walk<'a> {
    /// The parts of a line.
    pub(super) fn of(text: &str, folder: Folder<'a>) -> Vec<Part> {
        let mut walk = Walk {
            parts: Vec::new(),
            depth: 0,
            folder,
            place: Place::START,
            lowest: Place::START,
            is_split: false,
            moved: false,
            relative: 0,
        };
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
            Ok((program, runs_cat)) => {
                if runs_cat {
                    self.add(Part::Harmless(vec![Word::Exact("cat".to_owned())]));
                }
                for list in &program.complete_commands {
                    self.list(list);
                }
            }
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

    /// The commands of a list, from where the shell is; it is then where the last of them left it.
    fn list(&mut self, list: &CompoundList) -> After {
        let mut last = After::both(self.place);
        for item in &list.0 {
            let before = self.place;
            let around = std::mem::take(&mut self.is_split);
            last = self.pipeline(&item.0.first);
            for next in &item.0.additional {
                last = self.unless_split(last, before);
                last = match next {
                    AndOr::And(pipeline) => {
                        self.go(last.done);
                        let next = self.pipeline(pipeline);
                        After { done: next.done, failed: last.failed.min(next.failed) }
                    }
                    AndOr::Or(pipeline) => {
                        self.go(last.failed);
                        let next = self.pipeline(pipeline);
                        After { done: last.done.min(next.done), failed: next.failed }
                    }
                };
            }
            last = match item.1 {
                SeparatorOperator::Async => After::both(before),
                SeparatorOperator::Sequence => self.unless_split(last, before),
            };
            self.is_split |= around;
            self.go(last.any());
        }
        last
    }

    /// To dash, all of `cd src && ls &>x` is in the background, in a shell of its own.
    fn unless_split(&self, after: After, before: Place) -> After {
        if self.is_split { After::both(after.any().min(before)) } else { after }
    }

    fn go(&mut self, place: Place) {
        self.place = place;
        self.lowest = self.lowest.min(place);
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> After {
        // A word of the language to some shells, a program to others.
        if pipeline.timed.is_some() {
            self.add(Part::Harmless(vec![Word::Exact("time".to_owned())]));
        }
        let before = self.place;
        let mut after = After::both(before);
        for command in &pipeline.seq {
            self.go(before);
            after = self.command(command);
            self.go(after.any());
        }
        // Each command of a pipe is in a shell of its own; to some shells the last one is not.
        if pipeline.seq.len() > 1 {
            after = After::both(after.any().min(before));
        }
        if pipeline.bang { After { done: after.failed, failed: after.done } } else { after }
    }

    fn command(&mut self, command: &Command) -> After {
        let before = self.place;
        match command {
            Command::Simple(simple) => return self.simple(simple),
            Command::Compound(compound, redirects) => {
                let after = self.compound(compound);
                self.redirects(redirects.as_ref());
                // Where a file cannot be opened, nothing of it runs.
                return match redirects {
                    Some(_) => After { failed: after.failed.min(before), ..after },
                    None => after,
                };
            }
            Command::Function(function) => {
                self.unread(Unread::Language);
                self.compound(&function.body.0);
                self.redirects(function.body.1.as_ref());
            }
            Command::ExtendedTest(_) => self.unread(Unread::Language),
        }
        After::both(before.min(self.place))
    }

    fn compound(&mut self, compound: &CompoundCommand) -> After {
        let before = self.place;
        match compound {
            CompoundCommand::BraceGroup(group) => return self.list(&group.list),
            CompoundCommand::Subshell(subshell) => {
                let moved = self.moved;
                self.list(&subshell.list);
                self.moved = moved;
                self.go(before);
            }
            CompoundCommand::IfClause(clause) => {
                let mut condition = self.list(&clause.condition);
                self.go(condition.done);
                let mut end = self.list(&clause.then).any();
                for other in clause.elses.iter().flatten() {
                    self.go(condition.failed);
                    if let Some(list) = &other.condition {
                        condition = self.list(list);
                        self.go(condition.done);
                    }
                    end = end.min(self.list(&other.body).any());
                }
                // Perhaps none of them ran.
                self.go(end.min(condition.failed));
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
                for list in clause.cases.iter().filter_map(|case| case.cmd.as_ref()) {
                    self.list(list);
                }
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
        After::both(self.place)
    }

    /// Lists that may run again, in the folder that they went to.
    fn repeated(&mut self, lists: &[&CompoundList]) {
        let (moved, relative) = (self.moved, self.relative);
        let (before, lowest) = (self.place, std::mem::replace(&mut self.lowest, self.place));
        for list in lists {
            self.list(list);
        }
        if !moved && self.moved && self.relative > relative {
            self.unread(Unread::Moved);
        }
        // `break` and `continue` leave it anywhere. One that was never lower than at its beginning stays so, however
        // often.
        if self.lowest < before {
            self.unread(Unread::Outside);
        }
        self.lowest = self.lowest.min(lowest);
        self.go(before.min(self.lowest));
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
        let stays = words.get(1).and_then(Word::exact).is_some_and(|path| self.folder.stays(path));
        self.moved |= program == "cd" && !stays;
    }

    /// Where a `cd` leads, where it is one that can be read.
    fn moved_to(&self, words: &[Word]) -> Option<Place> {
        match words {
            [Word::Exact(program), Word::Exact(path)] if program == "cd" => {
                Some(self.place.to(path, &self.folder))
            }
            _ => None,
        }
    }

    /// A variable that a command is given, or that is set for the rest of the line.
    fn sets(&mut self, assignment: &Assignment, raw: &str) {
        let whole = self.word(raw);
        let is_tame = match (&assignment.name, &assignment.value) {
            (AssignmentName::VariableName(name), AssignmentValue::Scalar(value)) if !assignment.append => {
                let value = word::read(&value.value);
                whole.is_some() && value.is_ok_and(|value| variable::is_tame(name, &value))
            }
            _ => false,
        };
        if !is_tame {
            self.add(Part::Aside(Aside::Sets));
        }
    }

    fn simple(&mut self, command: &SimpleCommand) -> After {
        let mut words = Vec::new();
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                Item::AssignmentWord(assignment, word) => self.sets(assignment, &word.value),
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
        let before = self.place;
        match self.moved_to(&words) {
            Some(place) => After { done: place, failed: before },
            None => After::both(before),
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
            Role::Plain => {
                if self.place.may_be_outside() || leads_outside(words, self.place, &self.folder) {
                    self.unread(Unread::Outside);
                }
                self.add(Part::Command(words.to_vec()));
            }
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
            IoRedirect::OutputAndError(word, _) => {
                self.is_split = true;
                self.writes(&word.value);
            }
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
