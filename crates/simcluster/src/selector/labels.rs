// SPDX-License-Identifier: Apache-2.0
//! Label selectors: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<2`.

use serde_json::Value;

use super::SelectorError;
use super::names::{key_faults, value_faults};

/// A label selector: all of its requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    /// In order.
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Exists,
    Absent,
    /// Also `=` and `==`.
    In,
    /// Also `!=`: a missing label is not in any list.
    NotIn,
    Greater,
    Less,
}

impl Labels {
    /// Reads a selector; the empty text selects everything.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parser = Parser { rest: text };
        let mut requirements = Vec::new();
        loop {
            match parser.peek() {
                Token::Word(_) | Token::Sign("!") => {}
                Token::End => return Ok(Self { requirements }),
                other => return other.refuse(", expected: !, identifier, or 'end of string'"),
            }
            let requirement = parser.requirement().map_err(|SelectorError(error)| {
                SelectorError(format!("unable to parse requirement: {error}"))
            })?;
            requirements.push(requirement);
            match parser.next() {
                Token::End => return Ok(Self { requirements }),
                Token::Sign(",") => {
                    let next = parser.peek();
                    if !matches!(next, Token::Word(_) | Token::Sign("!")) {
                        return next.refuse(", expected: identifier after ','");
                    }
                }
                other => return other.refuse(", expected: ',' or 'end of string'"),
            }
        }
    }

    /// Whether all requirements hold for the object's `metadata.labels`.
    pub fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| object["metadata"]["labels"].get(key)?.as_str();
        let mut requirements = self.requirements.iter();
        requirements.all(|requirement| requirement.holds(label(&requirement.key)))
    }
}

impl Requirement {
    fn holds(&self, label: Option<&str>) -> bool {
        let listed = || label.is_some_and(|label| self.values.iter().any(|value| value == label));
        let number = |text: &str| text.parse::<i64>().ok();
        let numbers = || Some((number(label?)?, number(self.values.first()?)?));
        match self.operator {
            Operator::Exists => label.is_some(),
            Operator::Absent => label.is_none(),
            Operator::In => listed(),
            Operator::NotIn => !listed(),
            Operator::Greater => numbers().is_some_and(|(label, value)| label > value),
            Operator::Less => numbers().is_some_and(|(label, value)| label < value),
        }
    }

    fn check(self) -> Result<Self, SelectorError> {
        let mut faults = Vec::new();
        let numeric = matches!(self.operator, Operator::Greater | Operator::Less);
        for (at, value) in self.values.iter().enumerate() {
            if numeric && value.parse::<i64>().is_err() {
                faults.push(format!(
                    "values[{at}]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
                ));
            }
        }
        for (at, value) in self.values.iter().enumerate() {
            let wrong = value_faults(value);
            if !wrong.is_empty() {
                let (key, wrong) = (&self.key, wrong.join("; "));
                faults.push(format!(
                    "values[{at}][{key}]: Invalid value: {value:?}: {wrong}"
                ));
            }
        }
        match faults.as_slice() {
            [] => Ok(self),
            [fault] => Err(SelectorError(fault.clone())),
            several => Err(SelectorError(format!("[{}]", several.join(", ")))),
        }
    }
}

/// What is left of a selector.
struct Parser<'a> {
    rest: &'a str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    End,
    Sign(&'a str),
    /// A key, a value, or an operator in letters: its place decides.
    Word(&'a str),
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::End => "",
            Self::Sign(text) | Self::Word(text) => text,
        }
    }

    fn refuse<T>(self, expected: &str) -> Result<T, SelectorError> {
        let found = self.text();
        Err(SelectorError(format!("found '{found}'{expected}")))
    }
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        Parser { rest: self.rest }.next()
    }

    fn next(&mut self) -> Token<'a> {
        let is_blank = |character: char| " \t\r\n".contains(character);
        let is_sign = |character: char| "=!(),><".contains(character);
        let text = self.rest.trim_start_matches(is_blank);
        let end = match text {
            "" => 0,
            _ if text.starts_with("==") || text.starts_with("!=") => 2,
            _ if text.starts_with(is_sign) => 1,
            _ => text
                .find(|next| is_blank(next) || is_sign(next))
                .unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at(end);
        self.rest = rest;
        match token {
            "" => Token::End,
            _ if token.starts_with(is_sign) => Token::Sign(token),
            _ => Token::Word(token),
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let negated = self.peek() == Token::Sign("!");
        if negated {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key.to_owned(),
            other => return other.refuse(", expected: identifier"),
        };
        let faults = key_faults(&key);
        if !faults.is_empty() {
            let faults = faults.join("; ");
            return Err(SelectorError(format!(
                "<nil>: Invalid value: {key:?}: {faults}"
            )));
        }
        if negated || matches!(self.peek(), Token::End | Token::Sign(",")) {
            let operator = if negated {
                Operator::Absent
            } else {
                Operator::Exists
            };
            let values = Vec::new();
            return Ok(Requirement {
                key,
                operator,
                values,
            });
        }
        let sign = self.next();
        let operator = match sign.text() {
            "in" | "=" | "==" => Operator::In,
            "notin" | "!=" => Operator::NotIn,
            ">" => Operator::Greater,
            "<" => Operator::Less,
            _ => return sign.refuse(", expected: in, notin, =, ==, !=, gt, lt"),
        };
        let values = match sign {
            Token::Word(_) => self.list()?,
            _ => vec![self.value()?],
        };
        Requirement {
            key,
            operator,
            values,
        }
        .check()
    }

    /// What follows `=` and its like: nothing is the empty text.
    fn value(&mut self) -> Result<String, SelectorError> {
        if matches!(self.peek(), Token::End | Token::Sign(",")) {
            return Ok(String::new());
        }
        match self.next() {
            Token::Word(value) => Ok(value.to_owned()),
            other => other.refuse(", expected: identifier"),
        }
    }

    /// `(a,b)`; between two commas, or a comma and a parenthesis, is the empty text.
    fn list(&mut self) -> Result<Vec<String>, SelectorError> {
        let open = self.next();
        if open != Token::Sign("(") {
            return open.refuse(" expected: '('");
        }
        let first = self.peek();
        if !matches!(first, Token::Word(_) | Token::Sign("," | ")")) {
            return first.refuse(", expected: ',', ')' or identifier");
        }
        let mut values = Vec::new();
        loop {
            let value = match self.peek() {
                Token::Word(value) => value,
                Token::Sign("," | ")") => "",
                other => return other.refuse(", expected: ',', or identifier"),
            };
            if !value.is_empty() {
                self.next();
            }
            values.push(value.to_owned());
            match self.next() {
                Token::Sign(",") => {}
                Token::Sign(")") => break,
                other => return other.refuse(", expected: ',' or ')'"),
            }
        }
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }
}
