//! A new token's secret goes into a file of its own, for the owner alone, and
//! nowhere else.

use std::path::{Path, PathBuf};

use crate::{Code, Error, Result, safety::files};

/// A file that waits for a secret. It is made before the token is, so that no
/// token is made whose secret has nowhere to go.
#[derive(Debug)]
pub struct Waiting {
    path: PathBuf,
}

impl Waiting {
    /// Makes an empty file in the configuration directory.
    ///
    /// # Errors
    /// `config` where it cannot be written.
    pub fn new(dir: &Path, token: &str) -> Result<Self> {
        let unusable = |e: &std::io::Error| {
            Error::new(Code::Config, format!("{} cannot be written: {e}", dir.display()))
                .hint("a new token's secret goes there; nothing was sent")
        };
        files::private_dir(dir).map_err(|e| unusable(&e))?;
        let base: String = token
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' })
            .collect();
        for n in 0..1_000 {
            let name =
                if n == 0 { format!("token-{base}.env") } else { format!("token-{base}.{n}.env") };
            let path = dir.join(name);
            if files::create_new(&path, b"").map_err(|e| unusable(&e))? {
                return Ok(Self { path });
            }
        }
        Err(Error::new(Code::Config, format!("{} holds too many files for {token}", dir.display())))
    }

    /// Fills the file, and tells where it is.
    ///
    /// # Errors
    /// `internal`: the token is made, and its secret is lost.
    pub fn fill(self, token: &str, secret: &str) -> Result<PathBuf> {
        let text = format!("PROXMOX_TOKEN_ID={token}\nPROXMOX_TOKEN_SECRET={secret}\n");
        files::replace(&self.path, text.as_bytes()).map_err(|e| {
            Error::internal(format!(
                "the token {token} is made, but {} cannot be written: {e}",
                self.path.display()
            ))
            .hint("its secret is lost: pve_token_set with `regenerate` gives a new one")
        })?;
        Ok(self.path)
    }

    /// Takes the empty file away again.
    pub fn drop_it(self) {
        // Left behind it is empty, which harms nobody.
        let _ = std::fs::remove_file(self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_for_its_owner_alone_and_replaces_none() {
        let dir = tempfile::tempdir().unwrap();
        let first =
            Waiting::new(dir.path(), "anna@pve!ci").unwrap().fill("anna@pve!ci", "one").unwrap();
        let second =
            Waiting::new(dir.path(), "anna@pve!ci").unwrap().fill("anna@pve!ci", "two").unwrap();
        assert_ne!(first, second);
        assert!(std::fs::read_to_string(&first).unwrap().contains("PROXMOX_TOKEN_SECRET=one\n"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let waiting = Waiting::new(dir.path(), "../../x").unwrap();
        assert_eq!(waiting.path.parent(), Some(dir.path()));
        waiting.drop_it();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
