//! Git's settings, read as git reads them, and strictly: what git refuses is refused.

/// One setting. Names are in lower case, as git compares them; the part in quotes is as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) section: String,
    pub(super) part: Option<String>,
    pub(super) key: String,
    /// Without quotes, escapes and comments. A key alone means `true`.
    pub(super) value: Option<String>,
}

/// What a file of settings says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) all: Vec<Setting>,
    /// One header or one setting on each line, without escapes and without a comment behind it: no reader of such files
    /// takes it for something else.
    pub(super) is_plain: bool,
}

/// Reads settings; `None` where git would refuse the file.
pub(super) fn read(text: &str) -> Option<Settings> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    let mut reader = Reader { rest: text.chars().collect::<Vec<_>>(), at: 0, is_plain: !text.contains(odd) };
    let mut all = Vec::new();
    let mut section: Option<(String, Option<String>)> = None;
    // Whether something was on this line already.
    let mut is_begun = false;
    while let Some(c) = reader.next() {
        match c {
            '\n' => is_begun = false,
            c if is_space(c) => {}
            '#' | ';' => {
                reader.is_plain &= !is_begun;
                reader.skip_line();
                is_begun = false;
            }
            '[' => {
                reader.is_plain &= !is_begun;
                section = Some(reader.header()?);
                is_begun = true;
            }
            c if c.is_ascii_alphabetic() => {
                reader.is_plain &= !is_begun;
                let (section, part) = section.clone()?;
                let (key, value) = reader.setting(c)?;
                all.push(Setting { section, part, key, value });
                is_begun = false;
            }
            _ => return None,
        }
    }
    Some(Settings { all, is_plain: reader.is_plain })
}

struct Reader {
    rest: Vec<char>,
    at: usize,
    is_plain: bool,
}

impl Reader {
    /// The next character. The two that end a line on Windows are one.
    fn next(&mut self) -> Option<char> {
        let c = *self.rest.get(self.at)?;
        self.at += 1;
        if c == '\r' && self.rest.get(self.at) == Some(&'\n') {
            self.at += 1;
            return Some('\n');
        }
        Some(c)
    }

    /// The next character, where the end of the file is the end of a line.
    fn next_in_line(&mut self) -> char {
        self.next().unwrap_or('\n')
    }

    fn skip_line(&mut self) {
        let mut last = ' ';
        loop {
            match self.next_in_line() {
                '\n' => break,
                c => last = c,
            }
        }
        // Some reader may go on behind it.
        self.is_plain &= last != '\\';
    }

    /// What is behind the bracket: `name]` or `name "part"]`.
    fn header(&mut self) -> Option<(String, Option<String>)> {
        let mut name = String::new();
        loop {
            match self.next()? {
                ']' => return Some((name, None)),
                '\n' => return None,
                c if is_space(c) => break,
                c if is_of_key(c) || c == '.' => name.push(c.to_ascii_lowercase()),
                _ => return None,
            }
        }
        let mut c = self.next()?;
        while c != '\n' && is_space(c) {
            c = self.next()?;
        }
        if c != '"' {
            return None;
        }
        let mut part = String::new();
        loop {
            match self.next()? {
                '\n' => return None,
                '"' => break,
                '\\' => {
                    self.is_plain = false;
                    match self.next()? {
                        '\n' => return None,
                        c => part.push(c),
                    }
                }
                c => part.push(c),
            }
        }
        (self.next()? == ']').then_some((name, Some(part)))
    }

    fn setting(&mut self, first: char) -> Option<(String, Option<String>)> {
        let mut key = String::from(first.to_ascii_lowercase());
        let mut c = self.next_in_line();
        while is_of_key(c) {
            key.push(c.to_ascii_lowercase());
            c = self.next_in_line();
        }
        while matches!(c, ' ' | '\t') {
            c = self.next_in_line();
        }
        match c {
            '\n' => Some((key, None)),
            '=' => Some((key, Some(self.value()?))),
            _ => None,
        }
    }

