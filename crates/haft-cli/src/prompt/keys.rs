//! Which key leads where. Pure: a screen and a key give the next screen, or an answer.

use std::time::Duration;

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Enter,
    Backspace,
    Escape,
    /// There will be no more.
    End,
}

/// What is on the screen below the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Screen {
    /// The keys.
    Ask,
    /// What they mean.
    Help,
    /// Why not, as far as it is typed.
    Reason(String),
    /// For how long, as far as it is typed.
    HowLong(String),
    /// What of it to remember.
    Which(Keep),
    /// What will be remembered, in words.
    Confirm(Memory),
    /// All that follow have been shown.
    Rest,
}

/// For how long something is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    Session,
    For(Duration),
    Always,
}

/// What to remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    /// The offer's place.
    pub(super) offer: usize,
    pub(super) keep: Keep,
}

/// What can be done about a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Can {
    /// How many things could be remembered.
    pub(super) offers: usize,
    /// Whether there is a session for which it could be.
    pub(super) session: bool,
    /// Whether the arguments are all there to be changed.
    pub(super) edit: bool,
    /// Whether there is more than fits on the screen.
    pub(super) more: bool,
    /// Whether more questions follow.
    pub(super) others: bool,
}

/// What a key leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Go(Screen),
    /// Everything that there is to see, and then the keys again.
    ShowAll,
    /// Everything that there is to see of all that follow, and then [`Screen::Rest`]: nobody agrees to what they were
    /// not shown.
    ShowRest,
    /// Something to change the arguments with.
    Edit,
    Answer(Answer),
}

/// What a person wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Once,
    Remember(Memory),
    Deny(Option<String>),
    /// Leave it open.
    Later,
    /// Yes to this and all that follow.
    AllOnce,
    /// No to this and all that follow.
    DenyAll,
}

/// Longer than this, nobody types.
const LINE: usize = 200;

/// Where a key leads. One that means nothing here changes nothing: only `y` ever agrees to anything.
pub(super) fn press(screen: &Screen, key: Key, can: Can) -> Step {
    if key == Key::End {
        return Step::Answer(Answer::Later);
    }
    match screen {
        Screen::Ask | Screen::Help => ask(screen, key, can),
        Screen::Reason(typed) => match line(typed, key) {
            Typed::More(typed) => Step::Go(Screen::Reason(typed)),
            Typed::Done(reason) if reason.trim().is_empty() => Step::Answer(Answer::Deny(None)),
            Typed::Done(reason) => Step::Answer(Answer::Deny(Some(reason.trim().to_owned()))),
            Typed::Back => Step::Go(Screen::Ask),
        },
        Screen::HowLong(typed) => match line(typed, key) {
            Typed::More(typed) => Step::Go(Screen::HowLong(typed)),
            Typed::Done(time) => match how_long(&time) {
                Some(time) => which(Keep::For(time), can),
                None => Step::Go(Screen::HowLong(time)),
            },
            Typed::Back => Step::Go(Screen::Ask),
        },
        Screen::Which(keep) => match key {
            Key::Char(digit) => match digit.to_digit(10).and_then(|digit| (digit as usize).checked_sub(1)) {
                Some(offer) if offer < can.offers => Step::Go(Screen::Confirm(Memory { offer, keep: *keep })),
                _ if matches!(digit, 'q' | 'n' | 'b') => Step::Go(Screen::Ask),
                _ => Step::Go(screen.clone()),
            },
            Key::Escape => Step::Go(Screen::Ask),
            _ => Step::Go(screen.clone()),
        },
        Screen::Confirm(memory) => match key {
            Key::Char('y') => Step::Answer(Answer::Remember(*memory)),
            Key::Char('n' | 'q' | 'b') | Key::Escape => Step::Go(Screen::Ask),
            _ => Step::Go(screen.clone()),
        },
        Screen::Rest => match key {
            Key::Char('y') if can.others => Step::Answer(Answer::AllOnce),
            Key::Char('n' | 'q' | 'b') | Key::Escape => Step::Go(Screen::Ask),
            _ => Step::Go(Screen::Rest),
        },
    }
}

fn ask(screen: &Screen, key: Key, can: Can) -> Step {
    let Key::Char(letter) = key else { return Step::Go(Screen::Ask) };
    match letter {
        'y' => Step::Answer(Answer::Once),
        'n' => Step::Answer(Answer::Deny(None)),
        'r' => Step::Go(Screen::Reason(String::new())),
        'q' => Step::Answer(Answer::Later),
        'Y' if can.others => Step::ShowRest,
        'N' if can.others => Step::Answer(Answer::DenyAll),
        'd' if can.more => Step::ShowAll,
        'e' if can.edit => Step::Edit,
        'a' if can.offers > 0 => which(Keep::Always, can),
        's' if can.offers > 0 && can.session => which(Keep::Session, can),
        'u' if can.offers > 0 => Step::Go(Screen::HowLong(String::new())),
        '?' | 'h' if *screen == Screen::Ask => Step::Go(Screen::Help),
        _ => Step::Go(Screen::Ask),
    }
}

