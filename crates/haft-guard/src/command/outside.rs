//! Commands that by themselves work in another folder, or run what is in it: `git -C .. status`, `python3 ../x.py`.

use super::{
    interpreter,
    place::{Folder, Place},
    program::{program_name, stem},
    word::Word,
};

/// Whether a command, run here, goes to a folder outside by itself. There the settings of git may run programs, and a
/// makefile or a script is another one than those of the folder.
pub(super) fn leads_outside(words: &[Word], place: Place, folder: &Folder<'_>) -> bool {
    let Some(program) = words.first().and_then(Word::exact) else { return false };
    let name = program_name(program).to_ascii_lowercase();
    let rest = &words[1..];
    let leads = |path: &str| place.to(path, folder).may_be_outside();
    match stem(&name) {
        "git" => of_git(rest, place, folder).may_be_outside(),
        "make" => values(rest, &["-C", "--directory"]).into_iter().any(leads),
        "cargo" => values(rest, &["--manifest-path"]).into_iter().any(leads),
        stem => {
            let goes_up = |path: &&str| !path.starts_with('/') && path.split('/').any(|name| name == "..");
            interpreter::file_of(stem, rest).filter(goes_up).is_some_and(leads)
        }
    }
}

/// Where git works.
fn of_git(words: &[Word], place: Place, folder: &Folder<'_>) -> Place {
    let mut place = place;
    let mut rest = words.iter().map_while(Word::exact);
    while let Some(option) = rest.next().filter(|word| word.starts_with('-')) {
        match option {
            "-C" => place = rest.next().map_or(place, |path| place.to(path, folder)),
            "-c" => drop(rest.next()),
            _ => {}
        }
    }
    place
}

/// What some options may be given: in the same word or in the next one. Long ones may be shortened, and a letter may
/// stand behind others.
fn values<'a>(words: &'a [Word], options: &[&str]) -> Vec<&'a str> {
    let next = |at: usize| words.get(at + 1).and_then(Word::exact);
    let own = words.iter().take_while(|word| word.exact() != Some("--"));
    own.enumerate()
        .filter_map(|(at, word)| {
            let word = word.exact()?;
            if word.starts_with("--") {
                let (name, value) =
                    word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
                let is_named = name.len() > 2 && options.iter().any(|option| option.starts_with(name));
                return value.or_else(|| next(at)).filter(|_| is_named);
            }
            let letters = word.strip_prefix('-')?;
            let letter =
                options.iter().find(|option| option.len() == 2).and_then(|option| option.chars().last())?;
            let (_, glued) = letters.split_once(letter)?;
            if glued.is_empty() { next(at) } else { Some(glued) }
        })
        .collect()
}
