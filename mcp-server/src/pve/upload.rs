//! A file on its way to a storage: streamed, with its exact length and checksum.
//!
//! pveproxy takes uploads as `multipart/form-data` with a length: a body
//! without one, or one sent in chunks, is refused.

use std::{
    io,
    path::{Component, Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::Params;
use crate::{Code, Error, Result};

/// Bytes read at once.
const CHUNK: usize = 256 << 10;
/// Slowest way to a node that is waited for, in bytes a second.
const SLOWEST: u64 = 256 << 10;

/// A file of the upload directory, opened and read once for its checksum.
#[derive(Debug)]
pub struct Upload {
    file: std::fs::File,
    length: u64,
    sha256: String,
    boundary: String,
    sent: Arc<AtomicU64>,
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(Code::UploadRefused, message)
}

/// The file below a directory, when no part of the way is a link or leads out.
///
/// # Errors
/// `upload_refused`.
fn beneath(folder: &Path, name: &str) -> Result<PathBuf> {
    let plain = !name.is_empty()
        && !name.contains(['\0', '\\'])
        && Path::new(name).components().all(|c| matches!(c, Component::Normal(_)))
        && !name.split('/').any(|part| part.is_empty() || part == "." || part == "..");
    if !plain {
        return Err(refused(format!("{name:?} is no file below PROXMOX_UPLOAD_DIR"))
            .hint("a name relative to that directory, without `..`"));
    }
    let root = folder.canonicalize().map_err(|e| {
        refused(format!("PROXMOX_UPLOAD_DIR cannot be opened: {e}"))
            .hint("make the directory, or set the variable to one that is there")
    })?;
    let path = root.join(name);
    let real = path.canonicalize().map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => {
            refused(format!("there is no file {name:?} in PROXMOX_UPLOAD_DIR"))
        }
        _ => refused(format!("{name:?} cannot be opened: {e}")),
    })?;
    if real != path {
        return Err(refused(format!("{name:?} is a link, or lies behind one"))
            .hint("put the file itself into PROXMOX_UPLOAD_DIR"));
    }
    Ok(path)
}

/// Whether an opened file is the one that stands at a path now.
fn is_same(file: &std::fs::Metadata, path: &Path) -> bool {
    let Ok(there) = std::fs::symlink_metadata(path) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        file.dev() == there.dev() && file.ino() == there.ino()
    }
    #[cfg(not(unix))]
    {
        there.is_file() && file.len() == there.len()
    }
}

impl Upload {
    /// Opens a file of the upload directory and reads it once.
    ///
    /// # Errors
    /// `upload_refused` for what is outside the directory, a link, no plain
    /// file, empty, or cannot be read.
    pub async fn open(folder: &Path, name: &str) -> Result<Self> {
        let (folder, name) = (folder.to_owned(), name.to_owned());
        let reading = tokio::task::spawn_blocking(move || Self::read(&folder, &name));
        reading.await.map_err(|e| Error::internal(format!("reading the file broke off: {e}")))?
    }

    fn read(folder: &Path, name: &str) -> Result<Self> {
        let path = beneath(folder, name)?;
        let cannot = |e: io::Error| refused(format!("{name:?} cannot be read: {e}"));
        // A pipe would wait for a writer when it is opened.
        if !std::fs::symlink_metadata(&path).map_err(cannot)?.is_file() {
            return Err(refused(format!("{name:?} is no plain file")));
        }
        let mut file = std::fs::File::open(&path).map_err(cannot)?;
        let found = file.metadata().map_err(cannot)?;
        if !found.is_file() || !is_same(&found, &path) || beneath(folder, name)? != path {
            return Err(refused(format!("{name:?} was replaced while it was opened")));
        }
        if found.len() == 0 {
            return Err(refused(format!("{name:?} is empty")));
        }
        let mut hash = Sha256::new();
        let mut buffer = vec![0_u8; CHUNK];
        let mut length = 0_u64;
        loop {
            let read = io::Read::read(&mut file, &mut buffer).map_err(cannot)?;
            let Some(part) = buffer.get(..read).filter(|p| !p.is_empty()) else { break };
            hash.update(part);
            length = length.saturating_add(u64::try_from(read).unwrap_or(0));
        }
        let sha256 = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        let random =
            getrandom::u64().map_err(|e| Error::internal(format!("no randomness: {e}")))?;
        Ok(Self {
            file,
            length,
            sha256,
            boundary: format!("proxmox-mcp-{random:016x}"),
            sent: Arc::default(),
        })
    }

