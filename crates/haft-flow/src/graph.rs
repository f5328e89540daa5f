//! Who waits for whom.

/// Nodes that wait for each other, each for the one after it and the last for the first; `None` where there are none.
///
/// ```
/// assert_eq!(haft_flow::cycle(&[&[1], &[2], &[0]]), Some(vec![0, 1, 2]));
/// assert_eq!(haft_flow::cycle(&[&[], &[0], &[0, 1]]), None);
/// ```
#[must_use]
pub fn cycle(depends_on: &[&[usize]]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        Now,
        Done,
    }
    let mut seen = vec![Seen::Not; depends_on.len()];
    for start in 0..depends_on.len() {
        if seen[start] != Seen::Not {
            continue;
        }
        // The way here, with the next dependency to look at; without recursion, so that a long chain costs no stack.
        let mut way = vec![(start, 0)];
        seen[start] = Seen::Now;
        while let Some((node, next)) = way.last_mut() {
            let Some(&other) = depends_on[*node].get(*next) else {
                seen[*node] = Seen::Done;
                way.pop();
                continue;
            };
            *next += 1;
            match seen.get(other) {
                Some(Seen::Not) => {
                    seen[other] = Seen::Now;
                    way.push((other, 0));
                }
                Some(Seen::Now) => {
                    let from = way.iter().position(|(node, _)| *node == other).unwrap_or(0);
                    return Some(way[from..].iter().map(|(node, _)| *node).collect());
                }
                Some(Seen::Done) | None => {}
            }
        }
    }
    None
}

/// The nodes in an order in which each stands after those that it depends on; among those that could stand next, the
/// one that is first in the file. Those of a circle are left out.
///
/// ```
/// assert_eq!(haft_flow::order(&[&[2], &[], &[1]]), [1, 2, 0]);
/// ```
#[must_use]
pub fn order(depends_on: &[&[usize]]) -> Vec<usize> {
    let mut open: Vec<usize> = depends_on.iter().map(|earlier| earlier.len()).collect();
    let mut order = Vec::with_capacity(open.len());
    let mut ready: std::collections::BTreeSet<usize> =
        (0..open.len()).filter(|&node| open[node] == 0).collect();
    while let Some(node) = ready.pop_first() {
        order.push(node);
        for (later, earlier) in depends_on.iter().enumerate() {
            let count = earlier.iter().filter(|&&earlier| earlier == node).count();
            if count > 0 {
                open[later] -= count;
                if open[later] == 0 {
                    ready.insert(later);
                }
            }
        }
    }
    order
}
