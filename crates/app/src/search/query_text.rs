//! Splits a query into its pieces: `-key:"value"`.

use std::iter::Peekable;
use std::str::Chars;

use super::query_problem::QueryProblem;

/// A word, a quoted text or a pair. Positions are characters counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) at: usize,
    /// In lower case.
    pub(super) key: Option<String>,
    pub(super) value_start: usize,
    pub(super) value: String,
    pub(super) is_negated: bool,
}

/// Characters with their positions.
struct Letters<'a> {
    rest: Peekable<Chars<'a>>,
    at: usize,
}

impl Letters<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.at += usize::from(next.is_some());
        next
    }

    fn next_if(&mut self, is_wanted: impl FnOnce(char) -> bool) -> Option<char> {
        let next = self.rest.next_if(|letter| is_wanted(*letter));
        self.at += usize::from(next.is_some());
        next
    }

    fn next_is(&mut self, wanted: char) -> bool {
        self.rest.peek() == Some(&wanted)
    }
}

pub(super) fn split(text: &str) -> Result<Vec<Piece>, QueryProblem> {
    let mut letters = Letters { rest: text.chars().peekable(), at: 1 };
    let mut pieces = Vec::new();
    loop {
        while letters.next_if(char::is_whitespace).is_some() {}
        if letters.rest.peek().is_none() {
            return Ok(pieces);
        }
        pieces.push(read_piece(&mut letters)?);
    }
}

fn read_piece(letters: &mut Letters<'_>) -> Result<Piece, QueryProblem> {
    let at = letters.at;
    let mut is_negated = letters.next_if(|letter| letter == '-').is_some();
    let value_start = letters.at;
    if letters.next_is('"') {
        let value = read_quoted(letters)?;
        return Ok(Piece { at, key: None, value_start, value, is_negated });
    }
    let mut word = String::new();
    while let Some(letter) = letters.next_if(|letter| !letter.is_whitespace()) {
        // Text before the first colon is a key only if it is a word: `10:30` has no key.
        let is_key =
            !word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphabetic() || letter == '_');
        if letter == ':' && is_key {
            let value_start = letters.at;
            let value = if letters.next_is('"') { read_quoted(letters)? } else { read_word(letters) };
            return Ok(Piece { at, key: Some(word.to_ascii_lowercase()), value_start, value, is_negated });
        }
        word.push(letter);
    }
    if word.is_empty() {
        // A minus by itself is a text.
        (word, is_negated) = ("-".to_owned(), false);
    }
    Ok(Piece { at, key: None, value_start, value: word, is_negated })
}

fn read_word(letters: &mut Letters<'_>) -> String {
    let mut word = String::new();
    while let Some(letter) = letters.next_if(|letter| !letter.is_whitespace()) {
        word.push(letter);
    }
    word
}

/// Reads a quoted text; a backslash escapes the next character.
fn read_quoted(letters: &mut Letters<'_>) -> Result<String, QueryProblem> {
    let at = letters.at;
    letters.next();
    let mut text = String::new();
    loop {
        let letter = match letters.next() {
            Some('"') => return Ok(text),
            Some('\\') => letters.next(),
            other => other,
        };
        match letter {
            Some(letter) => text.push(letter),
            None => return Err(QueryProblem { at, message: "the quoted text has no end".to_owned() }),
        }
    }
}
