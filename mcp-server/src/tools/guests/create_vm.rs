//! A new virtual machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    clone::dns_name,
    cloudinit,
    disk::{Bus, Cache, Format, new_volume, word},
    new_id::{NewId, with_new_id},
    nic,
    steps::{After, Made, future_guest, told_ahead},
};
use crate::{
    Error, Result,
    insight::estate::GuestKind,
    pve::{NodeName, Params, Vmid, config_line::Line, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        change::{AskedTask, Submitted},
        outcome::{operation, switch},
        storage::place::{self, Volume},
    },
};

/// Firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Bios {
    Seabios,
    Ovmf,
}

/// What runs inside.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OsType {
    L26,
    L24,
    Win11,
    Win10,
    Win8,
    Win7,
    Wvista,
    Wxp,
    W2k8,
    W2k3,
    W2k,
    Solaris,
    Other,
}

/// A disk of the new VM.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct NewDisk {
    /// As 32G; not with `import_from`.
    size: Option<String>,
    storage: Option<String>,
    bus: Option<Bus>,
    format: Option<Format>,
    cache: Option<Cache>,
    discard: Option<bool>,
    ssd: Option<bool>,
    iothread: Option<bool>,
    backup: Option<bool>,
    /// As local:import/noble.qcow2.
    import_from: Option<String>,
}

/// Arguments of `pve_vm_create`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Create {
    vmid: Option<Vmid>,
    node: Option<NodeName>,
    name: Option<String>,
    #[schemars(range(min = 1))]
    cores: Option<u32>,
    #[schemars(range(min = 1))]
    sockets: Option<u32>,
    #[schemars(range(min = 16))]
    memory_mib: Option<u64>,
    cpu: Option<String>,
    ostype: Option<OsType>,
    bios: Option<Bios>,
    machine: Option<String>,
    /// For disks that name none.
    storage: Option<String>,
    /// As pve_disk_add takes them, `import_from` in the place of `size` copies a volume.
    disks: Option<Vec<NewDisk>>,
    /// As local:iso/x.iso.
    iso: Option<String>,
    /// As pve_nic_set takes them.
    nics: Option<Vec<nic::Wanted>>,
    /// As pve_cloudinit_set takes it.
    cloudinit: Option<cloudinit::Wanted>,
    agent: Option<bool>,
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

/// The storage of a disk: its own, the one for all, or the only one.
async fn storage(ctx: Ctx<'_>, node: &str, own: Option<&str>, all: Option<&str>) -> Result<String> {
    let row = place::chosen(ctx, node, own.or(all), "images").await?;
    Ok(loose::text(&row, "storage").unwrap_or_default())
}

impl Create {
    async fn disks(&self, ctx: Ctx<'_>, node: &str, mut params: Params) -> Result<Params> {
        let mut next: Map<String, Value> = Map::new();
        let mut boot = None;
        for disk in self.disks.iter().flatten() {
            let storage =
                storage(ctx, node, disk.storage.as_deref(), self.storage.as_deref()).await?;
            let source = match (&disk.size, &disk.import_from) {
                (Some(size), None) => new_volume(&storage, size)?,
                (None, Some(_)) => format!("{storage}:0"),
                _ => {
                    return Err(Error::argument("a disk has either `size` or `import_from`")
                        .with("argument", "disks"));
                }
            };
            let mut line = Line::parse("", Some("file"));
            line.set("file", &source)?;
            let flag = |on: Option<bool>| on.map(|on| u8::from(on).to_string());
            let discard = disk.discard.map(|on| if on { "on" } else { "ignore" }.to_owned());
            for (key, value) in [
                ("import-from", disk.import_from.clone()),
                ("format", disk.format.and_then(word)),
                ("cache", disk.cache.and_then(word)),
                ("discard", discard),
                ("ssd", flag(disk.ssd)),
                ("iothread", flag(disk.iothread)),
                ("backup", flag(disk.backup)),
            ] {
                if let Some(value) = value {
                    line.set(key, &value)?;
                }
            }
            let (bus, count) = disk.bus.unwrap_or(Bus::Scsi).slots();
            let slot = super::disk::slot(&Value::Object(next.clone()), None, (bus, count))?;
            next.insert(slot.clone(), source.into());
            params = params.with(&slot, &line);
            boot.get_or_insert(slot);
        }
        if self.bios == Some(Bios::Ovmf) {
            let storage = storage(ctx, node, None, self.storage.as_deref()).await?;
            params = params.with("efidisk0", format!("{storage}:1,efitype=4m,pre-enrolled-keys=1"));
        }
        if let Some(iso) = &self.iso {
            let volume = Volume::find(ctx, iso, Some(&NodeName::parse(node)?)).await?;
            if volume.content() != "iso" {
                return Err(Error::argument(format!(
                    "{iso} is {}, no ISO image",
                    volume.content()
                ))
                .hint("pve_list_templates lists ISO images")
                .with("argument", "iso"));
            }
            let slot =
                super::disk::slot(&Value::Object(next.clone()), Some("ide2"), Bus::Ide.slots())?;
            next.insert(slot.clone(), iso.clone().into());
            params = params.with(&slot, format!("{iso},media=cdrom"));
        }
        if self.cloudinit.is_some() {
            let storage = storage(ctx, node, None, self.storage.as_deref()).await?;
            let slot = cloudinit::drive_slot(&Value::Object(next))?;
            params = params.with(&slot, format!("{storage}:cloudinit"));
        }
        let order: Vec<String> =
            boot.into_iter().chain(self.iso.as_ref().map(|_| "ide2".to_owned())).collect();
        if !order.is_empty() {
            params = params.with("boot", format!("order={}", order.join(";")));
        }
        Ok(params)
    }

