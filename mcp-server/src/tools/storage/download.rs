//! What a node downloads onto a storage.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::place::{self, summary};
use crate::{
    Code, Error, Result,
    pve::{NodeName, Params, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        change::AskedTask,
        outcome::{operation, switch, told},
        validate::nearest,
    },
};

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    Iso,
    Vztmpl,
    Import,
}

impl FileKind {
    /// As Proxmox names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Iso => "iso",
            Self::Vztmpl => "vztmpl",
            Self::Import => "import",
        }
    }

    /// Endings of files that a storage takes as this.
    pub const fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Iso => &[".iso", ".img"],
            Self::Vztmpl => &[".tar.gz", ".tar.xz", ".tar.zst", ".tar"],
            Self::Import => &[".ova", ".ovf", ".qcow2", ".raw", ".vmdk"],
        }
    }
}

/// Longest file name, in bytes.
const LONGEST_NAME: usize = 255;

/// A file name that Proxmox keeps as it is: it would cut folders off and put `_` for others.
///
/// # Errors
/// `invalid_argument` for anything else, and for an ending that is not of this kind.
pub fn file_name(name: &str, kind: FileKind) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    if name.is_empty()
        || name.len() > LONGEST_NAME
        || name.starts_with('.')
        || !name.chars().all(plain)
    {
        return Err(Error::argument(format!("{name:?} cannot be a file name on a storage"))
            .hint("letters, digits, `.`, `_`, `-` and `+`, without folders, not first a `.`")
            .with("argument", "filename"));
    }
    let folded = name.to_ascii_lowercase();
    if !kind.endings().iter().any(|ending| folded.ends_with(ending)) {
        return Err(Error::argument(format!("{name:?} does not end like {}", kind.as_str()))
            .hint(format!("endings: {}", kind.endings().join(", ")))
            .with("argument", "filename"));
    }
    Ok(())
}

/// How a checksum was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Algorithm {
    const ALL: [Self; 6] =
        [Self::Md5, Self::Sha1, Self::Sha224, Self::Sha256, Self::Sha384, Self::Sha512];

    const fn digits(self) -> usize {
        match self {
            Self::Md5 => 32,
            Self::Sha1 => 40,
            Self::Sha224 => 56,
            Self::Sha256 => 64,
            Self::Sha384 => 96,
            Self::Sha512 => 128,
        }
    }

    /// As Proxmox names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha224 => "sha224",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }
}

/// A checksum with its algorithm, which its length tells where it is not said.
///
/// # Errors
/// `invalid_argument` for what is no checksum of that kind.
pub fn checksum(
    text: Option<&str>,
    algorithm: Option<Algorithm>,
) -> Result<Option<(String, Algorithm)>> {
    let Some(text) = text else {
        return match algorithm {
            None => Ok(None),
            Some(_) => Err(Error::argument("`checksum_algorithm` needs `checksum`")),
        };
    };
    let text = text.trim().to_ascii_lowercase();
    let hex = text.bytes().all(|b| b.is_ascii_hexdigit());
    let algorithm =
        algorithm.or_else(|| Algorithm::ALL.into_iter().find(|a| a.digits() == text.len()));
    match algorithm {
        Some(algorithm) if hex && algorithm.digits() == text.len() => Ok(Some((text, algorithm))),
        _ => Err(Error::argument("`checksum` is no checksum of a known kind")
            .hint("hexadecimal: 64 digits for sha256, 128 for sha512")
            .with("argument", "checksum")),
    }
}

/// Arguments of `pve_download_url`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Url {
    url: String,
    storage: String,
    content: FileKind,
    filename: Option<String>,
    node: Option<NodeName>,
    checksum: Option<String>,
    checksum_algorithm: Option<Algorithm>,
    verify_certificates: Option<bool>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// The last part of a URL's path.
