//! Rewrites expressions: slices, and operators with two operands except `and` and `or`, become filters of ours. Unknown
//! filters, tests and functions are errors.

use std::fmt::Write as _;

use minijinja::Value;
use minijinja::machinery::Span;
use minijinja::machinery::ast::{BinOpKind, CallArg, CompareOpKind, Expr, UnaryOpKind};
use minijinja::value::ValueKind;

use super::allowed::Allowed;
use super::lookups::{InputKind, Lookup, Segment};
use super::lower::{Lowering, LoweringResult};
use crate::templates::filters;

/// The filter that replaces operators with two operands, except `and` and `or`.
pub(crate) const OPERATOR: &str = "postroad_operator";
/// The filter added to a variable if minijinja would not report that it is missing, or would not name it:
/// `x|postroad_required(3, false)`. Its arguments are the number of the look-up and whether `null` is allowed.
pub(crate) const REQUIRED: &str = "postroad_required";
/// The filter that replaces slices.
pub(crate) const SLICE: &str = "postroad_slice";
/// Tests that are not rewritten.
const TESTS: [&str; 22] = [
    "defined",
    "undefined",
    "none",
    "true",
    "false",
    "boolean",
    "odd",
    "even",
    "divisibleby",
    "number",
    "integer",
    "int",
    "float",
    "string",
    "sequence",
    "iterable",
    "mapping",
    "startingwith",
    "endingwith",
    "lower",
    "upper",
    "safe",
];
/// Tests that are equivalent to operators.
const OPERATOR_TESTS: [(&str, &str); 13] = [
    ("eq", "=="),
    ("equalto", "=="),
    ("sameas", "=="),
    ("ne", "!="),
    ("lt", "<"),
    ("lessthan", "<"),
    ("le", "<="),
    ("gt", ">"),
    ("greaterthan", ">"),
    ("ge", ">="),
    ("in", "in"),
    ("==", "=="),
    ("!=", "!="),
];

