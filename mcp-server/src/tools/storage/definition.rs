//! Storage definitions, which hold for the whole cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    Code, Error, Result,
    pve::{ApiPath, NodeName, Params, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        change::Asked,
        outcome::{Did, list, operation, switch, told},
    },
};

/// What kind of storage.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Plugin {
    Btrfs,
    Cephfs,
    Cifs,
    Dir,
    Esxi,
    Iscsi,
    Iscsidirect,
    Lvm,
    Lvmthin,
    Nfs,
    Pbs,
    Rbd,
    Zfs,
    Zfspool,
}

/// What a storage may hold.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    Images,
    Rootdir,
    Vztmpl,
    Iso,
    Backup,
    Snippets,
    Import,
    None,
}

/// Arguments of `pve_storage_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Set {
    storage: String,
    /// For a new one.
    r#type: Option<Plugin>,
    content: Option<Vec<Content>>,
    nodes: Option<Vec<NodeName>>,
    disable: Option<bool>,
    shared: Option<bool>,
    /// As keep-last=3,keep-daily=7.
    prune_backups: Option<String>,
    /// As {"server": "10.0.0.5", "export": "/tank"}.
    options: Option<Map<String, Value>>,
    delete: Option<Vec<String>>,
    digest: Option<String>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

/// Options that Proxmox takes only when a storage is made.
const FIXED: [&str; 14] = [
    "path",
    "server",
    "export",
    "share",
    "vgname",
    "thinpool",
    "datastore",
    "portal",
    "target",
    "base",
    "type",
    "iscsiprovider",
    "authsupported",
    "pool",
];

impl Set {
    fn params(&self) -> Result<Params> {
        let options = Value::Object(self.options.clone().unwrap_or_default());
        let mut params = Params::from_json(&options)?;
        for name in ["storage", "type", "content", "nodes", "disable", "shared", "delete", "digest"]
        {
            if params.has(name) {
                return Err(Error::argument(format!("`{name}` is an argument of its own"))
                    .with("argument", "options"));
            }
        }
        let content = self.content.as_ref().map(|all| {
            let word = |c: &Content| {
                serde_json::to_value(c).ok().and_then(|v| v.as_str().map(str::to_owned))
            };
            all.iter().filter_map(word).collect::<Vec<_>>()
        });
        params = list(params, "content", content.as_ref());
        params = list(params, "nodes", self.nodes.as_ref());
        params = switch(params, "disable", self.disable);
        params = switch(params, "shared", self.shared);
        Ok(params.with_some("prune-backups", self.prune_backups.as_deref()))
    }
}

/// A definition, or nothing where there is none.
async fn definition(ctx: Ctx<'_>, storage: &str) -> Result<Option<Value>> {
    let path = ApiPath::of(&["storage"])?;
    let rows = ctx.app.pve.get_fresh(&path, &Params::new()).await?;
    let found = loose::rows(&rows).iter().find(|r| loose::str(r, "storage") == Some(storage));
    let Some(found) = found else { return Ok(None) };
    // The single one has the digest, which the list may lack.
    match ctx.get(&["storage", storage]).await {
        Ok(one) => Ok(Some((*one).clone())),
        Err(_) => Ok(Some(found.clone())),
    }
}

/// `pve_storage_set`
pub async fn set(ctx: Ctx<'_>, args: Set) -> Result<Answer> {
    // A name that cannot stand in a path is none.
    ApiPath::of(&["storage", &args.storage])?;
    let what = format!("storage {:?}", args.storage);
    let before = definition(ctx, &args.storage).await?;
    let did = Did::of(before.is_some(), args.must_exist, args.must_not_exist, &what)?;
    let mut params = args.params()?;
    let plugin = args
        .r#type
        .and_then(|t| serde_json::to_value(t).ok().and_then(|v| v.as_str().map(str::to_owned)));
    let mut path = vec!["storage"];
    match &before {
        None => {
            let Some(plugin) = plugin else {
                return Err(Error::argument(format!(
                    "{what} does not exist: a new one needs `type`"
                ))
                .with("argument", "type"));
            };
            if args.delete.is_some() || args.digest.is_some() {
                return Err(Error::argument(
                    "`delete` and `digest` go with a storage that is there",
                ));
            }
            params = params.with("storage", &args.storage).with("type", plugin);
        }
        Some(now) => {
            if let Some(plugin) = plugin
                && loose::text(now, "type").is_some_and(|t| t != plugin)
            {
                return Err(Error::new(
                    Code::Conflict,
                    format!(
                        "{what} is {}, not {plugin}",
                        loose::text(now, "type").unwrap_or_default()
                    ),
                )
                .hint("the type of a storage cannot be changed"));
            }
            for name in FIXED {
                // The same value again changes nothing, and Proxmox would refuse it.
                match (params.text(name), loose::text(now, name)) {
                    (Some(new), Some(old)) if new == old => {
                        params.remove(name);
                    }
                    (Some(_), old) => {
                        return Err(Error::new(
                            Code::Conflict,
                            format!("`{name}` of a storage that is there cannot be changed"),
                        )
                        .hint(format!("it is {:?}", old.unwrap_or_default())));
                    }
                    (None, _) => {}
                }
            }
            params = list(params, "delete", args.delete.as_ref());
            if params.is_empty() {
                return Ok(Answer::new(json!({"status": "no_change", "before": now})));
            }
            let current = loose::text(now, "digest");
            if let (Some(given), Some(current)) = (&args.digest, &current)
                && given != current
            {
                return Err(Error::new(
                    Code::DigestChanged,
                    "the storage definitions have changed since they were read",
                )
                .with("digest", current.clone()));
            }
            params = params.with_some("digest", args.digest.clone().or(current));
            path.push(&args.storage);
        }
    }
    let done = ctx.submit(operation(did.method(), &path, params)?, &args.asked).await?;
    let after = async {
        ctx.app.pve.forget();
        definition(ctx, &args.storage).await.ok().flatten().unwrap_or(Value::Null)
    };
    let answer = told(done, before.into(), after, format!("{what} {}", did.as_str())).await;
    Ok(did.tell(answer))
}

/// Arguments of `pve_storage_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Delete {
    storage: String,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_storage_delete`
pub async fn delete(ctx: Ctx<'_>, args: Delete) -> Result<Answer> {
    let call = operation(Method::Delete, &["storage", &args.storage], Params::new())?;
    let Some(before) = definition(ctx, &args.storage).await? else {
        return Err(Error::new(Code::NotFound, format!("there is no storage {:?}", args.storage))
            .hint("pve_list_storage lists them"));
    };
    let done = ctx.submit(call, &args.asked).await?;
    let after = async {
        ctx.app.pve.forget();
        match definition(ctx, &args.storage).await {
            Ok(left) => json!({"exists": left.is_some()}),
            Err(_) => Value::Null,
        }
    };
    Ok(told(done, before, after, format!("storage {} deleted", args.storage)).await)
}
