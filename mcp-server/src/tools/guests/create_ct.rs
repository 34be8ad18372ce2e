//! A new container.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    clone::dns_name,
    create_vm::{finish, further},
    disk::new_volume,
    new_id::{NewId, with_new_id},
    nic,
    steps::{After, Made},
};
use crate::{
    Error, Result,
    insight::estate::GuestKind,
    pve::{NodeName, Params, Vmid, config_line::Line, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        change::AskedTask,
        outcome::{operation, switch},
        storage::place::{self, Volume},
    },
};

/// A further volume of the new container.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Mount {
    /// As 8G.
    size: String,
    path: String,
    storage: Option<String>,
    backup: Option<bool>,
}

/// Arguments of `pve_ct_create`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Create {
    /// As local:vztmpl/NAME.tar.zst.
    template: String,
    vmid: Option<Vmid>,
    node: Option<NodeName>,
    hostname: Option<String>,
    #[schemars(range(min = 1, max = 8192))]
    cores: Option<u32>,
    #[schemars(range(min = 16))]
    memory_mib: Option<u64>,
    #[schemars(range(min = 0))]
    swap_mib: Option<u64>,
    storage: Option<String>,
    /// Of the root file system, as 8G.
    size: Option<String>,
    mounts: Option<Vec<Mount>>,
    /// As pve_nic_set takes them.
    nics: Option<Vec<nic::Wanted>>,
    nameservers: Option<Vec<String>>,
    search_domain: Option<String>,
    password: Option<String>,
    ssh_keys: Option<Vec<String>>,
    /// On unless said.
    unprivileged: Option<bool>,
    nesting: Option<bool>,
    tags: Option<Vec<String>>,
    pool: Option<String>,
    description: Option<String>,
    onboot: Option<bool>,
    options: Option<Map<String, Value>>,
    start: Option<bool>,
    wait_address: Option<bool>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// Size of the root file system unless said.
const ROOT_SIZE: &str = "8G";

/// The storage of a volume: its own, the one for all, or the only one.
async fn storage(ctx: Ctx<'_>, node: &str, own: Option<&str>, all: Option<&str>) -> Result<String> {
    let row = place::chosen(ctx, node, own.or(all), "rootdir").await?;
    Ok(loose::text(&row, "storage").unwrap_or_default())
}

impl Create {
    async fn params(&self, ctx: Ctx<'_>, node: &str) -> Result<Params> {
        let root = storage(ctx, node, None, self.storage.as_deref()).await?;
        let keys = self.ssh_keys.as_deref().map(|keys| {
            // Checked as those of cloud-init are; here they go as they are.
            super::cloudinit::encoded_keys(keys).map(|_| keys.join("\n"))
        });
        let mut params = Params::new()
            .with("ostemplate", &self.template)
            .with_some("hostname", self.hostname.as_deref().map(dns_name).transpose()?)
            .with_some("cores", self.cores)
            .with_some("memory", self.memory_mib)
            .with_some("swap", self.swap_mib)
            .with("rootfs", new_volume(&root, self.size.as_deref().unwrap_or(ROOT_SIZE))?)
            .with_some("nameserver", self.nameservers.as_ref().map(|n| n.join(" ")))
            .with_some("searchdomain", self.search_domain.as_deref())
            .with_some("password", self.password.as_deref())
            .with_some("ssh-public-keys", keys.transpose()?)
            .with_bool("unprivileged", self.unprivileged.unwrap_or(true))
            .with_some("features", (self.nesting == Some(true)).then_some("nesting=1"))
            .with_some("tags", self.tags.as_ref().map(|t| t.join(";")))
            .with_some("pool", self.pool.as_deref())
            .with_some("description", self.description.as_deref());
        params = switch(params, "onboot", self.onboot);
        for (n, mount) in self.mounts.iter().flatten().enumerate() {
            if !mount.path.starts_with('/')
                || mount.path == "/"
                || mount.path.split('/').any(|p| p == "..")
            {
                return Err(Error::argument(format!(
                    "{:?} is no place to mount a volume",
                    mount.path
                ))
                .hint("an absolute path such as /data")
                .with("argument", "mounts"));
            }
            let storage =
                storage(ctx, node, mount.storage.as_deref(), self.storage.as_deref()).await?;
            let mut line = Line::parse("", Some("volume"));
            line.set("volume", &new_volume(&storage, &mount.size)?)?;
            line.set("mp", &mount.path)?;
            if let Some(backup) = mount.backup {
                line.set("backup", if backup { "1" } else { "0" })?;
            }
            params = params.with(&format!("mp{n}"), line);
        }
        if let Some(nics) = &self.nics {
            let firewall = nic::firewall_is_on(ctx).await;
            params = nic::new_nics(params, GuestKind::Lxc, nics, firewall)?;
        }
        further(params, self.options.as_ref())
    }
}

/// `pve_ct_create`
pub async fn create(ctx: Ctx<'_>, args: Create) -> Result<Answer> {
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let template = Volume::find(ctx, &args.template, Some(&NodeName::parse(&node)?)).await?;
    if template.content() != "vztmpl" {
        return Err(Error::argument(format!(
            "{} is {}, no container template",
            args.template,
            template.content()
        ))
        .hint("pve_list_templates lists them; a backup is restored by pve_backup_restore")
        .with("argument", "template"));
    }
    let after = After {
        start: args.start == Some(true),
        address: args.wait_address == Some(true),
        ..After::default()
    };
    after.check(GuestKind::Lxc, &args.asked)?;
    if let Some(made) = Made::before(ctx)? {
        return after.go_on(ctx, made, &args.asked).await;
    }
    let params = args.params(ctx, &node).await?;
    let (vmid, done) = with_new_id(ctx, NewId::of(args.vmid), |vmid| {
        let params = params.clone().with("vmid", vmid);
        let call = operation(Method::Post, &["nodes", &node, "lxc"], params);
        async { ctx.run(call?, &args.asked).await }
    })
    .await?;
    finish(ctx, vmid, GuestKind::Lxc, &node, done, &after, &args.asked).await
}