    /// Bytes of the file.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// SHA-256 of the file, in hexadecimal.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Bytes of the file that went out so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// The form around the file, made of the parameters that were judged; the
    /// file comes last, since pveproxy writes it as it arrives.
    ///
    /// # Errors
    /// `invalid_argument` for a value that would end its part.
    fn form(&self, params: &Params) -> Result<Form> {
        let mut head = String::new();
        let mut name = None;
        for (field, value) in params.iter() {
            let [text] = value.values() else {
                return Err(Error::argument(format!("`{field}` takes one value")));
            };
            if text.contains('"') || text.chars().any(char::is_control) {
                return Err(Error::argument(format!("`{field}` cannot be {text:?}")));
            }
            if field == "filename" {
                name = Some(text);
                continue;
            }
            head.push_str(&format!(
                "--{}\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{text}\r\n",
                self.boundary
            ));
        }
        let name = name.ok_or_else(|| Error::argument("an upload needs `filename`"))?;
        head.push_str(&format!(
            "--{}\r\nContent-Disposition: form-data; name=\"filename\"; filename=\"{name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n",
            self.boundary
        ));
        Ok(Form {
            head: head.into_bytes(),
            tail: format!("\r\n--{}--\r\n", self.boundary).into_bytes(),
        })
    }

    /// `multipart/form-data` with its boundary.
    fn content_type(&self) -> String {
        format!("multipart/form-data; boundary={}", self.boundary)
    }

    /// The whole body as a stream, from its beginning.
    ///
    /// # Errors
    /// `upload_refused` when the file cannot be read again.
    async fn body(&self, form: &Form) -> Result<reqwest::Body> {
        let again = self.file.try_clone().map_err(|e| refused(format!("the file is gone: {e}")))?;
        let mut file = tokio::fs::File::from_std(again);
        file.rewind().await.map_err(|e| refused(format!("the file cannot be read again: {e}")))?;
        self.sent.store(0, Ordering::Relaxed);
        let state = Sending {
            file,
            left: self.length,
            sent: Arc::clone(&self.sent),
            head: Some(form.head.clone()),
            tail: Some(form.tail.clone()),
        };
        Ok(reqwest::Body::wrap_stream(futures::stream::try_unfold(state, Sending::next)))
    }
}

/// A file with the form around it, ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Attached {
    upload: Arc<Upload>,
    form: Form,
}

impl Attached {
    /// Puts the form of the judged parameters around a file.
    ///
    /// # Errors
    /// `invalid_argument` for a value that would end its part.
    pub fn new(upload: Arc<Upload>, params: &Params) -> Result<Self> {
        let form = upload.form(params)?;
        Ok(Self { upload, form })
    }

    /// How long the file itself may take.
    pub fn time(&self) -> Duration {
        Duration::from_secs(self.upload.length / SLOWEST)
    }