/// With one offer there is nothing to choose.
fn which(keep: Keep, can: Can) -> Step {
    Step::Go(match can.offers {
        1 => Screen::Confirm(Memory { offer: 0, keep }),
        _ => Screen::Which(keep),
    })
}

/// `30m`, `2h`, `1d`: for as long as a grant can be given.
pub(super) fn how_long(typed: &str) -> Option<Duration> {
    haft::assembly::age(typed).filter(|time| haft::GrantTime::For(*time).is_possible())
}

enum Typed {
    More(String),
    Done(String),
    Back,
}

fn line(typed: &str, key: Key) -> Typed {
    let mut typed = typed.to_owned();
    match key {
        Key::Enter => return Typed::Done(typed),
        Key::Escape | Key::End => return Typed::Back,
        Key::Backspace => drop(typed.pop()),
        Key::Char(letter) if typed.chars().count() < LINE && !letter.is_control() => typed.push(letter),
        Key::Char(_) => {}
    }
    Typed::More(typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Can = Can { offers: 2, session: true, edit: true, more: true, others: true };

    /// What a row of keys comes to, from the question on.
    fn typed(keys: &str, can: Can) -> Step {
        let mut screen = Screen::Ask;
        for letter in keys.chars() {
            let key = match letter {
                '\n' => Key::Enter,
                '\u{1b}' => Key::Escape,
                '\u{8}' => Key::Backspace,
                '\u{4}' => Key::End,
                letter => Key::Char(letter),
            };
            match press(&screen, key, can) {
                Step::Go(next) => screen = next,
                Step::ShowRest => screen = Screen::Rest,
                other => return other,
            }
        }
        Step::Go(screen)
    }

    #[test]
    fn keys_lead_where_the_help_says() {
        let memory = |offer, keep| Step::Answer(Answer::Remember(Memory { offer, keep }));
        let deny = |reason: &str| Step::Answer(Answer::Deny(Some(reason.to_owned())));
        let cases = [
            ("y", Step::Answer(Answer::Once)),
            ("n", Step::Answer(Answer::Deny(None))),
            ("q", Step::Answer(Answer::Later)),
            ("\u{4}", Step::Answer(Answer::Later)),
            ("Y", Step::Go(Screen::Rest)),
            ("Yy", Step::Answer(Answer::AllOnce)),
            ("YY", Step::Go(Screen::Rest)),
            ("Yn", Step::Go(Screen::Ask)),
            ("N", Step::Answer(Answer::DenyAll)),
            ("d", Step::ShowAll),
            ("e", Step::Edit),
            ("?", Step::Go(Screen::Help)),
            ("??", Step::Go(Screen::Ask)),
            ("?y", Step::Answer(Answer::Once)),
            ("rnot nw\u{8}ow\n", deny("not now")),
            ("r\n", Step::Answer(Answer::Deny(None))),
            ("ry\u{1b}", Step::Go(Screen::Ask)),
            ("a", Step::Go(Screen::Which(Keep::Always))),
            ("a2", Step::Go(Screen::Confirm(Memory { offer: 1, keep: Keep::Always }))),
            ("a2y", memory(1, Keep::Always)),
            ("a2n", Step::Go(Screen::Ask)),
            ("a3y", Step::Go(Screen::Which(Keep::Always))),
            ("a0y", Step::Go(Screen::Which(Keep::Always))),
            ("s1y", memory(0, Keep::Session)),
            ("u2h\n1y", memory(0, Keep::For(Duration::from_secs(7200)))),
            ("u\ny", Step::Go(Screen::HowLong("y".to_owned()))),
            ("u99999d\n", Step::Go(Screen::HowLong("99999d".to_owned()))),
        ];
        for (keys, expected) in cases {
            assert_eq!(typed(keys, ALL), expected, "{keys:?}");
        }
    }

    #[test]
    fn what_cannot_be_done_is_not_done() {
        let nothing = Can::default();
        for keys in ["Y", "N", "d", "e", "a", "s", "u", "\n", " ", "1", "j", "A", "\u{1b}"] {
            assert_eq!(typed(keys, nothing), Step::Go(Screen::Ask), "{keys:?}");
        }
        let one = Can { offers: 1, ..nothing };
        assert_eq!(typed("ay", one), Step::Answer(Answer::Remember(Memory { offer: 0, keep: Keep::Always })));
        assert_eq!(typed("s", one), Step::Go(Screen::Ask), "there is no session");
    }

    /// Whatever is typed: without a `y` nothing is agreed to.
    #[test]
    fn nothing_but_y_agrees() {
        let alphabet: Vec<char> = "nrqNYdeasu?12h\n\u{1b}\u{8} x".chars().collect();
        let mut row = [0_usize; 4];
        loop {
            let keys: String = row.iter().map(|place| alphabet[*place]).collect();
            let agreed = matches!(
                typed(&keys, ALL),
                Step::Answer(Answer::Once | Answer::AllOnce | Answer::Remember(_))
            );
            assert!(!agreed, "{keys:?}");
            let Some(place) = row.iter().rposition(|place| *place + 1 < alphabet.len()) else { break };
            row[place] += 1;
            row[place + 1..].fill(0);
        }
    }
}
