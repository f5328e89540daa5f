//! `${node.output.path}`: what a text refers to.

use serde_json::Value;
use std::fmt;

/// What a text is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Template {
    /// Nothing in it refers to anything.
    Constant(Value),
    /// The text is a reference and nothing else: the value keeps its type.
    Whole(Reference),
    /// References inside a text, which are written in.
    Text(Vec<Piece>),
    /// A list.
    List(Vec<Template>),
    /// Named members, in the order of their names.
    Table(Vec<(String, Template)>),
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// As it is.
    Plain(String),
    /// What it refers to.
    Reference(Reference),
}

/// `${a.output.x ?? b.output.x ?? "none"}`: the first of these that is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// In their order; at least one.
    pub alternatives: Vec<Alternative>,
    /// The byte of the text that it begins at.
    pub offset: usize,
}

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Alternative {
    /// A place in what is known.
    Path(Path),
    /// A value.
    Literal(Value),
}

/// A place in what is known: `node.output.list[0]["a b"]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// A node, or `input`.
    pub root: String,
    /// The way from there.
    pub steps: Vec<Step>,
}

/// One step of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A member.
    Name(String),
    /// A place in a list.
    Index(usize),
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.root)?;
        self.steps.iter().try_for_each(|step| match step {
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Name(name) if is_plain(name) => write!(f, ".{name}"),
            Step::Name(name) => write!(f, "[{}]", Value::from(name.as_str())),
        })
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

/// Why a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadReference {
    /// In one sentence without a full stop.
    pub problem: String,
    /// The byte that it is about.
    pub offset: usize,
    /// The pointer of the text below the value that was read.
    pub pointer: String,
    /// That text.
    pub text: String,
}

/// How deep a value may nest.
const MOST_DEPTH: usize = 64;

impl Template {
    /// What a value refers to, with every problem of the texts in it.
    ///
    /// ```
    /// use haft_flow::Template;
    /// use serde_json::json;
    /// let template = Template::read(&json!({"path": "${input.folder}/a.txt", "depth": 3})).unwrap();
    /// assert_eq!(template.paths().map(|(_, path)| path.to_string()).collect::<Vec<_>>(), ["input.folder"]);
    /// assert!(Template::read(&json!("${input.folder")).is_err());
    /// ```
    pub fn read(value: &Value) -> Result<Self, Vec<BadReference>> {
        let mut problems = Vec::new();
        let template = read(value, &mut String::new(), 0, &mut problems);
        if problems.is_empty() { Ok(template) } else { Err(problems) }
    }

    /// Whether nothing in it refers to anything.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.references().is_empty()
    }

    /// Every reference, with the pointer of the text that it is in.
    #[must_use]
    pub fn references(&self) -> Vec<(String, &Reference)> {
        let mut found = Vec::new();
        self.collect(&mut String::new(), &mut found);
        found
    }

    /// Every path, with the pointer of the text that it is in.
    pub fn paths(&self) -> impl Iterator<Item = (String, &Path)> {
        self.references().into_iter().flat_map(|(pointer, reference)| {
            reference.paths().map(move |path| (pointer.clone(), path)).collect::<Vec<_>>()
        })
    }

    fn collect<'t>(&'t self, pointer: &mut String, found: &mut Vec<(String, &'t Reference)>) {
        match self {
            Template::Constant(_) => {}
            Template::Whole(reference) => found.push((pointer.clone(), reference)),
            Template::Text(pieces) => found.extend(pieces.iter().filter_map(|piece| match piece {
                Piece::Reference(reference) => Some((pointer.clone(), reference)),
                Piece::Plain(_) => None,
            })),
            Template::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    below(pointer, &index.to_string(), |pointer| item.collect(pointer, found));
                }
            }
            Template::Table(members) => {
                for (name, member) in members {
                    below(pointer, name, |pointer| member.collect(pointer, found));
                }
            }
        }
    }

    /// The value, with what `find` finds for each path.
    ///
    /// # Errors
    ///
    /// What `find` says of the last alternative of a reference of which none is there.
    pub fn fill<E>(&self, find: &mut impl FnMut(&Path) -> Result<Value, E>) -> Result<Value, E> {
        Ok(match self {
            Template::Constant(value) => value.clone(),
            Template::Whole(reference) => reference.find(find)?,
            Template::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Plain(plain) => text.push_str(plain),
                        Piece::Reference(reference) => match reference.find(find)? {
                            Value::String(inside) => text.push_str(&inside),
                            other => text.push_str(&other.to_string()),
                        },
                    }
                }
                Value::String(text)
            }
            Template::List(items) => items.iter().map(|item| item.fill(find)).collect::<Result<_, E>>()?,
            Template::Table(members) => {
                let filled = members.iter().map(|(name, member)| Ok((name.clone(), member.fill(find)?)));
                Value::Object(filled.collect::<Result<_, E>>()?)
            }
        })
    }
}

