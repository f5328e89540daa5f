//! `haft tools search`: which tools could do something.

use super::{
    super::{
        console::{Console, QUIET},
        failure::Failure,
        layout,
        setup::Setup,
    },
    page, sentence,
};
use haft_core::text::one_line;
use haft_tools::describe;
use serde_json::{Value, json};

pub(super) fn run(
    words: &[String],
    limit: usize,
    json: bool,
    setup: &Setup,
    console: &mut Console,
) -> Result<(), Failure> {
    let question = words.join(" ");
    setup.haft.tools().bring_all()?;
    let found = setup.haft.tools().rank(&question, limit, setup.owner.tier)?;
    if json {
        let found: Vec<Value> = found
            .iter()
            .map(|(score, definition)| {
                json!({
                    "name": definition.name,
                    "score": score,
                    "description": definition.description,
                    "parameters": definition.parameters.to_schema(),
                })
            })
            .collect();
        return console.print_json(&json!({"tools": found}));
    }
    let Some((best, first)) = found.first() else {
        return console.print("no tools match; try other or fewer words\n");
    };
    let rows: Vec<(String, String)> = found
        .iter()
        .map(|(score, definition)| {
            (
                definition.name.clone(),
                format!("{}  {}", bar(score / best), one_line(sentence(definition), 200)),
            )
        })
        .collect();
    let call = page::example(first, &describe::parameters(first));
    console.print(format!(
        "{}\n{QUIET}`{call}` calls the first{QUIET:#}\n",
        layout::list(&rows, console.width())
    ))
}

/// How well it fits, next to the best.
fn bar(share: f32) -> String {
    const LENGTH: usize = 5;
    // The best has five, the least still one; a share that is no number counts as the least.
    let full = (1..=LENGTH).rev().find(|full| share > (*full as f32 - 0.5) / LENGTH as f32).unwrap_or(1);
    format!("{}{}", "■".repeat(full), "□".repeat(LENGTH - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_the_share_of_the_best() {
        for (share, shown) in [(1.0, "■■■■■"), (0.5, "■■□□□"), (0.01, "■□□□□"), (f32::NAN, "■□□□□")]
        {
            assert_eq!(bar(share), shown, "{share}");
        }
    }
}
