//! Uploads: `multipart/form-data` with one file, as the storage upload takes it.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The file of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Upload {
    /// Bytes.
    pub(crate) size: u64,
    /// Its SHA-256 in hex.
    pub(crate) sha256: String,
}

/// Fields and file of a body; `None` when it is not well formed or has no file.
/// The file's name becomes the field `filename`.
pub(crate) fn parse(content_type: &str, body: &[u8]) -> Option<(Map<String, Value>, Upload)> {
    let boundary = content_type.split(';').find_map(|p| p.trim().strip_prefix("boundary="))?;
    let mark = format!("--{}", boundary.trim_matches('"')).into_bytes();
    let mut fields = Map::new();
    let mut upload = None;
    let mut rest = body.get(find(body, &mark)? + mark.len()..)?;
    while let Some(part) = rest.strip_prefix(b"\r\n") {
        let end = find(part, &[b"\r\n", mark.as_slice()].concat())?;
        let (head, content) = split(part.get(..end)?)?;
        let head = String::from_utf8_lossy(head).into_owned();
        let name = attribute(&head, "name")?;
        match attribute(&head, "filename") {
            Some(file) => {
                fields.insert("filename".to_owned(), Value::String(file));
                let sha256 = Sha256::digest(content).iter().map(|b| format!("{b:02x}")).collect();
                upload = Some(Upload { size: u64::try_from(content.len()).ok()?, sha256 });
            }
            None => {
                let text = String::from_utf8_lossy(content).into_owned();
                fields.insert(name, Value::String(text));
            }
        }
        rest = part.get(end + 2 + mark.len()..)?;
    }
    Some((fields, upload?))
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}

/// Head and content of a part.
fn split(part: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = find(part, b"\r\n\r\n")?;
    Some((part.get(..at)?, part.get(at + 4..)?))
}

/// `name="…"` of a part's head.
fn attribute(head: &str, name: &str) -> Option<String> {
    let start = format!("; {name}=\"");
    let rest = head.get(head.find(&start)? + start.len()..)?;
    Some(rest.split('"').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_fields() {
        let body = b"--b\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\niso\r\n--b\r\nContent-Disposition: \
            form-data; name=\"filename\"; filename=\"x.iso\"\r\nContent-Type: application/octet-stream\r\n\r\nabc\r\n--b--\r\n";
        let (fields, upload) = parse("multipart/form-data; boundary=b", body).unwrap();
        assert_eq!(fields["content"], "iso");
        assert_eq!(fields["filename"], "x.iso");
        assert_eq!(upload.size, 3);
        assert!(upload.sha256.starts_with("ba7816bf"));
        assert_eq!(parse("multipart/form-data; boundary=b", b"--b\r\n"), None);
    }
}