impl Lowering<'_> {
    /// Writes an expression. minijinja reports a missing variable with its position, except in places such as branches
    /// of conditions and arguments: these are written with `required`.
    pub(super) fn expression(
        &mut self,
        expr: &Expr<'_>,
        hint: InputKind,
        allowed: Allowed,
    ) -> LoweringResult<()> {
        match expr {
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) => self.lookup(expr, hint, false).map(drop),
            Expr::Const(constant) => self.constant(&constant.value, constant.span()),
            Expr::Slice(slice) => {
                self.operand(&slice.expr, InputKind::List, Allowed::ValueOnly)?;
                write!(self.out, "|{SLICE}(").expect("writing to a String cannot fail");
                for (at, part) in [&slice.start, &slice.stop, &slice.step].into_iter().enumerate() {
                    self.out.push_str(if at == 0 { "" } else { ", " });
                    match part {
                        Some(part) => self.required(part, InputKind::Number, Allowed::ValueOnly)?,
                        None => self.out.push_str("none"),
                    }
                }
                self.out.push(')');
                Ok(())
            }
            Expr::UnaryOp(unary) => {
                let (sign, hint, allowed) = match unary.op {
                    UnaryOpKind::Not => ("(not ", InputKind::Any, Allowed::OrNull),
                    UnaryOpKind::Neg => ("(-", InputKind::Number, Allowed::ValueOnly),
                };
                self.out.push_str(sign);
                self.operand(&unary.expr, hint, allowed)?;
                self.out.push(')');
                Ok(())
            }
            Expr::BinOp(binary) => match binary.op {
                BinOpKind::ScAnd => self.logical(&binary.left, "and", &binary.right),
                BinOpKind::ScOr => self.logical(&binary.left, "or", &binary.right),
                op => self.operator(&binary.left, operator_sign(op), &binary.right),
            },
            Expr::Compare(compare) => match compare.ops.as_slice() {
                [one] => self.operator(&compare.expr, compare_sign(one.op), &one.expr),
                _ => self.refuse(compare.span(), "write `a < b and b < c` instead of `a < b < c`"),
            },
            Expr::IfExpr(condition) => {
                self.out.push('(');
                self.required(&condition.true_expr, hint, allowed)?;
                self.out.push_str(" if ");
                self.required(&condition.test_expr, InputKind::Any, Allowed::OrNull)?;
                if let Some(other) = &condition.false_expr {
                    self.out.push_str(" else ");
                    self.required(other, hint, allowed)?;
                }
                self.out.push(')');
                Ok(())
            }
            Expr::Filter(filter) => {
                let Some(inner) = &filter.expr else {
                    return self.refuse(filter.span(), "a filter needs a value before it");
                };
                let Some(input_kind) = filters::input_kind(filter.name) else {
                    let message = unknown("filter", filter.name, filters::names());
                    let found = self.new_problem(filter.span(), message);
                    self.record_problem(found);
                    self.operand(inner, InputKind::Any, Allowed::OrMissing)?;
                    return self.arguments(&filter.args, Allowed::OrMissing);
                };
                let (operand, argument) = match filter.name {
                    "default" | "d" => (Allowed::OrMissing, Allowed::OrMissing),
                    "bool" => (Allowed::OrNull, Allowed::ValueOnly),
                    _ => (Allowed::ValueOnly, Allowed::ValueOnly),
                };
                if operand == Allowed::OrMissing && is_path(inner) {
                    self.lookup(inner, hint, true)?;
                } else {
                    self.operand(inner, input_kind, operand)?;
                }
                self.out.push('|');
                self.out.push_str(filter.name);
                self.arguments(&filter.args, argument)
            }
            Expr::Test(test) => self.test(test.name, &test.expr, &test.args, test.span()),
            Expr::Call(call) => {
                let is_allowed = match &call.expr {
                    Expr::Var(name) => name.id == "range" && self.scopes.find("range").is_none(),
                    Expr::GetAttr(attr) => {
                        attr.name == "cycle" && matches!(&attr.expr, Expr::Var(name) if name.id == "loop")
                    }
                    _ => false,
                };
                if !is_allowed {
                    let message = "the only functions are `range(…)` and `loop.cycle(…)`";
                    return self.refuse(call.span(), message);
                }
                self.out.push_str(if matches!(call.expr, Expr::Var(_)) { "range" } else { "loop.cycle" });
                self.arguments(&call.args, Allowed::ValueOnly)
            }
            Expr::List(list) => self.items("[", &list.items, "]"),
            Expr::Tuple(tuple) => self.items("[", &tuple.items, "]"),
            Expr::Map(map) => {
                self.out.push('{');
                for (at, (key, value)) in map.keys.iter().zip(&map.values).enumerate() {
                    self.out.push_str(if at == 0 { "" } else { ", " });
                    self.required(key, InputKind::Any, Allowed::ValueOnly)?;
                    self.out.push_str(": ");
                    self.expression(value, InputKind::Any, Allowed::OrMissing)?;
                }
                self.out.push('}');
                Ok(())
            }
        }
    }

    /// Writes an expression before a filter, in parentheses where precedence requires it.
    pub(super) fn operand(
        &mut self,
        expr: &Expr<'_>,
        hint: InputKind,
        allowed: Allowed,
    ) -> LoweringResult<()> {
        let is_plain = match expr {
            Expr::Var(_)
            | Expr::GetAttr(_)
            | Expr::GetItem(_)
            | Expr::Const(_)
            | Expr::Slice(_)
            | Expr::Filter(_)
            | Expr::Call(_)
            | Expr::List(_)
            | Expr::Map(_)
            | Expr::Compare(_) => true,
            Expr::BinOp(binary) => !matches!(binary.op, BinOpKind::ScAnd | BinOpKind::ScOr),
            _ => false,
        };
        if is_plain {
            return self.expression(expr, hint, allowed);
        }
        self.out.push('(');
        self.expression(expr, hint, allowed)?;
        self.out.push(')');
        Ok(())
    }

    /// Writes an expression where minijinja would not name a missing variable; adds a filter that names it.
    fn required(&mut self, expr: &Expr<'_>, hint: InputKind, allowed: Allowed) -> LoweringResult<()> {
        if !is_path(expr) {
            return self.expression(expr, hint, allowed);
        }
        let number = self.lookup(expr, hint, false)?;
        if allowed != Allowed::OrMissing {
            let takes_null = allowed == Allowed::OrNull;
            write!(self.out, "|{REQUIRED}({number}, {takes_null})").expect("writing to a String cannot fail");
        }
        Ok(())
    }

    fn logical(&mut self, left: &Expr<'_>, word: &str, right: &Expr<'_>) -> LoweringResult<()> {
        self.out.push('(');
        self.expression(left, InputKind::Any, Allowed::OrNull)?;
        write!(self.out, " {word} ").expect("writing to a String cannot fail");
        self.expression(right, InputKind::Any, Allowed::OrNull)?;
        self.out.push(')');
        Ok(())
    }

    fn operator(&mut self, left: &Expr<'_>, sign: &str, right: &Expr<'_>) -> LoweringResult<()> {
        let is_number =
            |expr: &Expr<'_>| matches!(expr, Expr::Const(c) if c.value.kind() == ValueKind::Number);
        let hint = match sign {
            "-" | "*" | "/" | "//" | "%" | "**" => InputKind::Number,
            "+" | "<" | "<=" | ">" | ">=" | "==" if is_number(left) || is_number(right) => InputKind::Number,
            _ => InputKind::Any,
        };
        let allowed =
            if matches!(sign, "==" | "!=" | "in" | "not in") { Allowed::OrNull } else { Allowed::ValueOnly };
        self.operand(left, hint, allowed)?;
        write!(self.out, "|{OPERATOR}('{sign}', ").expect("writing to a String cannot fail");
        let hint = if matches!(sign, "in" | "not in") { InputKind::List } else { hint };
        self.expression(right, hint, allowed)?;
        self.out.push(')');
        Ok(())
    }

    fn test(&mut self, name: &str, expr: &Expr<'_>, args: &[CallArg<'_>], span: Span) -> LoweringResult<()> {
        if let Some((_, sign)) = OPERATOR_TESTS.iter().find(|(test, _)| *test == name) {
            return match args {
                [CallArg::Pos(right)] => self.operator(expr, sign, right),
                _ => self.refuse(span, format!("the test `{name}` takes one value")),
            };
        }
        if !TESTS.contains(&name) {
            let found = self.new_problem(span, unknown("test", name, TESTS.into_iter()));
            self.record_problem(found);
            return self.operand(expr, InputKind::Any, Allowed::OrMissing);
        }
        self.out.push('(');
        let takes_missing = matches!(name, "defined" | "undefined");
        if takes_missing && is_path(expr) {
            self.lookup(expr, InputKind::Any, true)?;
        } else {
            let allowed = if takes_missing { Allowed::OrMissing } else { Allowed::OrNull };
            self.operand(expr, InputKind::Any, allowed)?;
        }
        self.out.push_str(" is ");
        self.out.push_str(name);
        if !args.is_empty() {
            self.arguments(args, Allowed::ValueOnly)?;
        }
        self.out.push(')');
        Ok(())
    }

    fn arguments(&mut self, args: &[CallArg<'_>], allowed: Allowed) -> LoweringResult<()> {
        self.out.push('(');
        for (at, argument) in args.iter().enumerate() {
            self.out.push_str(if at == 0 { "" } else { ", " });
            match argument {
                CallArg::Pos(value) => self.required(value, InputKind::Any, allowed)?,
                CallArg::Kwarg(name, value) => {
                    self.out.push_str(name);
                    self.out.push('=');
                    self.required(value, InputKind::Any, allowed)?;
                }
                CallArg::PosSplat(value) | CallArg::KwargSplat(value) => {
                    return self.refuse(value.span(), "arguments are written one by one, without `*`");
                }
            }
        }
        self.out.push(')');
        Ok(())
    }

    fn items(&mut self, open: &str, items: &[Expr<'_>], close: &str) -> LoweringResult<()> {
        self.out.push_str(open);
        for (at, item) in items.iter().enumerate() {
            self.out.push_str(if at == 0 { "" } else { ", " });
            self.expression(item, InputKind::Any, Allowed::OrMissing)?;
        }
        self.out.push_str(close);
        Ok(())
    }

    fn constant(&mut self, value: &Value, span: Span) -> LoweringResult<()> {
        match value.kind() {
            ValueKind::String => {
                self.out.push('"');
                for c in value.as_str().unwrap_or_default().chars() {
                    match c {
                        '"' => self.out.push_str("\\\""),
                        '\\' => self.out.push_str("\\\\"),
                        // On one line, so that line numbers match the source.
                        '\n' => self.out.push_str("\\n"),
                        '\r' => self.out.push_str("\\r"),
                        other => self.out.push(other),
                    }
                }
                self.out.push('"');
            }
            ValueKind::Number | ValueKind::Bool | ValueKind::None => {
                write!(self.out, "{value}").expect("writing to a String cannot fail");
            }
            _ => return self.refuse(span, "this constant is not available"),
        }
        Ok(())
    }

    /// Writes a variable, or a part of one, and records its look-up. Returns the number of the look-up.
    fn lookup(&mut self, expr: &Expr<'_>, hint: InputKind, is_optional: bool) -> LoweringResult<usize> {
        let start = self.out.len();
        self.path_text(expr)?;
        let path = self.path_of(expr);
        self.lookups.push(Lookup {
            path,
            text: self.lines.text(path_start(expr), expr.span().end_offset).to_owned(),
            position: self.lines.position(path_start(expr)),
            tag_line: self.tag_line,
            tag_start: self.tag_start,
            range: start..self.out.len(),
            is_optional,
            hint,
        });
        Ok(self.lookups.len() - 1)
    }

    fn path_text(&mut self, expr: &Expr<'_>) -> LoweringResult<()> {
        match expr {
            Expr::Var(name) => self.out.push_str(name.id),
            Expr::GetAttr(attr) => {
                self.path_text(&attr.expr)?;
                self.out.push('.');
                self.out.push_str(attr.name);
            }
            Expr::GetItem(item) => {
                self.path_text(&item.expr)?;
                self.out.push('[');
                self.required(&item.subscript_expr, InputKind::Any, Allowed::ValueOnly)?;
                self.out.push(']');
            }
            Expr::Call(_) | Expr::List(_) | Expr::Map(_) => {
                self.expression(expr, InputKind::Any, Allowed::ValueOnly)?;
            }
            other => {
                self.out.push('(');
                self.expression(other, InputKind::Any, Allowed::ValueOnly)?;
                self.out.push(')');
            }
        }
        Ok(())
    }

    /// The path in the model of an expression's value; `None` if the template computes the value.
    pub(super) fn path_of(&self, expr: &Expr<'_>) -> Option<Vec<Segment>> {
        match expr {
            Expr::Var(name) => match self.scopes.find(name.id) {
                Some(binding) => binding.path.clone(),
                None => Some(vec![Segment::Name(name.id.to_owned())]),
            },
            Expr::GetAttr(attr) => {
                let mut path = self.path_of(&attr.expr)?;
                path.push(Segment::Name(attr.name.to_owned()));
                Some(path)
            }
            Expr::GetItem(item) => {
                let mut path = self.path_of(&item.expr)?;
                let Expr::Const(key) = &item.subscript_expr else { return None };
                path.push(match key.value.as_str() {
                    Some(name) => Segment::Name(name.to_owned()),
                    None => Segment::Entry,
                });
                Some(path)
            }
            _ => None,
        }
    }

    /// Number of steps in which a value is computed.
    pub(super) fn depth(&self, expr: &Expr<'_>) -> usize {
        let deepest = |parts: &mut dyn Iterator<Item = &Expr<'_>>| {
            1 + parts.map(|part| self.depth(part)).max().unwrap_or_default()
        };
        match expr {
            Expr::Var(name) => self.scopes.find(name.id).map_or(0, |binding| binding.depth),
            Expr::Const(_) => 0,
            Expr::GetAttr(attr) => self.depth(&attr.expr),
            Expr::GetItem(item) => self.depth(&item.expr),
            Expr::Slice(slice) => deepest(&mut [&slice.expr].into_iter()),
            Expr::UnaryOp(unary) => deepest(&mut [&unary.expr].into_iter()),
            Expr::BinOp(binary) => deepest(&mut [&binary.left, &binary.right].into_iter()),
            Expr::Compare(_) | Expr::Test(_) => 1,
            Expr::IfExpr(condition) => {
                let branches = [Some(&condition.true_expr), condition.false_expr.as_ref()];
                deepest(&mut branches.into_iter().flatten())
            }
            Expr::Filter(filter) => {
                deepest(&mut filter.expr.iter().chain(filter.args.iter().map(argument_value)))
            }
            Expr::Call(call) => deepest(&mut call.args.iter().map(argument_value)),
            Expr::List(list) => deepest(&mut list.items.iter()),
            Expr::Tuple(tuple) => deepest(&mut tuple.items.iter()),
            Expr::Map(map) => deepest(&mut map.values.iter()),
        }
    }
}