    /// Puts head, length and stream into a request.
    ///
    /// # Errors
    /// `upload_refused` when the file cannot be read again.
    pub async fn put_into(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<reqwest::RequestBuilder> {
        let body = self.upload.body(&self.form).await?;
        Ok(request
            .header(CONTENT_TYPE, self.upload.content_type())
            .header(CONTENT_LENGTH, self.form.length(self.upload.length))
            .body(body))
    }
}

/// What stands around the file.
#[derive(Debug, Clone)]
struct Form {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Form {
    /// Bytes of the body with a file of this length.
    fn length(&self, file: u64) -> u64 {
        let around = self.head.len().saturating_add(self.tail.len());
        file.saturating_add(u64::try_from(around).unwrap_or(u64::MAX))
    }
}

/// A body on its way.
struct Sending {
    file: tokio::fs::File,
    left: u64,
    sent: Arc<AtomicU64>,
    head: Option<Vec<u8>>,
    tail: Option<Vec<u8>>,
}

impl Sending {
    /// The next piece: the head, the file in chunks, the end.
    async fn next(mut self) -> io::Result<Option<(Vec<u8>, Self)>> {
        if let Some(head) = self.head.take() {
            return Ok(Some((head, self)));
        }
        if self.left == 0 {
            return Ok(self.tail.take().map(|tail| (tail, self)));
        }
        let wanted = usize::try_from(self.left).unwrap_or(CHUNK).min(CHUNK);
        let mut buffer = vec![0_u8; wanted];
        let read = self.file.read(&mut buffer).await?;
        if read == 0 {
            // It was cut off meanwhile: the length that was announced cannot be kept.
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter"));
        }
        buffer.truncate(read);
        let count = u64::try_from(read).unwrap_or(0);
        self.left = self.left.saturating_sub(count);
        self.sent.fetch_add(count, Ordering::Relaxed);
        Ok(Some((buffer, self)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(folder: &Path, name: &str) -> Option<Code> {
        Upload::read(folder, name).err().map(|e| e.code)
    }

    #[test]
    fn nothing_outside_the_directory() {
        let world = tempfile::tempdir().unwrap();
        let folder = world.path().join("up");
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        std::fs::write(world.path().join("secret"), "x").unwrap();
        std::fs::write(folder.join("a.iso"), "abc").unwrap();
        std::fs::write(folder.join("sub/b.iso"), "abc").unwrap();
        std::fs::write(folder.join("empty.iso"), "").unwrap();
        for good in ["a.iso", "sub/b.iso"] {
            let upload = Upload::read(&folder, good).unwrap();
            assert_eq!(upload.length(), 3);
            assert_eq!(
                upload.sha256(),
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
            );
        }
        let absolute = folder.join("a.iso").to_str().unwrap().to_owned();
        let mut bad: Vec<&str> = vec![
            "",
            ".",
            "..",
            "../secret",
            "sub/../../secret",
            "./a.iso",
            "sub/./b.iso",
            "sub//b.iso",
            "sub",
            "nope.iso",
            "empty.iso",
            "a.iso/",
            "a.iso\0",
            "..\\secret",
            "/etc/passwd",
            &absolute,
        ];
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(world.path().join("secret"), folder.join("link.iso"))
                .unwrap();
            std::os::unix::fs::symlink(world.path(), folder.join("dir")).unwrap();
            std::os::unix::fs::symlink("a.iso", folder.join("inner.iso")).unwrap();
            bad.extend(["link.iso", "dir/secret", "inner.iso"]);
        }
        for name in bad {
            assert_eq!(refusal(&folder, name), Some(Code::UploadRefused), "{name:?}");
        }
        assert_eq!(refusal(&world.path().join("none"), "a.iso"), Some(Code::UploadRefused));
    }

    #[test]
    fn the_form_is_closed_around_the_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.iso"), "abc").unwrap();
        let upload = Upload::read(folder.path(), "a.iso").unwrap();
        let params = Params::new().with("content", "iso").with("filename", "a.iso");
        let form = upload.form(&params).unwrap();
        let (head, tail) = (
            String::from_utf8(form.head.clone()).unwrap(),
            String::from_utf8(form.tail.clone()).unwrap(),
        );
        let mark = format!("--{}", upload.boundary);
        assert!(head.starts_with(&format!(
            "{mark}\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\niso\r\n{mark}\r\n"
        )));
        assert!(
            head.ends_with("filename=\"a.iso\"\r\nContent-Type: application/octet-stream\r\n\r\n")
        );
        assert_eq!(tail, format!("\r\n{mark}--\r\n"));
        assert_eq!(form.length(3), u64::try_from(head.len() + tail.len() + 3).unwrap());
        for bad in ["a\"; x=\"", "a\r\nb", "a\0"] {
            assert!(upload.form(&params.clone().with("filename", bad)).is_err(), "{bad:?}");
            assert!(upload.form(&params.clone().with("content", bad)).is_err(), "{bad:?}");
        }
        assert!(upload.form(&Params::new().with("content", "iso")).is_err());
    }
}