impl Reference {
    /// The paths among its alternatives.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.alternatives.iter().filter_map(|alternative| match alternative {
            Alternative::Path(path) => Some(path),
            Alternative::Literal(_) => None,
        })
    }

    /// Whether there is something else, should a path lead nowhere.
    #[must_use]
    pub fn has_fallback(&self) -> bool {
        self.alternatives.len() > 1
    }

    fn find<E>(&self, find: &mut impl FnMut(&Path) -> Result<Value, E>) -> Result<Value, E> {
        let mut nothing = None;
        for alternative in &self.alternatives {
            match alternative {
                Alternative::Literal(value) => return Ok(value.clone()),
                Alternative::Path(path) => match find(path) {
                    Ok(value) => return Ok(value),
                    Err(error) => nothing = Some(error),
                },
            }
        }
        nothing.map_or(Ok(Value::Null), Err)
    }
}

impl Path {
    /// The value that the steps lead to.
    #[must_use]
    pub fn follow<'v>(steps: &[Step], value: &'v Value) -> Option<&'v Value> {
        steps.iter().try_fold(value, |value, step| match step {
            Step::Name(name) => value.get(name),
            Step::Index(index) => value.get(index),
        })
    }
}

/// Does something with the pointer of a member.
pub(crate) fn below<T>(pointer: &mut String, step: &str, code: impl FnOnce(&mut String) -> T) -> T {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
    let done = code(pointer);
    pointer.truncate(length);
    done
}

fn read(value: &Value, pointer: &mut String, depth: usize, problems: &mut Vec<BadReference>) -> Template {
    let bad = |pointer: &str, text: &str, (offset, problem): (usize, String)| BadReference {
        problem,
        offset,
        pointer: pointer.to_owned(),
        text: text.to_owned(),
    };
    if depth > MOST_DEPTH {
        problems.push(bad(pointer, "", (0, format!("values nest at most {MOST_DEPTH} levels deep"))));
        return Template::Constant(Value::Null);
    }
    let template = match value {
        Value::String(text) => match read_text(text) {
            Ok(template) => template,
            Err(problem) => {
                problems.push(bad(pointer, text, problem));
                Template::Constant(Value::Null)
            }
        },
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let each = items.map(|(index, item)| {
                below(pointer, &index.to_string(), |pointer| read(item, pointer, depth + 1, problems))
            });
            Template::List(each.collect())
        }
        Value::Object(members) => {
            let each = members.iter().map(|(name, member)| {
                (name.clone(), below(pointer, name, |pointer| read(member, pointer, depth + 1, problems)))
            });
            Template::Table(each.collect())
        }
        plain => Template::Constant(plain.clone()),
    };
    let is_constant = |part: &Template| matches!(part, Template::Constant(_));
    match &template {
        Template::List(items) if items.iter().all(is_constant) => Template::Constant(unescaped(&template)),
        Template::Table(members) if members.iter().all(|(_, member)| is_constant(member)) => {
            Template::Constant(unescaped(&template))
        }
        _ => template,
    }
}

/// The value of a template that refers to nothing.
fn unescaped(template: &Template) -> Value {
    let nothing = template.fill(&mut |_: &Path| Ok::<_, std::convert::Infallible>(Value::Null));
    let Ok(value) = nothing;
    value
}

