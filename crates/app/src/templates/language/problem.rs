//! Errors in a template, with their positions.

/// One error in one text of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateProblem {
    /// The field, such as `html_body` or `locales/de/subject`.
    pub part: String,
    /// From 1; 0 for the whole part.
    pub line: usize,
    /// From 1, in characters; 0 for the whole line.
    pub column: usize,
    pub message: String,
}

/// A position in a source text, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourcePosition {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl SourcePosition {
    /// Position not known; the error is shown as one of the whole text.
    pub(crate) const UNKNOWN: Self = Self { line: 0, column: 0 };
}

/// Maps offsets to lines and columns without scanning the text for each offset.
#[derive(Debug)]
pub(super) struct LineIndex<'a> {
    source: &'a str,
    /// Where each line begins.
    starts: Vec<u32>,
}

impl<'a> LineIndex<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        let ends = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at as u32 + 1)).collect();
        Self { source, starts }
    }

    /// The text between two offsets.
    pub(super) fn text(&self, start: u32, end: u32) -> &'a str {
        let [start, end] = [start, end].map(|offset| self.source.floor_char_boundary(offset as usize));
        &self.source[start..end.max(start)]
    }

    pub(super) fn line(&self, offset: u32) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }

    pub(super) fn position(&self, offset: u32) -> SourcePosition {
        let line = self.line(offset);
        let start = self.starts[line - 1] as usize;
        let end = self.source.floor_char_boundary(offset as usize);
        SourcePosition { line, column: self.source[start..end.max(start)].chars().count() + 1 }
    }
}