fn name_in(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let path = rest.split(['?', '#']).next()?;
    let (_, name) =
        path.split_once('/')?.1.rsplit_once('/').unwrap_or(("", path.split_once('/')?.1));
    (!name.is_empty()).then_some(name)
}

/// `pve_download_url`
pub async fn url(ctx: Ctx<'_>, args: Url) -> Result<Answer> {
    let scheme = args.url.split_once("://").map(|(s, _)| s.to_ascii_lowercase());
    if !matches!(scheme.as_deref(), Some("http" | "https")) {
        return Err(Error::argument("`url` is neither http nor https").with("argument", "url"));
    }
    let name = match args.filename.as_deref().or_else(|| name_in(&args.url)) {
        Some(name) => name.to_owned(),
        None => {
            return Err(Error::argument("the URL names no file: give `filename`")
                .with("argument", "filename"));
        }
    };
    file_name(&name, args.content)?;
    let sum = checksum(args.checksum.as_deref(), args.checksum_algorithm)?;
    let node = place::node_of(ctx, &args.storage, args.node.as_ref()).await?;
    place::holding(ctx, &node, &args.storage, args.content.as_str()).await?;
    let params = Params::new()
        .with("url", &args.url)
        .with("content", args.content.as_str())
        .with("filename", &name)
        .with_some("checksum", sum.as_ref().map(|(text, _)| text))
        .with_some("checksum-algorithm", sum.as_ref().map(|(_, a)| a.as_str()));
    let params = switch(params, "verify-certificates", args.verify_certificates);
    let path = ["nodes", &node, "storage", &args.storage, "download-url"];
    let before = on_storage(ctx, &node, &args.storage, &name).await;
    let done = ctx.run(operation(Method::Post, &path, params)?, &args.asked).await?;
    let after = async {
        ctx.app.pve.forget();
        on_storage(ctx, &node, &args.storage, &name).await
    };
    let heading = format!("download of {name} to {} on {node}", args.storage);
    let answer = told(done, before, after, heading).await;
    Ok(if sum.is_none() { answer.with("unchecked", true) } else { answer })
}

/// The file of that name on a storage, or that there is none.
pub async fn on_storage(ctx: Ctx<'_>, node: &str, storage: &str, name: &str) -> Value {
    match ctx.get(&["nodes", node, "storage", storage, "content"]).await {
        Ok(rows) => loose::rows(&rows)
            .iter()
            .find(|r| loose::str(r, "volid").and_then(|v| v.rsplit('/').next()) == Some(name))
            .map_or(json!({"exists": false}), summary),
        Err(_) => Value::Null,
    }
}

/// Arguments of `pve_appliance_download`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Appliance {
    /// As debian-13-standard.
    template: String,
    storage: String,
    node: Option<NodeName>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// The template meant: by its whole name, or by a beginning that only one has.
fn template(list: &Value, wanted: &str) -> Result<String> {
    let names: Vec<String> =
        loose::rows(list).iter().filter_map(|r| loose::text(r, "template")).collect();
    if names.iter().any(|n| n == wanted) {
        return Ok(wanted.to_owned());
    }
    let begin: Vec<&String> = names.iter().filter(|n| n.starts_with(wanted)).collect();
    let some = |names: &[&String]| {
        let shown: Vec<&str> = names.iter().take(8).map(|n| n.as_str()).collect();
        shown.join(", ")
    };
    match begin.as_slice() {
        [only] if !wanted.is_empty() => Ok((*only).clone()),
        [] => {
            let error = Error::new(Code::NotFound, format!("there is no template {wanted:?}"));
            Err(match nearest(wanted, names.iter().map(String::as_str)) {
                Some(near) => error.hint(format!("did you mean {near}?")),
                None if names.is_empty() => error.hint(
                    "the node's list of templates is empty; pve_api_call GET /nodes/{node}/aplinfo shows it",
                ),
                None => error.hint(format!("there are: {}", some(&names.iter().collect::<Vec<_>>()))),
            })
        }
        several => Err(Error::argument(format!("several templates begin with {wanted:?}"))
            .hint(some(several))
            .with("argument", "template")),
    }
}