/// A text with `${…}`. `$${` stands for `${`.
fn read_text(text: &str) -> Result<Template, (usize, String)> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut at = 0;
    while let Some(found) = text[at..].find("${") {
        let begin = at + found;
        if text[..begin].ends_with('$') && begin > at {
            plain.push_str(&text[at..begin - 1]);
            plain.push_str("${");
            at = begin + 2;
            continue;
        }
        plain.push_str(&text[at..begin]);
        let end = end_of(text, begin + 2).ok_or_else(|| {
            (
                begin,
                "this reference has no end: a `}` is missing (write `$${` for the letters `${`)".to_owned(),
            )
        })?;
        let reference = read_reference(&text[begin + 2..end], begin + 2)?;
        if !plain.is_empty() {
            pieces.push(Piece::Plain(std::mem::take(&mut plain)));
        }
        pieces.push(Piece::Reference(Reference { offset: begin, ..reference }));
        at = end + 1;
    }
    plain.push_str(&text[at..]);
    if pieces.is_empty() {
        return Ok(Template::Constant(Value::String(plain)));
    }
    if !plain.is_empty() {
        pieces.push(Piece::Plain(plain));
    }
    match <[Piece; 1]>::try_from(pieces) {
        Ok([Piece::Reference(reference)]) => Ok(Template::Whole(reference)),
        Ok([plain]) => Ok(Template::Text(vec![plain])),
        Err(pieces) => Ok(Template::Text(pieces)),
    }
}

/// Where the `}` is; one in quotes is none.
fn end_of(text: &str, begin: usize) -> Option<usize> {
    let (mut in_quotes, mut escaped) = (false, false);
    for (offset, letter) in text[begin..].char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if in_quotes => escaped = true,
            '"' => in_quotes = !in_quotes,
            '}' if !in_quotes => return Some(begin + offset),
            _ => {}
        }
    }
    None
}

/// What stands between the braces; `base` is where that begins.
fn read_reference(text: &str, base: usize) -> Result<Reference, (usize, String)> {
    let mut alternatives = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        at += rest.len() - rest.trim_start().len();
        let rest = &text[at..];
        let is_name = rest.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && !["true", "false", "null"].contains(&rest.trim_end().split("??").next().unwrap_or("").trim());
        let (alternative, length) = match is_name {
            true => read_path(rest, base + at).map(|(path, length)| (Alternative::Path(path), length))?,
            false => {
                let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
                match values.next() {
                    Some(Ok(value)) => (Alternative::Literal(value), values.byte_offset()),
                    _ => {
                        let like = "name what is meant, such as `${input.path}` or `${node.output.field}`";
                        return Err((base + at, format!("this refers to nothing: {like}")));
                    }
                }
            }
        };
        alternatives.push(alternative);
        at += length;
        let rest = &text[at..];
        let left = rest.trim_start();
        at += rest.len() - left.len();
        match left.strip_prefix("??") {
            Some(_) => at += 2,
            None if left.is_empty() => return Ok(Reference { alternatives, offset: base }),
            None => {
                let problem =
                    "this is not part of a reference: use `.name`, `[0]`, `[\"name\"]` or `?? other`";
                return Err((base + at, problem.to_owned()));
            }
        }
    }
}

fn read_path(text: &str, base: usize) -> Result<(Path, usize), (usize, String)> {
    let name_end = |text: &str| {
        text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(text.len())
    };
    let end = name_end(text);
    let root = text[..end].to_owned();
    let (mut steps, mut at) = (Vec::new(), end);
    loop {
        let rest = &text[at..];
        if let Some(after) = rest.strip_prefix('.') {
            let length = name_end(after);
            if length == 0 {
                return Err((base + at, "a name is missing after the point".to_owned()));
            }
            let name = &after[..length];
            steps.push(name.parse().map_or_else(|_| Step::Name(name.to_owned()), Step::Index));
            at += 1 + length;
        } else if let Some(inside) = rest.strip_prefix('[') {
            let mut values = serde_json::Deserializer::from_str(inside).into_iter::<Value>();
            let step = match values.next() {
                Some(Ok(Value::String(name))) => Some(Step::Name(name)),
                Some(Ok(Value::Number(index))) => {
                    index.as_u64().and_then(|index| usize::try_from(index).ok()).map(Step::Index)
                }
                _ => None,
            };
            let length = values.byte_offset();
            let closes = inside.get(length..).is_some_and(|rest| rest.starts_with(']'));
            let (Some(step), true) = (step, closes) else {
                return Err((
                    base + at,
                    "write a place in a list as `[0]` and a name as `[\"name\"]`".to_owned(),
                ));
            };
            steps.push(step);
            at += length + 2;
        } else {
            return Ok((Path { root, steps }, at));
        }
    }
}

#[cfg(test)]
mod tests;