fn argument_value<'e, 'a>(argument: &'e CallArg<'a>) -> &'e Expr<'a> {
    match argument {
        CallArg::Pos(value)
        | CallArg::Kwarg(_, value)
        | CallArg::PosSplat(value)
        | CallArg::KwargSplat(value) => value,
    }
}

/// Offset in the source at which a path begins. In minijinja, the span of `a[0]` begins at the bracket.
fn path_start(expr: &Expr<'_>) -> u32 {
    let start = expr.span().start_offset;
    match expr {
        Expr::GetAttr(attr) => start.min(path_start(&attr.expr)),
        Expr::GetItem(item) => start.min(path_start(&item.expr)),
        _ => start,
    }
}

fn is_path(expr: &Expr<'_>) -> bool {
    matches!(expr, Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_))
}

fn operator_sign(op: BinOpKind) -> &'static str {
    match op {
        BinOpKind::Eq => "==",
        BinOpKind::Ne => "!=",
        BinOpKind::Lt => "<",
        BinOpKind::Lte => "<=",
        BinOpKind::Gt => ">",
        BinOpKind::Gte => ">=",
        BinOpKind::Add => "+",
        BinOpKind::Sub => "-",
        BinOpKind::Mul => "*",
        BinOpKind::Div => "/",
        BinOpKind::FloorDiv => "//",
        BinOpKind::Rem => "%",
        BinOpKind::Pow => "**",
        BinOpKind::Concat => "~",
        BinOpKind::In => "in",
        BinOpKind::ScAnd | BinOpKind::ScOr => unreachable!("written as words"),
    }
}

fn compare_sign(op: CompareOpKind) -> &'static str {
    match op {
        CompareOpKind::Eq => "==",
        CompareOpKind::Ne => "!=",
        CompareOpKind::Lt => "<",
        CompareOpKind::Lte => "<=",
        CompareOpKind::Gt => ">",
        CompareOpKind::Gte => ">=",
        CompareOpKind::In => "in",
        CompareOpKind::NotIn => "not in",
    }
}

/// Error about an unknown name, with the most similar known name.
fn unknown<'n>(kind: &str, name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let shown: String = name.chars().take(60).collect();
    match crate::templates::missing_variables::nearest(name, known) {
        Some(nearest) => format!("there is no {kind} `{shown}`; did you mean `{nearest}`?"),
        None => format!("there is no {kind} `{shown}`"),
    }
}
