//! Lists as tables: column names once, then rows.

use serde_json::{Value, json};

use super::{ANSWER_BUDGET, Answer};

/// Which part of a list was asked for.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// First row, from 0.
    pub offset: usize,
    /// Most rows.
    pub limit: usize,
    /// Whether the caller named `limit`, and so takes a large answer.
    pub asked: bool,
}

impl Page {
    /// Rows of a list unless the caller says otherwise.
    pub const DEFAULT_LIMIT: usize = 100;

    /// From the arguments `limit` and `offset`.
    #[must_use]
    pub fn new(limit: Option<usize>, offset: Option<usize>) -> Self {
        Self {
            offset: offset.unwrap_or(0),
            limit: limit.unwrap_or(Self::DEFAULT_LIMIT),
            asked: limit.is_some(),
        }
    }
}

/// A list on its way to an answer.
#[derive(Debug, Clone, Default)]
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Value>,
    total: usize,
    next: Option<usize>,
    missing: Vec<String>,
}

impl Table {
    /// A table of the given columns.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Takes the page from all items and makes its rows, so that rows nobody
    /// sees cost nothing.
    pub fn fill<T>(
        mut self,
        items: impl ExactSizeIterator<Item = T>,
        page: Page,
        mut row: impl FnMut(T) -> Vec<Value>,
    ) -> Self {
        self.total = items.len();
        let mut bytes = 0;
        for item in items.skip(page.offset).take(page.limit) {
            let row = Value::Array(row(item));
            if !page.asked {
                bytes += size(&row);
                if bytes > ANSWER_BUDGET - 1_000 {
                    break;
                }
            }
            self.rows.push(row);
        }
        let end = page.offset.saturating_add(self.rows.len());
        self.next = (end < self.total).then_some(end);
        self
    }

    /// Says what could not be seen: the answer is marked `partial`.
    #[must_use]
    pub fn missing(mut self, missing: impl IntoIterator<Item = String>) -> Self {
        self.missing.extend(missing);
        self
    }

    /// How many items there are in all.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }

    /// The table as it stands in answers.
    #[must_use]
    pub fn into_value(self) -> Value {
        let shown = self.rows.len();
        let mut value = json!({
            "columns": self.columns, "rows": self.rows, "total": self.total, "shown": shown,
        });
        if let Value::Object(map) = &mut value {
            if let Some(next) = self.next {
                map.insert("next".to_owned(), next.into());
            }
            if !self.missing.is_empty() {
                map.insert("partial".to_owned(), true.into());
                map.insert("missing".to_owned(), self.missing.into());
            }
        }
        value
    }

    /// The answer: `N of M things`, and the table.
    #[must_use]
    pub fn into_answer(self, things: &str) -> Answer {
        let heading = if self.rows.len() == self.total {
            format!("{} {things}", self.total)
        } else {
            format!("{} of {} {things}", self.rows.len(), self.total)
        };
        Answer { structured: self.into_value(), heading }
    }
}

/// Bytes of a value as compact JSON, near enough for a budget.
fn size(value: &Value) -> usize {
    match value {
        Value::Null => 5,
        Value::Bool(_) => 6,
        Value::Number(_) => 9,
        Value::String(s) => s.len() + 3,
        Value::Array(items) => 2 + items.iter().map(size).sum::<usize>(),
        Value::Object(map) => 2 + map.iter().map(|(k, v)| k.len() + 4 + size(v)).sum::<usize>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(items: usize, page: Page, cell: &str) -> Value {
        Table::new(["n"]).fill(0..items, page, |_| vec![cell.into()]).into_value()
    }

    #[test]
    fn pages_are_counted() {
        let first = table(250, Page::new(None, None), "x");
        assert_eq!(
            (&first["total"], &first["shown"], &first["next"]),
            (&250.into(), &100.into(), &100.into())
        );
        let last = table(250, Page::new(None, Some(200)), "x");
        assert_eq!((&last["shown"], last.get("next")), (&50.into(), None));
        let beyond = table(250, Page::new(None, Some(900)), "x");
        assert_eq!((&beyond["shown"], beyond.get("next")), (&0.into(), None));
    }

    #[test]
    fn large_rows_are_left_out_unless_asked_for() {
        let long = "x".repeat(1_000);
        let cut = table(100, Page::new(None, None), &long);
        assert!(cut["rows"].to_string().len() < ANSWER_BUDGET);
        assert_eq!(cut["next"], cut["shown"]);
        let whole = table(100, Page::new(Some(100), None), &long);
        assert_eq!(whole["shown"], 100);
    }
}
