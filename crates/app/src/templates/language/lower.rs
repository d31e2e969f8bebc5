//! Rewrites the statements of a template, each on its line of the source, and refuses statements that a mail does not
//! need.

use std::fmt::Write as _;

use minijinja::machinery::Span;
use minijinja::machinery::ast::{Expr, ForLoop, IfCond, Stmt, WithBlock};

use super::allowed::Allowed;
use super::lookups::{InputKind, Lookup, Segment};
use super::problem::{LineIndex, SourcePosition};
use super::scope::{Binding, DEPTH_MAX, Scopes};

/// The filter that is added to the list of a loop; it refuses `null`.
pub(crate) const ENTRIES: &str = "postroad_entries";

/// A source text, rewritten to what minijinja compiles.
#[derive(Debug)]
pub(crate) struct LoweredTemplate {
    /// The rewritten text, with the same lines as the source.
    pub(crate) text: String,
    /// Every use of a variable.
    pub(crate) lookups: Vec<Lookup>,
}

/// Maximum number of errors reported for one text.
const PROBLEMS_MAX: usize = 20;

pub(super) type LoweringResult<T> = Result<T, (SourcePosition, String)>;

/// State of rewriting one source text.
pub(super) struct Lowering<'a> {
    pub(super) lines: &'a LineIndex<'a>,
    source_bytes: usize,
    pub(super) out: String,
    /// Line number at the end of `out`.
    line: usize,
    pub(super) scopes: Scopes,
    pub(super) lookups: Vec<Lookup>,
    /// The line of the tag that is being written.
    pub(super) tag_line: usize,
    /// Where that tag begins in `out`.
    pub(super) tag_start: usize,
    /// Problems found so far.
    problems: Vec<(SourcePosition, String)>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(source: &str, lines: &'a LineIndex<'a>) -> Self {
        Self {
            lines,
            source_bytes: source.len(),
            out: String::with_capacity(source.len() + source.len() / 4),
            line: 1,
            scopes: Scopes::default(),
            lookups: Vec::new(),
            tag_line: 1,
            tag_start: 0,
            problems: Vec::new(),
        }
    }

    pub(super) fn finish(mut self) -> Result<LoweredTemplate, Vec<(SourcePosition, String)>> {
        if self.problems.is_empty() {
            return Ok(LoweredTemplate { text: self.out, lookups: self.lookups });
        }
        self.problems.sort_by_key(|(position, _)| (position.line, position.column));
        Err(self.problems)
    }

    /// Records an error and continues.
    pub(super) fn record_problem(&mut self, found: (SourcePosition, String)) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(found);
        }
    }

    pub(super) fn refuse<T>(&self, span: Span, message: impl Into<String>) -> LoweringResult<T> {
        Err(self.new_problem(span, message))
    }

    pub(super) fn new_problem(&self, span: Span, message: impl Into<String>) -> (SourcePosition, String) {
        let offset = (span.start_offset as usize).min(self.source_bytes) as u32;
        (self.lines.position(offset), message.into())
    }

    pub(super) fn statement(&mut self, statement: &Stmt<'_>) -> LoweringResult<()> {
        match statement {
            Stmt::Template(template) => {
                self.statements(&template.children);
                Ok(())
            }
            Stmt::EmitRaw(raw) => {
                self.raw(raw.raw);
                Ok(())
            }
            Stmt::EmitExpr(emit) => {
                self.open("{{ ", emit.expr.span());
                self.expression(&emit.expr, InputKind::Any, Allowed::ValueOnly)?;
                self.out.push_str(" }}");
                Ok(())
            }
            Stmt::IfCond(condition) => self.condition(condition),
            Stmt::ForLoop(for_loop) => self.for_loop(for_loop, for_loop.span()),
            Stmt::WithBlock(with) => self.with(with, with.span()),
            Stmt::Set(set) => {
                self.open("{% set ", set.span());
                let Expr::Var(target) = &set.target else {
                    return self.refuse(set.span(), "`set` takes one plain name");
                };
                self.out.push_str(target.id);
                self.out.push_str(" = ");
                let binding = self.write_binding(&set.expr, set.span())?;
                self.scopes.bind(target.id, binding);
                self.out.push_str(" %}");
                Ok(())
            }
            Stmt::SetBlock(stmt) => self.refuse(stmt.span(), "`set` needs a value: `{% set name = … %}`"),
            Stmt::FilterBlock(stmt) => self.unavailable(stmt.span(), "filter"),
            Stmt::AutoEscape(stmt) => self.unavailable(stmt.span(), "autoescape"),
            Stmt::Do(stmt) => self.unavailable(stmt.span(), "do"),
        }
    }

    fn unavailable(&self, span: Span, name: &str) -> LoweringResult<()> {
        self.refuse(span, format!("`{{% {name} %}}` is not available in templates of mails"))
    }

    fn statements(&mut self, statements: &[Stmt<'_>]) {
        for statement in statements {
            if let Err(found) = self.statement(statement) {
                self.record_problem(found);
            }
        }
    }

    /// Begins a tag on the same line as in the source.
    fn open(&mut self, text: &str, span: Span) {
        self.tag_start = self.out.len();
        self.out.push_str(text);
        self.tag_line = self.lines.line((span.start_offset as usize).min(self.source_bytes) as u32);
        while self.line < self.tag_line {
            self.out.push('\n');
            self.line += 1;
        }
    }

    /// Writes text outside of tags. Braces that would begin a tag are written as string expressions.
    fn raw(&mut self, text: &str) {
        self.line += text.bytes().filter(|byte| *byte == b'\n').count();
        let mut copied_to = 0;
        for (at, _) in text.match_indices('{') {
            if matches!(text.as_bytes().get(at + 1), None | Some(b'{' | b'%' | b'#')) {
                self.out.push_str(&text[copied_to..at]);
                self.out.push_str("{{ '{' }}");
                copied_to = at + 1;
            }
        }
        self.out.push_str(&text[copied_to..]);
    }

    fn condition(&mut self, condition: &IfCond<'_>) -> LoweringResult<()> {
        self.open("{% if ", condition.expr.span());
        self.expression(&condition.expr, InputKind::Any, Allowed::OrNull)?;
        self.out.push_str(" %}");
        self.statements(&condition.true_body);
        if !condition.false_body.is_empty() {
            self.out.push_str("{% else %}");
            self.statements(&condition.false_body);
        }
        self.out.push_str("{% endif %}");
        Ok(())
    }

    fn for_loop(&mut self, for_loop: &ForLoop<'_>, span: Span) -> LoweringResult<()> {
        if for_loop.recursive {
            return self.refuse(span, "loops cannot be recursive");
        }
        self.open("{% for ", for_loop.target.span());
        let names = self.loop_names(&for_loop.target)?;
        write!(self.out, "{} in ", names.join(", ")).expect("writing to a String cannot fail");
        let path = self.path_of(&for_loop.iter);
        let depth = self.depth(&for_loop.iter) + 1;
        if depth > DEPTH_MAX {
            return self.refuse(span, too_deep());
        }
        self.operand(&for_loop.iter, InputKind::List, Allowed::ValueOnly)?;
        write!(self.out, "|{ENTRIES}").expect("writing to a String cannot fail");
        self.scopes.push();
        self.scopes.bind("loop", Binding::default());
        for name in &names {
            let path = path.clone().filter(|_| names.len() == 1).map(|mut path| {
                path.push(Segment::Entry);
                path
            });
            self.scopes.bind(name, Binding { path, depth });
        }
        if let Some(filter) = &for_loop.filter_expr {
            self.out.push_str(" if ");
            self.expression(filter, InputKind::Any, Allowed::OrNull)?;
        }
        self.out.push_str(" %}");
        self.statements(&for_loop.body);
        self.scopes.pop();
        if !for_loop.else_body.is_empty() {
            self.out.push_str("{% else %}");
            self.statements(&for_loop.else_body);
        }
        self.out.push_str("{% endfor %}");
        Ok(())
    }

    fn loop_names(&self, target: &Expr<'_>) -> LoweringResult<Vec<String>> {
        let items = match target {
            Expr::Var(name) => return Ok(vec![name.id.to_owned()]),
            Expr::List(list) => &list.items,
            Expr::Tuple(tuple) => &tuple.items,
            other => return self.refuse(other.span(), "a loop binds plain names"),
        };
        items
            .iter()
            .map(|item| match item {
                Expr::Var(name) => Ok(name.id.to_owned()),
                other => self.refuse(other.span(), "a loop binds plain names"),
            })
            .collect()
    }

    fn with(&mut self, with: &WithBlock<'_>, span: Span) -> LoweringResult<()> {
        self.open("{% with ", span);
        let mut bindings = Vec::new();
        for (at, (target, value)) in with.assignments.iter().enumerate() {
            let Expr::Var(target) = target else {
                return self.refuse(target.span(), "`with` binds plain names");
            };
            self.out.push_str(if at == 0 { "" } else { ", " });
            self.out.push_str(target.id);
            self.out.push_str(" = ");
            let binding = self.write_binding(value, span)?;
            bindings.push((target.id, binding));
        }
        self.out.push_str(" %}");
        self.scopes.push();
        for (name, binding) in bindings {
            self.scopes.bind(name, binding);
        }
        self.statements(&with.body);
        self.scopes.pop();
        self.out.push_str("{% endwith %}");
        Ok(())
    }

    /// Writes a value that is bound to a name.
    fn write_binding(&mut self, value: &Expr<'_>, span: Span) -> LoweringResult<Binding> {
        let binding = Binding { path: self.path_of(value), depth: self.depth(value) };
        if binding.depth > DEPTH_MAX {
            return self.refuse(span, too_deep());
        }
        self.expression(value, InputKind::Any, Allowed::OrMissing)?;
        Ok(binding)
    }
}

fn too_deep() -> String {
    format!("variables are computed from one another in more than {DEPTH_MAX} steps")
}
