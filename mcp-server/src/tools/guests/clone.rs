//! A guest made from another, up to the point where it can be reached.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    cloudinit,
    disk::{Format, word},
    new_id::{NewId, with_new_id},
    steps::{After, Made, future_guest, told_ahead},
};
use crate::{
    Code, Error, Result,
    insight::estate::{Guest, GuestKind},
    pve::{NodeName, Params, Vmid, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        change::{AskedTask, Submitted, on_guest},
        core::{real_snapshots, title},
        outcome::switch,
        storage::place,
    },
};

/// Arguments of `pve_guest_clone`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Clone {
    vmid: Vmid,
    newid: Option<Vmid>,
    name: Option<String>,
    /// Copies all disks; templates are linked unless said.
    full: Option<bool>,
    storage: Option<String>,
    format: Option<Format>,
    target: Option<NodeName>,
    snapname: Option<String>,
    pool: Option<String>,
    description: Option<String>,
    #[schemars(range(min = 0))]
    bwlimit: Option<u64>,
    /// As pve_cloudinit_set takes it.
    cloudinit: Option<cloudinit::Wanted>,
    #[schemars(range(min = 1))]
    cores: Option<u32>,
    #[schemars(range(min = 16))]
    memory_mib: Option<u64>,
    start: Option<bool>,
    wait_address: Option<bool>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// A name that Proxmox takes: labels of letters, digits and inner dashes, parted by dots.
///
/// # Errors
/// `invalid_argument` for anything else.
pub fn dns_name(name: &str) -> Result<&str> {
    let label = |l: &str| {
        !l.is_empty()
            && l.len() <= 63
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !l.starts_with('-')
            && !l.ends_with('-')
    };
    if name.len() <= 253 && name.split('.').all(label) {
        return Ok(name);
    }
    Err(Error::argument(format!("{name:?} cannot be a guest's name"))
        .hint("a host name: letters, digits and inner dashes, parts joined by dots")
        .with("argument", "name"))
}

impl Clone {
    fn after(&self, source: &Guest) -> Result<After> {
        let mut options = Params::new();
        let cores = self.cores.map(|n| n.to_string());
        let memory = self.memory_mib.map(|n| n.to_string());
        for (name, value) in [("cores", cores), ("memory", memory)] {
            options = options.with_some(name, value);
        }
        let after = After {
            cloudinit: self.cloudinit.clone().unwrap_or_default(),
            options,
            start: self.start == Some(true),
            address: self.wait_address == Some(true),
        };
        after.check(source.kind, &self.asked)?;
        Ok(after)
    }

    fn params(&self, source: &Guest, newid: Vmid) -> Params {
        let name = if source.kind == GuestKind::Qemu { "name" } else { "hostname" };
        let params = Params::new()
            .with("newid", newid)
            .with_some(name, self.name.as_deref())
            .with_some("storage", self.storage.as_deref())
            .with_some("format", self.format.and_then(word))
            .with_some("target", self.target.as_ref().filter(|t| t.as_str() != &*source.node))
            .with_some("snapname", self.snapname.as_deref())
            .with_some("pool", self.pool.as_deref())
            .with_some("description", self.description.as_deref())
            .with_some("bwlimit", self.bwlimit);
        switch(params, "full", self.full)
    }

    async fn check(&self, ctx: Ctx<'_>, source: &Guest) -> Result<()> {
        if let Some(name) = &self.name {
            dns_name(name)?;
        }
        if source.kind == GuestKind::Lxc && self.format.is_some() {
            return Err(
                Error::argument("a container's clone has no `format`").with("argument", "format")
            );
        }
        let full = self.full.unwrap_or(!source.template);
        if !full && !source.template {
            return Err(Error::argument(format!(
                "guest {} is no template: only templates have linked clones",
                source.vmid
            ))
            .hint("leave `full` out, or make it true")
            .with("argument", "full"));
        }
        if !full && (self.storage.is_some() || self.format.is_some()) {
            return Err(Error::argument("a linked clone stays on the storage of its template")
                .hint("`full` true copies the disks to another storage or format")
                .with("argument", "storage"));
        }
        let node = match &self.target {
            Some(target) => ctx.node(target.as_str()).await?,
            None => source.node.to_string(),
        };
        if let Some(storage) = &self.storage {
            let content = if source.kind == GuestKind::Qemu { "images" } else { "rootdir" };
            place::holding(ctx, &node, storage, content).await?;
        }
        if let Some(wanted) = self.snapname.as_deref() {
            let rows = ctx.get_below(source, &["snapshot"], Params::new()).await?;
            let names: Vec<String> =
                real_snapshots(&rows).filter_map(|s| loose::text(s, "name")).collect();
            if !names.iter().any(|n| n == wanted) {
                return Err(Error::new(
                    Code::NotFound,
                    format!("guest {} has no snapshot {wanted:?}", source.vmid),
                )
                .hint(format!("snapshots: {}", names.join(", "))));
            }
        }
        Ok(())
    }
}

/// `pve_guest_clone`
pub async fn clone(ctx: Ctx<'_>, args: Clone) -> Result<Answer> {
    let source = ctx.guest_now(args.vmid).await?;
    let after = args.after(&source)?;
    if let Some(made) = Made::before(ctx)? {
        let heading = format!("clone of {} as guest {}", title(&source), made.vmid);
        let answer = after.go_on(ctx, made, &args.asked).await?;
        return Ok(answer.heading(heading).untrusted(&["from", "after"]));
    }
    args.check(ctx, &source).await?;
    let node = args.target.as_ref().map_or_else(|| source.node.to_string(), ToString::to_string);
    let named = args.newid.is_some();
    // The clone begins with the options of its source, under a digest of its own.
    let mut config = (*ctx.get_below(&source, &["config"], Params::new()).await?).clone();
    if let Some(options) = config.as_object_mut() {
        options.remove("digest");
    }
    let (newid, done) = with_new_id(ctx, NewId::of(args.newid), |newid| {
        let call = on_guest(Method::Post, &source, &["clone"], args.params(&source, newid));
        let future = future_guest(newid, source.kind, &node);
        let (after, config, asked) = (&after, &config, &args.asked);
        async move {
            after.foresee(ctx, &future, config, asked, named).await?;
            ctx.run(call?, asked).await
        }
    })
    .await?;
    let from = json!({"vmid": source.vmid, "name": source.name, "template": source.template});
    let answer = match done {
        Submitted::DryRun(answer) => {
            let answer = answer.with("vmid", newid.get()).with("from", from);
            let then = told_ahead(&after, &future_guest(newid, source.kind, &node), &config)?;
            if then.is_empty() { answer } else { answer.with("then", then) }
        }
        Submitted::Sent(sent) => {
            let sent = sent.with("vmid", newid.get()).with("from", from);
            after.run(ctx, newid, sent, "clone", &args.asked).await?
        }
    };
    Ok(answer
        .heading(format!("clone of {} as guest {newid}", title(&source)))
        .untrusted(&["from", "after"]))
}

#[cfg(test)]
mod tests {
    use super::dns_name;

    #[test]
    fn names() {
        for good in ["web-01", "a", "web.example.test", "7up"] {
            assert!(dns_name(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "a..b", ".a", "a_b", "a b", "a,b", "a\n", "ä", &"a".repeat(64)]
        {
            assert!(dns_name(bad).is_err(), "{bad:?}");
        }
    }
}
