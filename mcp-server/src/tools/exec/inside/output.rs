//! Bytes that came out of a guest, as an answer shows them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use crate::{render::clean, safety::redact::Redactor};

/// What came out of one stream, kept up to a limit and counted to its end.
#[derive(Debug, Default)]
pub(in crate::tools::exec) struct Stream {
    /// What was kept.
    pub bytes: Vec<u8>,
    /// All that came.
    pub total: u64,
    /// Some of it was not kept.
    pub cut: bool,
}

impl Stream {
    /// Takes more, and keeps at most `limit` bytes in all.
    pub fn take(&mut self, more: &[u8], limit: u64) {
        self.total += more.len() as u64;
        let room = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(more.get(..room.min(more.len())).unwrap_or_default());
        self.cut = self.total > self.bytes.len() as u64;
    }

    /// The text that was kept; a character that the limit has cut is left out.
    fn text(&self) -> Option<&str> {
        match std::str::from_utf8(&self.bytes) {
            Ok(text) => Some(text),
            Err(error) if self.cut && error.error_len().is_none() => {
                std::str::from_utf8(self.bytes.get(..error.valid_up_to())?).ok()
            }
            Err(_) => None,
        }
    }

    /// Puts it into an answer: `NAME`, or `NAME_base64` where it is not UTF-8, and `NAME_bytes`.
    pub fn put(&self, name: &str, out: &mut Map<String, Value>, redactor: &Redactor) {
        match self.text() {
            // As Windows ends its lines; a carriage return elsewhere stays to be seen.
            Some(text) => out.insert(name.to_owned(), text.replace("\r\n", "\n").into()),
            None => match redactor.bytes(&self.bytes) {
                Some(text) => out.insert(name.to_owned(), text.into()),
                None => out.insert(format!("{name}_base64"), STANDARD.encode(&self.bytes).into()),
            },
        };
        out.insert(format!("{name}_bytes"), self.total.into());
    }
}

/// Bytes that must arrive exactly: as text where nothing in it would be
/// shown in another way, else in base64. What holds secrets is masked, and says so.
pub(in crate::tools::exec) fn exact(
    bytes: &[u8],
    out: &mut Map<String, Value>,
    redactor: &Redactor,
) {
    if let Some(text) = redactor.bytes(bytes) {
        out.insert("content".to_owned(), text.into());
        out.insert("masked".to_owned(), true.into());
        return;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if clean(text) == text => out.insert("content".to_owned(), text.into()),
        _ => out.insert("content_base64".to_owned(), STANDARD.encode(bytes).into()),
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(bytes: &[u8], limit: u64) -> Value {
        let mut stream = Stream::default();
        for piece in bytes.chunks(3) {
            stream.take(piece, limit);
        }
        let mut out = Map::new();
        stream.put("stdout", &mut out, &Redactor::default());
        out.insert("cut".to_owned(), stream.cut.into());
        Value::Object(out)
    }

    #[test]
    fn text_stays_text_and_bytes_become_base64() {
        for (bytes, limit, wanted) in [
            (&b""[..], 9, json!({"stdout": "", "stdout_bytes": 0, "cut": false})),
            ("ü✓\n".as_bytes(), 9, json!({"stdout": "ü✓\n", "stdout_bytes": 6, "cut": false})),
            (b"a\r\nb\rc\r\n", 9, json!({"stdout": "a\nb\rc\n", "stdout_bytes": 8, "cut": false})),
            // A limit within a character takes the whole of it away, and makes no binary of it.
            ("ü✓\n".as_bytes(), 4, json!({"stdout": "ü", "stdout_bytes": 6, "cut": true})),
            (b"a\0b", 9, json!({"stdout": "a\0b", "stdout_bytes": 3, "cut": false})),
            (b"\xff\xfe", 9, json!({"stdout_base64": "//4=", "stdout_bytes": 2, "cut": false})),
            (b"\xff\xfeab", 2, json!({"stdout_base64": "//4=", "stdout_bytes": 4, "cut": true})),
            (b"abcdef", 0, json!({"stdout": "", "stdout_bytes": 6, "cut": true})),
        ] {
            assert_eq!(shown(bytes, limit), wanted, "{bytes:?} {limit}");
        }
    }

    #[test]
    fn content_is_text_only_where_every_byte_of_it_is_shown() {
        for (bytes, wanted) in [
            (&b"a=1\n"[..], json!({"content": "a=1\n"})),
            ("größe ✓\t\n".as_bytes(), json!({"content": "größe ✓\t\n"})),
            (b"a\r\n", json!({"content_base64": "YQ0K"})),
            (b"a\0", json!({"content_base64": "YQA="})),
            ("\u{feff}a".as_bytes(), json!({"content_base64": "77u/YQ=="})),
            (b"\xff", json!({"content_base64": "/w=="})),
            (b"x\npassword=hunter22x\n", json!({"content": "x\npassword=***\n", "masked": true})),
        ] {
            let mut out = Map::new();
            exact(bytes, &mut out, &Redactor::default());
            assert_eq!(Value::Object(out), wanted, "{bytes:?}");
        }
    }
}
