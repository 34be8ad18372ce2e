//! Uploading a file of the upload directory.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    download::{Algorithm, FileKind, checksum, file_name, on_storage},
    place,
};
use crate::{
    Code, Error, Result,
    pve::{NodeName, Params, Upload},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        change::{AskedTask, Submitted},
        outcome::{operation, told},
    },
};

/// Arguments of `pve_upload`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// Its name in PROXMOX_UPLOAD_DIR.
    file: String,
    storage: String,
    content: FileKind,
    /// Its name there.
    filename: Option<String>,
    node: Option<NodeName>,
    /// SHA-256.
    checksum: Option<String>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_upload`
pub async fn upload(ctx: Ctx<'_>, args: Args) -> Result<Answer> {
    let Some(folder) = &ctx.app.config.upload_dir else {
        return Err(Error::new(Code::UploadRefused, "PROXMOX_UPLOAD_DIR is not set")
            .hint("its owner names a directory there: only files in it can be uploaded"));
    };
    let wanted =
        checksum(args.checksum.as_deref(), args.checksum.is_some().then_some(Algorithm::Sha256))?;
    let last = args.file.rsplit('/').next().unwrap_or_default();
    let name = args.filename.as_deref().unwrap_or(last).to_owned();
    let file = Arc::new(Upload::open(folder, &args.file).await?);
    file_name(&name, args.content)?;
    if let Some((wanted, _)) = wanted
        && wanted != file.sha256()
    {
        return Err(Error::new(
            Code::UploadRefused,
            format!("{:?} has another checksum than `checksum` says", args.file),
        )
        .with("sha256", file.sha256()));
    }
    let node = place::node_of(ctx, &args.storage, args.node.as_ref()).await?;
    place::holding(ctx, &node, &args.storage, args.content.as_str()).await?;
    let params = Params::new()
        .with("content", args.content.as_str())
        .with("filename", &name)
        .with("checksum-algorithm", "sha256")
        .with("checksum", file.sha256());
    let path = ["nodes", &node, "storage", &args.storage, "upload"];
    let call = operation(Method::Post, &path, params)?;
    let before = on_storage(ctx, &node, &args.storage, &name).await;
    let (bytes, sha256) = (file.length(), file.sha256().to_owned());
    let done = match ctx.submit_file(call, &args.asked.asked(), file).await? {
        Submitted::Sent(sent) => {
            Submitted::Sent(Box::new(ctx.finish(*sent, args.asked.patience()).await?))
        }
        dry => dry,
    };
    let after = async {
        ctx.app.pve.forget();
        on_storage(ctx, &node, &args.storage, &name).await
    };
    let heading = format!("upload of {name} to {} on {node}", args.storage);
    let answer = told(done, before, after, heading).await;
    Ok(answer.with("bytes", bytes).with("sha256", sha256))
}
