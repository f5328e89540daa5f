//! What a condition looks at, and the counter in its loops.

use super::{NamePath, TURN};
use cel::{
    IdedExpr,
    common::ast::{CallExpr, EntryExpr, Expr, operators},
};
use std::collections::BTreeSet;

/// What a condition looks at and calls.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) paths: BTreeSet<NamePath>,
    pub(super) functions: BTreeSet<String>,
    /// Names of the loops around, which are no variables of ours.
    own: Vec<String>,
}

impl Seen {
    /// False where it nests deeper than that.
    pub(super) fn look(&mut self, expression: &IdedExpr, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) => true,
            Expr::Ident(_) | Expr::Select(_) => self.path(expression, depth),
            Expr::Call(call) => {
                // Operators are no words.
                if call.func_name.starts_with(|first: char| first.is_ascii_alphabetic()) {
                    self.functions.insert(call.func_name.clone());
                }
                let target = call.target.iter().map(|target| &**target);
                target.chain(&call.args).all(|part| self.look(part, depth))
            }
            Expr::List(list) => list.elements.iter().all(|element| self.look(element, depth)),
            Expr::Map(map) => map.entries.iter().all(|entry| self.entry(&entry.expr, depth)),
            Expr::Struct(made) => made.entries.iter().all(|entry| self.entry(&entry.expr, depth)),
            Expr::Comprehension(parts) => {
                if !self.look(&parts.iter_range, depth) || !self.look(&parts.accu_init, depth) {
                    return false;
                }
                let around = self.own.len();
                self.own.extend([parts.iter_var.clone(), parts.accu_var.clone()]);
                self.own.extend(parts.iter_var2.clone());
                // The loop itself is one level for the flow's author, and three for us.
                let inside = depth + 2;
                let all = [&parts.loop_cond, &parts.loop_step, &parts.result];
                let is_fine = all.into_iter().all(|part| self.look(part, inside));
                self.own.truncate(around);
                is_fine
            }
        }
    }

    fn entry(&mut self, entry: &EntryExpr, depth: usize) -> bool {
        match entry {
            EntryExpr::StructField(field) => self.look(&field.value, depth),
            EntryExpr::MapEntry(entry) => self.look(&entry.key, depth) && self.look(&entry.value, depth),
        }
    }

    /// A name with the fields that are selected of it.
    fn path(&mut self, expression: &IdedExpr, depth: usize) -> bool {
        let (mut fields, mut is_test, mut at) = (Vec::new(), false, expression);
        while let Expr::Select(select) = &at.expr {
            if fields.len() > depth {
                return false;
            }
            is_test |= select.test;
            fields.push(select.field.clone());
            at = &select.operand;
        }
        let Expr::Ident(name) = &at.expr else { return self.look(at, depth) };
        fields.reverse();
        if !self.own.contains(name) {
            self.paths.insert(NamePath { name: name.clone(), fields, is_test });
        }
        true
    }
}

/// Makes every loop count its turns. What was looked at before is not too deep for this.
pub(super) fn count_turns(expression: &mut IdedExpr) {
    match &mut expression.expr {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
        Expr::Select(select) => count_turns(&mut select.operand),
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| count_turns(target));
            call.args.iter_mut().for_each(count_turns);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(count_turns),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| count_entry(&mut entry.expr)),
        Expr::Struct(made) => made.entries.iter_mut().for_each(|entry| count_entry(&mut entry.expr)),
        Expr::Comprehension(parts) => {
            for part in [
                &mut parts.iter_range,
                &mut parts.accu_init,
                &mut parts.loop_cond,
                &mut parts.loop_step,
                &mut parts.result,
            ] {
                count_turns(part);
            }
            let goes_on = std::mem::take(&mut parts.loop_cond);
            let turn = call(TURN, Vec::new());
            parts.loop_cond = call(operators::LOGICAL_AND, vec![turn, goes_on]);
        }
    }
}

fn count_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::StructField(field) => count_turns(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            count_turns(&mut entry.key);
            count_turns(&mut entry.value);
        }
    }
}

fn call(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }) }
}
