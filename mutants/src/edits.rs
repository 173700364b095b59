//! Where mutants go in one file, and the file with all of them in it.

use std::ops::Range;

use proc_macro2::{LineColumn, Span};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::{Mutant, Position};

/// What may be mutated: the bytes of the whole and of its parts.
enum Place {
    Binary {
        left: Range<usize>,
        operator: Range<usize>,
        right: Range<usize>,
    },
    Unary {
        operator: Range<usize>,
        operand: Range<usize>,
    },
    Guard,
    Field,
    /// The beginning of a function's body.
    Body,
}

struct Edit {
    range: Range<usize>,
    place: Place,
    /// By number, what each puts in the place of the operator, guard, field or body.
    mutants: Vec<(usize, String)>,
}

pub struct Source<'a> {
    text: &'a str,
    /// Where each line begins.
    lines: Vec<usize>,
    edits: Vec<Edit>,
    constant: Vec<Range<usize>>,
}

impl<'a> Source<'a> {
    pub fn new(text: &'a str) -> syn::Result<Source<'a>> {
        let mut source = Source {
            text,
            lines: std::iter::once(0)
                .chain(text.match_indices('\n').map(|(at, _)| at + 1))
                .collect(),
            edits: Vec::new(),
            constant: Vec::new(),
        };
        let file = syn::parse_file(text)?;
        source.visit_file(&file);
        Ok(source)
    }

    /// Columns count characters; `column` from 0.
    fn offset(&self, line: usize, column: usize) -> usize {
        let start = self.lines[line - 1];
        let rest = &self.text[start..];
        start
            + rest
                .char_indices()
                .nth(column)
                .map_or(rest.len(), |(at, _)| at)
    }

    fn range(&self, span: Span) -> Range<usize> {
        let at = |place: LineColumn| self.offset(place.line, place.column);
        at(span.start())..at(span.end())
    }

    /// Adds a mutant; `false` where it has no place, or lies in something that is computed while compiling.
    pub fn place(&mut self, number: usize, mutant: &Mutant) -> bool {
        let at = |place: &Position| self.offset(place.line, place.column - 1);
        let range = at(&mutant.span.start)..at(&mutant.span.end);
        if self.constant.iter().any(|all| all.contains(&range.start)) {
            return false;
        }
        if mutant.genre == "FnValue" {
            self.edits.push(Edit {
                range: range.start..range.start,
                place: Place::Body,
                mutants: vec![(number, mutant.replacement.clone())],
            });
            return true;
        }
        let found = self.edits.iter_mut().find(|edit| match &edit.place {
            Place::Binary { operator, .. } => {
                mutant.genre == "BinaryOperator" && operator.start == range.start
            }
            Place::Unary { operator, .. } => {
                mutant.genre == "UnaryOperator" && operator.start == range.start
            }
            Place::Guard => mutant.genre == "MatchArmGuard" && edit.range == range,
            Place::Field => mutant.genre == "StructField" && edit.range.start == range.start,
            Place::Body => false,
        });
        match found {
            Some(edit) => {
                edit.mutants.push((number, mutant.replacement.clone()));
                true
            }
            None => false,
        }
    }

    pub fn rewritten(mut self) -> String {
        self.edits.retain(|edit| !edit.mutants.is_empty());
        // What contains another comes before it; a body's own beginning before what it begins with.
        self.edits.sort_by_key(|edit| {
            let inside = !matches!(edit.place, Place::Body);
            (edit.range.start, inside, std::cmp::Reverse(edit.range.end))
        });
        self.render(0..self.text.len(), &self.edits)
    }

    /// The text of that range with those of the edits that lie in it.
    fn render(&self, range: Range<usize>, edits: &[Edit]) -> String {
        let mut result = String::new();
        let mut at = range.start;
        for (index, edit) in edits.iter().enumerate() {
            if edit.range.start < at || edit.range.end > range.end {
                continue;
            }
            result += &self.text[at..edit.range.start];
            result += &self.render_edit(edit, &edits[index + 1..]);
            at = edit.range.end;
        }
        result + &self.text[at..range.end]
    }

    fn render_edit(&self, edit: &Edit, inner: &[Edit]) -> String {
        let chosen = |number: usize| format!("crate::chosen_mutant::is({number})");
        match &edit.place {
            Place::Body => edit
                .mutants
                .iter()
                .map(|(number, value)| format!("if {} {{ return {value}; }} ", chosen(*number)))
                .collect(),
            Place::Guard => {
                let mut guard = format!("({})", self.render(edit.range.clone(), inner));
                for (number, value) in &edit.mutants {
                    guard = match value.as_str() {
                        "true" => format!("({} || {guard})", chosen(*number)),
                        _ => format!("(!{} && {guard})", chosen(*number)),
                    };
                }
                guard
            }
            Place::Field => {
                let text = &self.text[edit.range.clone()];
                let value = edit.range.start + text.find(':').map_or(0, |at| at + 1);
                let value = self.render(value..edit.range.end, inner);
                let name = text.split(':').next().unwrap_or_default();
                let (number, _) = edit.mutants[0];
                format!(
                    "{name}: if {} {{ Default::default() }} else {{ {value} }}",
                    chosen(number)
                )
            }
            Place::Unary { operator, operand } => {
                let (number, _) = edit.mutants[0];
                let (sign, whole) = (&self.text[operator.clone()], &self.text[operand.clone()]);
                let inner = self.render(operand.clone(), inner);
                format!(
                    "(if {} {{ {whole} }} else {{ {sign}{inner} }})",
                    chosen(number)
                )
            }
            Place::Binary {
                left,
                operator,
                right,
            } => {
                let parts = [left, right].map(|part| &self.text[part.clone()]);
                let mut result = String::from("(");
                for (number, other) in &edit.mutants {
                    result += &format!(
                        "if {} {{ {} {other} {} }} else ",
                        chosen(*number),
                        parts[0],
                        parts[1]
                    );
                }
                let [left, right] = [left, right].map(|part| self.render(part.clone(), inner));
                result + &format!("{{ {left} {} {right} }})", &self.text[operator.clone()])
            }
        }
    }

    fn add(&mut self, range: Range<usize>, place: Place) {
        self.edits.push(Edit {
            range,
            place,
            mutants: Vec::new(),
        });
    }
}

impl<'ast> Visit<'ast> for Source<'_> {
    fn visit_expr_binary(&mut self, expression: &'ast syn::ExprBinary) {
        let place = Place::Binary {
            left: self.range(expression.left.span()),
            operator: self.range(expression.op.span()),
            right: self.range(expression.right.span()),
        };
        self.add(self.range(expression.span()), place);
        visit::visit_expr_binary(self, expression);
    }

    fn visit_expr_unary(&mut self, expression: &'ast syn::ExprUnary) {
        let place = Place::Unary {
            operator: self.range(expression.op.span()),
            operand: self.range(expression.expr.span()),
        };
        self.add(self.range(expression.span()), place);
        visit::visit_expr_unary(self, expression);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.add(self.range(guard.span()), Place::Guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        if field.colon_token.is_some() {
            self.add(self.range(field.span()), Place::Field);
        }
        visit::visit_field_value(self, field);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.constant.push(self.range(item.span()));
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.constant.push(self.range(item.span()));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.constant.push(self.range(item.span()));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        match item.sig.constness {
            Some(_) => self.constant.push(self.range(item.span())),
            None => visit::visit_item_fn(self, item),
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        match item.sig.constness {
            Some(_) => self.constant.push(self.range(item.span())),
            None => visit::visit_impl_item_fn(self, item),
        }
    }
}
