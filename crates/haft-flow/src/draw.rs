//! A flow as a picture: for Mermaid, and in letters.

use crate::{Flow, graph};
use haft_core::text::one_line;

/// The flow in the language of Mermaid.
///
/// ```
/// let text = r#"{"name": "a", "description": "A", "nodes": [{"name": "x", "tool": "ping"}]}"#;
/// let flow = haft_flow::read(text, haft_definition::Format::Json)?;
/// assert_eq!(haft_flow::mermaid(&flow), "flowchart TD\n    n0[\"x<br/>ping\"]\n");
/// # Ok::<(), haft_definition::ReadErrors>(())
/// ```
#[must_use]
pub fn mermaid(flow: &Flow) -> String {
    let mut out = "flowchart TD\n".to_owned();
    for (place, node) in flow.nodes.iter().enumerate() {
        let label = format!("{}<br/>{}", escaped(&node.name), escaped(&node.tool));
        match &node.when {
            None => out.push_str(&format!("    n{place}[\"{label}\"]\n")),
            // A choice has corners.
            Some(when) => {
                let when = escaped(&one_line(when.text(), 80));
                out.push_str(&format!("    n{place}{{{{\"{label}<br/>when {when}\"}}}}\n"));
            }
        }
    }
    for (place, node) in flow.nodes.iter().enumerate() {
        for &earlier in &node.depends_on {
            let arrow = if flow.nodes[earlier].continue_on_failure { "-.->" } else { "-->" };
            out.push_str(&format!("    n{earlier} {arrow} n{place}\n"));
        }
    }
    out
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("#quot;"),
            '<' => out.push_str("#lt;"),
            '>' => out.push_str("#gt;"),
            '#' => out.push_str("#35;"),
            '&' => out.push_str("#amp;"),
            other => out.push(other),
        }
    }
    out
}

/// The flow in letters, no wider than `width`: a line for each node, after those that it depends on, and lines that
/// lead to it. Where those lines alone would be too wide, each node names what it depends on instead.
///
/// ```
/// let text = r#"{"name": "a", "description": "A", "nodes": [
///     {"name": "x", "tool": "ping"}, {"name": "y", "tool": "ping"}, {"name": "z", "tool": "ping", "after": ["x", "y"]}]}"#;
/// let flow = haft_flow::read(text, haft_definition::Format::Json)?;
/// assert_eq!(haft_flow::picture(&flow, 80), "●    x  ping\n│ ●  y  ping\n●─╯  z  ping\n");
/// # Ok::<(), haft_definition::ReadErrors>(())
/// ```
#[must_use]
pub fn picture(flow: &Flow, width: usize) -> String {
    let depends_on: Vec<&[usize]> = flow.nodes.iter().map(|node| &*node.depends_on).collect();
    let order = graph::order(&depends_on);
    let lines = lanes(&depends_on, &order);
    let lane_width = lines.iter().map(|line| line.trim_end().chars().count()).max().unwrap_or(0);
    let name_width = flow.nodes.iter().map(|node| node.name.len()).max().unwrap_or(0).min(30);
    let has_room = lane_width + 2 + name_width <= width.max(20) / 2;
    let mut out = String::new();
    for (&place, line) in order.iter().zip(&lines) {
        let node = &flow.nodes[place];
        let line = line.trim_end();
        let pad = " ".repeat(lane_width.saturating_sub(line.chars().count()));
        let begin = if has_room { format!("{line}{pad}  ") } else { String::new() };
        let mut text = format!("{begin}{:name_width$}  {}", node.name, node.tool);
        if !has_room && !node.depends_on.is_empty() {
            let earlier: Vec<&str> =
                node.depends_on.iter().map(|&earlier| &*flow.nodes[earlier].name).collect();
            text.push_str(&format!("  ← {}", earlier.join(", ")));
        }
        if let Some(when) = &node.when {
            text.push_str(&format!("  when {}", when.text()));
        }
        if node.continue_on_failure {
            text.push_str("  (failure does not block)");
        }
        out.push_str(&one_line(&text, width.max(20)));
        out.push('\n');
    }
    out
}

/// For each node a line of lanes: `●` is the node, and lines from above lead to it.
fn lanes(depends_on: &[&[usize]], order: &[usize]) -> Vec<String> {
    let mut left = vec![0_usize; depends_on.len()];
    depends_on.iter().flat_map(|earlier| earlier.iter()).for_each(|&earlier| left[earlier] += 1);
    // Which node a lane comes from, while somebody below still needs it.
    let mut lanes: Vec<Option<usize>> = Vec::new();
    let mut lines = Vec::with_capacity(order.len());
    for &node in order {
        let needs = |lane: &Option<usize>| lane.is_some_and(|from| depends_on[node].contains(&from));
        let inputs: Vec<usize> = (0..lanes.len()).filter(|&lane| needs(&lanes[lane])).collect();
        for &lane in &inputs {
            if let Some(from) = lanes[lane] {
                left[from] = left[from].saturating_sub(1);
            }
        }
        let ends = |lanes: &[Option<usize>], lane: usize| lanes[lane].is_some_and(|from| left[from] == 0);
        let column = inputs.iter().copied().find(|&lane| ends(&lanes, lane));
        let column = column.or_else(|| lanes.iter().position(Option::is_none)).unwrap_or(lanes.len());
        if column == lanes.len() {
            lanes.push(None);
        }
        let first = inputs.iter().copied().chain([column]).min().unwrap_or(column);
        let last = inputs.iter().copied().chain([column]).max().unwrap_or(column);
        let mut line = String::new();
        for lane in 0..lanes.len() {
            let is_within = lane > first && lane < last;
            line.push(match lanes[lane] {
                _ if lane == column => '●',
                Some(_) if inputs.contains(&lane) => match (lane < column, ends(&lanes, lane)) {
                    // Between the outermost line and the node, the others are passed.
                    (_, true) if is_within => '┴',
                    (_, false) if is_within => '┼',
                    (true, true) => '╰',
                    (true, false) => '├',
                    (false, true) => '╯',
                    (false, false) => '┤',
                },
                Some(_) if is_within => '┼',
                Some(_) => '│',
                None if is_within => '─',
                None => ' ',
            });
            line.push(if lane >= first && lane < last { '─' } else { ' ' });
        }
        lines.push(line);
        for lane in inputs {
            if ends(&lanes, lane) {
                lanes[lane] = None;
            }
        }
        lanes[column] = (left[node] > 0).then_some(node);
        while lanes.last() == Some(&None) {
            lanes.pop();
        }
    }
    lines
}