/// `pve_appliance_download`
pub async fn appliance(ctx: Ctx<'_>, args: Appliance) -> Result<Answer> {
    let node = place::node_of(ctx, &args.storage, args.node.as_ref()).await?;
    place::holding(ctx, &node, &args.storage, "vztmpl").await?;
    let list = ctx.get(&["nodes", &node, "aplinfo"]).await?;
    let name = template(&list, &args.template)?;
    let before = on_storage(ctx, &node, &args.storage, &name).await;
    if before.get("volid").is_some() && args.asked.dry_run != Some(true) {
        return Ok(Answer::new(json!({
            "status": "no_change", "before": before, "note": "the template is there already",
        })));
    }
    let params = Params::new().with("storage", &args.storage).with("template", &name);
    let call = operation(Method::Post, &["nodes", &node, "aplinfo"], params)?;
    let done = ctx.run(call, &args.asked).await?;
    let after = async {
        ctx.app.pve.forget();
        on_storage(ctx, &node, &args.storage, &name).await
    };
    let heading = format!("download of {name} to {} on {node}", args.storage);
    Ok(told(done, before, after, heading).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files() {
        for (name, kind, good) in [
            ("debian-13.1.0-amd64-netinst.iso", FileKind::Iso, true),
            ("disk.IMG", FileKind::Iso, true),
            ("x+y_1.tar.zst", FileKind::Vztmpl, true),
            ("noble.qcow2", FileKind::Import, true),
            ("noble.qcow2", FileKind::Iso, false),
            ("../x.iso", FileKind::Iso, false),
            ("a/b.iso", FileKind::Iso, false),
            ("a b.iso", FileKind::Iso, false),
            (".iso", FileKind::Iso, false),
            ("x.iso\n", FileKind::Iso, false),
            ("x.iso%00", FileKind::Iso, false),
            ("", FileKind::Iso, false),
        ] {
            assert_eq!(file_name(name, kind).is_ok(), good, "{name:?}");
        }
        for (url, want) in [
            ("https://x.example/a/b.iso", Some("b.iso")),
            ("https://x.example/b.iso?x=/c", Some("b.iso")),
            ("https://x.example/b.iso#f", Some("b.iso")),
            ("https://x.example/a/", None),
            ("https://x.example", None),
        ] {
            assert_eq!(name_in(url), want, "{url}");
        }
    }

    #[test]
    fn checksums_tell_their_kind() {
        let sha256 = "A".repeat(64);
        let got = checksum(Some(&sha256), None).unwrap().unwrap();
        assert_eq!((got.0, got.1), ("a".repeat(64), Algorithm::Sha256));
        assert_eq!(checksum(Some(&"b".repeat(128)), None).unwrap().unwrap().1, Algorithm::Sha512);
        assert!(checksum(Some(&sha256), Some(Algorithm::Sha512)).is_err());
        assert!(checksum(Some("xyz"), None).is_err());
        assert!(checksum(None, Some(Algorithm::Md5)).is_err());
        assert_eq!(checksum(None, None).unwrap(), None);
    }

    #[test]
    fn a_template_by_its_beginning() {
        let list = json!([
            {"template": "debian-12-standard_12.7-1_amd64.tar.zst"},
            {"template": "debian-13-standard_13.1-1_amd64.tar.zst"},
        ]);
        let whole = "debian-13-standard_13.1-1_amd64.tar.zst";
        assert_eq!(template(&list, whole).unwrap(), whole);
        assert_eq!(template(&list, "debian-13").unwrap(), whole);
        assert_eq!(template(&list, "debian-").unwrap_err().code, Code::InvalidArgument);
        assert_eq!(template(&list, "").unwrap_err().code, Code::InvalidArgument);
        assert_eq!(template(&list, "fedora").unwrap_err().code, Code::NotFound);
    }
}