    async fn params(&self, ctx: Ctx<'_>, node: &str) -> Result<Params> {
        let mut params = Params::new()
            .with_some("name", self.name.as_deref().map(dns_name).transpose()?)
            .with_some("cores", self.cores)
            .with_some("sockets", self.sockets)
            .with_some("memory", self.memory_mib)
            .with_some("cpu", self.cpu.as_deref())
            .with("ostype", self.ostype.and_then(word).unwrap_or_else(|| "l26".to_owned()))
            .with_some("bios", self.bios.and_then(word))
            .with_some("machine", self.machine.as_deref())
            .with_some("pool", self.pool.as_deref())
            .with_some("description", self.description.as_deref())
            .with_some("tags", self.tags.as_ref().map(|t| t.join(";")))
            // One thread for each disk's I/O, as the web interface makes new VMs.
            .with("scsihw", "virtio-scsi-single");
        params = switch(params, "agent", self.agent);
        params = switch(params, "onboot", self.onboot);
        params = self.disks(ctx, node, params).await?;
        if let Some(nics) = &self.nics {
            let firewall = nic::firewall_is_on(ctx).await;
            params = nic::new_nics(params, GuestKind::Qemu, nics, firewall)?;
        }
        if let Some(wanted) = &self.cloudinit {
            let (told, _) = wanted.params(&Value::Null)?;
            for (name, value) in told.iter() {
                params.set(name, value.clone());
            }
        }
        further(params, self.options.as_ref())
    }
}

/// Adds further options by name; those that have an argument of their own win nothing here.
///
/// # Errors
/// `invalid_argument` for an option that is given twice, or that is no option of a new guest.
pub fn further(mut params: Params, options: Option<&Map<String, Value>>) -> Result<Params> {
    let options = Value::Object(options.cloned().unwrap_or_default());
    for (name, value) in Params::from_json(&options)?.iter() {
        let own = [
            "vmid",
            "node",
            "start",
            "archive",
            "ostemplate",
            "restore",
            "force",
            "unique",
            "storage",
        ];
        if params.has(name) || own.contains(&name) {
            return Err(Error::argument(format!("`{name}` is set by an argument of its own"))
                .with("argument", "options"));
        }
        params.set(name, value.clone());
    }
    Ok(params)
}

/// `pve_vm_create`
pub async fn create(ctx: Ctx<'_>, args: Create) -> Result<Answer> {
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let after = After {
        start: args.start == Some(true),
        address: args.wait_address == Some(true),
        ..After::default()
    };
    after.check(GuestKind::Qemu, &args.asked)?;
    if let Some(made) = Made::before(ctx)? {
        return after.go_on(ctx, made, &args.asked).await;
    }
    let params = args.params(ctx, &node).await?;
    let (vmid, done) = with_new_id(ctx, NewId::of(args.vmid), |vmid| {
        let params = params.clone().with("vmid", vmid);
        let call = operation(Method::Post, &["nodes", &node, "qemu"], params);
        async { ctx.run(call?, &args.asked).await }
    })
    .await?;
    finish(ctx, vmid, GuestKind::Qemu, &node, done, &after, &args.asked).await
}

/// The answer of a guest that was made, when what follows is done too.
///
/// # Errors
/// What a step answers.
pub async fn finish(
    ctx: Ctx<'_>,
    vmid: Vmid,
    kind: GuestKind,
    node: &str,
    done: Submitted,
    after: &After,
    asked: &AskedTask,
) -> Result<Answer> {
    let answer = match done {
        Submitted::DryRun(answer) => {
            let answer = answer.with("vmid", vmid.get());
            let then = told_ahead(after, &future_guest(vmid, kind, node), &Value::Null)?;
            if then.is_empty() { answer } else { answer.with("then", then) }
        }
        Submitted::Sent(sent) => {
            after.run(ctx, vmid, sent.with("vmid", vmid.get()), "create", asked).await?
        }
    };
    Ok(answer.heading(format!("new {} {vmid} on {node}", kind.noun())))
}
