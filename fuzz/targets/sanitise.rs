//! A tool's output is raw bytes from a program nobody vouches for.
#![no_main]

use haft_core::text::{ModelText, PeopleText, model_str, model_text, people_text, truncate, truncate_chars};
use libfuzzer_sys::fuzz_target;

// The first two bytes choose the size of the chunks and the room for the text; the rest is the output.
fuzz_target!(|data: &[u8]| {
    let [chunk, room, output @ ..] = data else {
        return;
    };
    let chunks = || output.chunks(usize::from(*chunk).max(1));

    let model = model_text(output);
    assert!(!model.contains(is_forbidden), "{model:?}");
    assert_eq!(model_str(&model), model, "twice is once");
    let (mut filter, mut streamed) = (ModelText::new(), String::new());
    chunks().for_each(|chunk| filter.push(chunk, &mut streamed));
    filter.finish(&mut streamed);
    assert_eq!(streamed, model, "chunks of {chunk}");

    let people = people_text(&model);
    assert!(!people.contains(is_forbidden), "{people:?}");
    assert_eq!(people_text(&people), people, "twice is once");
    let (mut filter, mut streamed) = (PeopleText::new(), String::new());
    chunks().for_each(|chunk| filter.push(chunk, &mut streamed));
    filter.finish(&mut streamed);
    assert_eq!(streamed, people, "chunks of {chunk}");

    let limit = usize::from(*room);
    let cut = truncate(&model, limit, Some("out_1"));
    assert!(cut.text.len() <= limit, "{cut:?}");
    assert_eq!(cut.head_bytes + cut.omitted_bytes + cut.tail_bytes, model.len());
    assert!(
        model.starts_with(&cut.text[..cut.head_bytes])
            && model.ends_with(&cut.text[cut.text.len() - cut.tail_bytes..])
    );
    // Here the note comes on top of the limit.
    let (short, omitted) = truncate_chars(&model, limit);
    assert_eq!(model.chars().count().saturating_sub(limit), omitted);
    assert!(short.chars().take(limit).eq(model.chars().take(limit)), "{short:?}");
});

fn is_forbidden(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t' | '\r')
}