    fn value(&mut self) -> Option<String> {
        let (mut value, mut is_quoted) = (String::new(), false);
        // Without spaces at the end, unless they are in quotes.
        let mut kept = 0;
        loop {
            match self.next_in_line() {
                '\n' if is_quoted => return None,
                '\n' => break,
                '"' => {
                    is_quoted = !is_quoted;
                    continue;
                }
                '#' | ';' if !is_quoted => {
                    self.is_plain = false;
                    self.skip_line();
                    break;
                }
                '\\' => {
                    self.is_plain = false;
                    match self.next_in_line() {
                        '\n' => continue,
                        't' => value.push('\t'),
                        'b' => value.push('\u{8}'),
                        'n' => value.push('\n'),
                        c @ ('\\' | '"') => value.push(c),
                        _ => return None,
                    }
                }
                c if is_space(c) && !is_quoted => {
                    if !value.is_empty() {
                        value.push(c);
                    }
                    continue;
                }
                c => value.push(c),
            }
            kept = value.len();
        }
        value.truncate(kept);
        Some(value)
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

fn is_of_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-'
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::{
        io::Write as _,
        process::{Command, Stdio},
    };

    fn flat(text: &str) -> Option<Vec<String>> {
        let show = |one: &Setting| {
            let part = one.part.as_ref().map(|part| format!(".{part}")).unwrap_or_default();
            format!("{}{part}.{}={}", one.section, one.key, one.value.as_deref().unwrap_or("(true)"))
        };
        read(text).map(|read| read.all.iter().map(show).collect())
    }

    #[test]
    fn settings_are_read_as_git_reads_them() {
        for (text, expected) in [
            ("", &[][..]),
            ("[core]\n\tbare = false\n", &["core.bare=false"]),
            ("[Core] FSMonitor = touch X; false #]\n", &["core.fsmonitor=touch X"]),
            ("[core]fsmonitor=x", &["core.fsmonitor=x"]),
            ("[a][b]c=d\n", &["b.c=d"]),
            ("[a]\n\tb\n\tc =\n", &["a.b=(true)", "a.c="]),
            ("[a]\nb = x # y\nc = x ; y\nd = \"x # y\" # z\n", &["a.b=x", "a.c=x", "a.d=x # y"]),
            ("[a]\nb = \"x \" \nc = x  y\t\n", &["a.b=x ", "a.c=x  y"]),
            ("[a]\nb = one \\\n two\nc = 3", &["a.b=one  two", "a.c=3"]),
            ("[a]\n# b = c \\\nd = e\n", &["a.d=e"]),
            ("[a]\nb = x # c \\\nd = e\n", &["a.b=x", "a.d=e"]),
            ("[a \"B\\\"c\"]\r\nd = \\\"x\\\"\\n\r\n", &["a.B\"c.d=\"x\"\n"]),
            ("[a.B \"c\"]\nd-E=f\n", &["a.b.c.d-e=f"]),
            ("\u{feff}[a] ; x\nb=c", &["a.b=c"]),
        ] {
            assert_eq!(flat(text).as_deref().unwrap(), expected, "{text:?}");
        }
        for text in [
            "a = b\n",
            "[a\nb = c\n",
            "[a \"b]\nc = d\n",
            "[a \"b\" ]\nc = d\n",
            "[a b]\nc = d\n",
            "[a]\n= b\n",
            "[a]\nb = \"c\nd = e\"\n",
            "[a]\nb = \\x\n",
            "[a]\nb c = d\n",
            "[a]\n1 = d\n",
            "[a]]\n",
            "[a",
        ] {
            assert_eq!(flat(text), None, "{text:?}");
        }
    }

    /// The settings are those that `git config --list` prints, where there is a git.
    #[test]
    fn git_agrees() {
        for text in [
            "[Core] FSMonitor = touch X; false #]\n",
            "[a]\nb = one \\\n two\nc = \"3 \"  \n",
            "[a \"B\\\"c\"]\nd = \\\"x\\\"\\t1\n",
            "[a.B \"c\"]\nd-E=f\n",
            "[a][b]c=d # e\\\nf = g\n",
            "[a]\nb = \"c\nd = e\"\n",
            "[a]]\n",
            "[a b]\nc = d\n",
            "[a]\nb c = d\n",
        ] {
            let mut git = Command::new("git");
            git.args(["config", "-f", "-", "--list"]).stdin(Stdio::piped());
            let Ok(mut git) = git.stdout(Stdio::piped()).stderr(Stdio::null()).spawn() else { return };
            git.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            let output = git.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let lines = flat(text).map(|all| all.iter().map(|line| format!("{line}\n")).collect::<String>());
            assert_eq!(output.status.success().then_some(said), lines, "{text:?}");
        }
    }
}
