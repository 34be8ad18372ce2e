//! Disks and mount points: added, made larger.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::config::change;
use crate::{
    Code, Error, Result,
    insight::estate::{Guest, GuestKind},
    pve::{
        GuestConfig, Params, Vmid,
        config_line::{self, Disk, DiskRole, Line},
        loose,
    },
    render::{Answer, units},
    safety::{Method, volume},
    tools::{
        Ctx,
        change::{AskedTask, on_guest},
        core::title,
        outcome::told,
        storage::place,
    },
};

/// How a disk is attached to a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Bus {
    Scsi,
    Virtio,
    Sata,
    Ide,
}

impl Bus {
    /// Its name and how many slots it has.
    pub const fn slots(self) -> (&'static str, u32) {
        match self {
            Self::Scsi => ("scsi", 31),
            Self::Virtio => ("virtio", 16),
            Self::Sata => ("sata", 6),
            Self::Ide => ("ide", 4),
        }
    }
}

/// Mount points of a container, `mp0` to `mp255`.
const MOUNT_POINTS: (&str, u32) = ("mp", 256);

/// How an image file is kept.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Raw,
    Qcow2,
    Vmdk,
}

/// Caching of a VM's disk.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    None,
    Writethrough,
    Writeback,
    Directsync,
    Unsafe,
}

/// An enumeration's word.
pub fn word(value: impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

/// Bytes of a size as a person writes it: a bare number means GiB.
///
/// # Errors
/// `invalid_argument` for what is none, or is 0.
pub fn bytes(text: &str) -> Result<u64> {
    let text = text.trim().trim_end_matches(['B', 'b']).trim_end_matches('i');
    let bare = text.ends_with(|c: char| c.is_ascii_digit());
    let size = config_line::size(&if bare { format!("{text}G") } else { text.to_owned() });
    size.filter(|n| *n > 0).ok_or_else(|| {
        Error::argument(format!("{text:?} is no size"))
            .hint("as 32G, 512M or 1T")
            .with("argument", "size")
    })
}

/// A new volume of some size, as the API asks for it: `local-lvm:32`.
///
/// # Errors
/// As [`bytes`].
pub fn new_volume(storage: &str, size: &str) -> Result<String> {
    let bytes = bytes(size)?;
    let gib = 1_u64 << 30;
    if bytes.is_multiple_of(gib) {
        return Ok(format!("{storage}:{}", bytes / gib));
    }
    #[allow(clippy::cast_precision_loss)]
    let part = bytes as f64 / gib as f64;
    Ok(format!("{storage}:{part}"))
}

/// The slot meant: the one named, or the first free one of its kind.
///
/// # Errors
/// `invalid_argument` for a name that is no slot, `conflict` for one that is taken.
pub fn slot(config: &Value, named: Option<&str>, (bus, count): (&str, u32)) -> Result<String> {
    let free = |slot: &str| loose::some(config, slot).is_none();
    let Some(named) = named else {
        return (0..count).map(|n| format!("{bus}{n}")).find(|s| free(s)).ok_or_else(|| {
            Error::new(Code::Conflict, format!("all {count} slots of {bus} are taken"))
        });
    };
    let number =
        named.strip_prefix(bus).filter(|n| !n.is_empty() && (*n == "0" || !n.starts_with('0')));
    if number.and_then(|n| n.parse::<u32>().ok()).is_none_or(|n| n >= count) {
        return Err(Error::argument(format!("{named:?} is no slot of {bus}"))
            .hint(format!("{bus}0 to {bus}{}", count - 1))
            .with("argument", "slot"));
    }
    if !free(named) {
        return Err(Error::new(Code::Conflict, format!("{named} is taken"))
            .hint(format!("it holds {}", loose::text(config, named).unwrap_or_default())));
    }
    Ok(named.to_owned())
}

/// Arguments of `pve_disk_add`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Add {
    vmid: Vmid,
    storage: Option<String>,
    /// As 32G.
    size: Option<String>,
    /// As scsi1, mp0; the next free one unless said.
    slot: Option<String>,
    bus: Option<Bus>,
    mount: Option<String>,
    volume: Option<String>,
    format: Option<Format>,
    cache: Option<Cache>,
    discard: Option<bool>,
    ssd: Option<bool>,
    iothread: Option<bool>,
    backup: Option<bool>,
    replicate: Option<bool>,
    read_only: Option<bool>,
    digest: Option<String>,
    #[serde(flatten)]
    asked: AskedTask,
}

impl Add {
    /// Refuses options that the kind of guest does not have.
    fn check(&self, kind: GuestKind) -> Result<()> {
        let (wrong, noun) = match kind {
            GuestKind::Lxc => (
                [
                    ("bus", self.bus.is_some()),
                    ("format", self.format.is_some()),
                    ("cache", self.cache.is_some()),
                    ("discard", self.discard.is_some()),
                    ("ssd", self.ssd.is_some()),
                    ("iothread", self.iothread.is_some()),
                ]
                .to_vec(),
                "container",
            ),
            GuestKind::Qemu => ([("mount", self.mount.is_some())].to_vec(), "VM"),
        };
        if let Some((name, _)) = wrong.into_iter().find(|(_, given)| *given) {
            return Err(
                Error::argument(format!("a {noun}'s disk has no `{name}`")).with("argument", name)
            );
        }
        if kind == GuestKind::Lxc {
            match self.mount.as_deref() {
                None => {
                    return Err(Error::argument(
                        "a container's disk needs `mount`: where it is mounted",
                    )
                    .with("argument", "mount"));
                }
                Some(path)
                    if !path.starts_with('/')
                        || path == "/"
                        || path.split('/').any(|p| p == "..") =>
                {
                    return Err(Error::argument(format!("{path:?} is no place to mount a disk"))
                        .hint("an absolute path such as /data")
                        .with("argument", "mount"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// The line of the configuration.
    fn line(&self, kind: GuestKind, source: &str) -> Result<Line> {
        let key = if kind == GuestKind::Qemu { "file" } else { "volume" };
        let mut line = Line::parse("", Some(key));
        line.set(key, source)?;
        let flag = |on: Option<bool>| on.map(|on| u8::from(on).to_string());
        let discard = self.discard.map(|on| if on { "on" } else { "ignore" }.to_owned());
        let format = self.format.filter(|_| self.volume.is_none()).and_then(word);
        for (name, value) in [
            ("mp", self.mount.clone()),
            ("format", format),
            ("cache", self.cache.and_then(word)),
            ("discard", discard),
            ("ssd", flag(self.ssd)),
            ("iothread", flag(self.iothread)),
            ("backup", flag(self.backup)),
            ("replicate", flag(self.replicate)),
            ("ro", flag(self.read_only)),
        ] {
            if let Some(value) = value {
                line.set(name, &value)?;
            }
        }
        Ok(line)
    }
}

/// `pve_disk_add`
pub async fn add(ctx: Ctx<'_>, args: Add) -> Result<Answer> {
    let guest = ctx.guest_now(args.vmid).await?;
    args.check(guest.kind)?;
    let source = match (&args.volume, &args.size) {
        (Some(_), Some(_)) => {
            return Err(Error::argument(
                "give `size` for a new disk or `volume` for one that is there, not both",
            ));
        }
        (None, None) => {
            return Err(Error::argument("argument `size` is missing").with("argument", "size"));
        }
        (Some(id), None) => own_volume(&guest, id)?,
        (None, Some(size)) => {
            let content = if guest.kind == GuestKind::Qemu { "images" } else { "rootdir" };
            let row = place::chosen(ctx, &guest.node, args.storage.as_deref(), content).await?;
            new_volume(&loose::text(&row, "storage").unwrap_or_default(), size)?
        }
    };
    let config = ctx.get_below(&guest, &["config"], Params::new()).await?;
    let bus = match (guest.kind, args.bus, args.slot.as_deref()) {
        (GuestKind::Lxc, _, _) => MOUNT_POINTS,
        (GuestKind::Qemu, Some(bus), _) => bus.slots(),
        (GuestKind::Qemu, None, Some(slot)) => {
            let all = [Bus::Scsi, Bus::Virtio, Bus::Sata, Bus::Ide];
            let bus = slot.trim_end_matches(|c: char| c.is_ascii_digit());
            all.into_iter()
                .map(Bus::slots)
                .find(|(name, _)| *name == bus)
                .unwrap_or(Bus::Scsi.slots())
        }
        (GuestKind::Qemu, None, None) => Bus::Scsi.slots(),
    };
    let slot = slot(&config, args.slot.as_deref(), bus)?;
    let line = args.line(guest.kind, &source)?;
    let params = Params::new().with(&slot, &line);
    let left_out = guest.kind == GuestKind::Lxc && args.backup != Some(true);
    let answer = change(ctx, &guest, params, &[slot], args.digest, &args.asked).await?;
    Ok(if left_out {
        answer.with("note", "backups leave a mount point out unless `backup` is true")
    } else {
        answer
    })
}

/// A volume that belongs to this guest.
fn own_volume(guest: &Guest, id: &str) -> Result<String> {
    if volume::on_host(id) || !id.contains(':') {
        return Err(Error::argument(format!("{id:?} is no volume of a storage"))
            .hint("as pve_storage_content shows it: storage:name")
            .with("argument", "volume"));
    }
    let owners = volume::owners(id);
    if owners.last() == Some(&guest.vmid) {
        return Ok(id.to_owned());
    }
    Err(match owners.last() {
        Some(owner) => Error::new(
            Code::Conflict,
            format!("{id} belongs to guest {owner}, not to {}", guest.vmid),
        )
        .hint("pve_disk_move with `target_vmid` hands a disk to another guest"),
        None => Error::argument(format!("{id} is no disk of a guest")).with("argument", "volume"),
    })
}

/// A guest's disk with what stands around it.
pub struct Attached {
    /// The guest.
    pub guest: Guest,
    /// Its configuration.
    pub config: Arc<Value>,
    /// The disk.
    pub disk: Disk,
}

impl Attached {
    /// Looks a disk up.
    ///
    /// # Errors
    /// `not_found`, naming the disks that are there.
    pub async fn find(ctx: Ctx<'_>, vmid: Vmid, slot: &str) -> Result<Self> {
        let guest = ctx.guest_now(vmid).await?;
        let config = ctx.get_below(&guest, &["config"], Params::new()).await?;
        let disks = GuestConfig::new(guest.kind, &config).disks();
        let names: Vec<String> = disks.iter().map(|d| d.slot.clone()).collect();
        match disks.into_iter().find(|d| d.slot == slot) {
            Some(disk) => Ok(Self { guest, config, disk }),
            None => Err(Error::new(Code::NotFound, format!("guest {vmid} has no disk {slot:?}"))
                .hint(format!("disks: {}", names.join(", ")))
                .with("argument", "disk")),
        }
    }

    /// The digest to send: the one given, when it is still right, else the present one.
    ///
    /// # Errors
    /// `digest_changed`.
    pub fn digest(&self, given: Option<&String>) -> Result<Option<String>> {
        let current = loose::text(&self.config, "digest");
        match (given, current) {
            (Some(given), Some(current)) if *given != current => Err(Error::new(
                Code::DigestChanged,
                "the configuration has changed since it was read",
            )
            .hint("read it again with pve_vm_config, and decide again")
            .with("digest", current)),
            (Some(given), _) => Ok(Some(given.clone())),
            (None, current) => Ok(current),
        }
    }

    /// A disk that is no drive, as a volume of a storage.
    ///
    /// # Errors
    /// `invalid_argument` for a CD-ROM drive, a cloud-init drive and a place on the host.
    pub fn volume(&self, verb: &str) -> Result<String> {
        let what = match self.disk.role {
            DiskRole::CdRom => Some("a CD-ROM drive"),
            DiskRole::CloudInit => Some("the cloud-init drive"),
            _ if self.disk.source.volume_id().is_none() => Some("no volume of a storage"),
            _ => None,
        };
        match (what, self.disk.source.volume_id()) {
            (None, Some(volume)) => Ok(volume),
            (what, _) => Err(Error::argument(format!(
                "{} is {}, which cannot be {verb}",
                self.disk.slot,
                what.unwrap_or_default()
            ))
            .with("argument", "disk")),
        }
    }
}

/// Arguments of `pve_disk_resize`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Resize {
    vmid: Vmid,
    /// As scsi0, rootfs or mp0.
    disk: String,
    /// As 64G, or +16G to add; disks only grow.
    size: String,
    digest: Option<String>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_disk_resize`
pub async fn resize(ctx: Ctx<'_>, args: Resize) -> Result<Answer> {
    let found = Attached::find(ctx, args.vmid, &args.disk).await?;
    let volume = found.volume("resized")?;
    if found.disk.role == DiskRole::Unused {
        return Err(Error::argument(format!("{} is not attached", args.disk))
            .hint("pve_disk_add with `volume` attaches it first")
            .with("argument", "disk"));
    }
    let text = args.size.trim();
    let (adds, text) = match text.strip_prefix('+') {
        Some(more) => (true, more),
        None => (false, text),
    };
    let amount = bytes(text)?;
    let now = match found.disk.size {
        Some(size) => Some(size),
        None => size_of(ctx, &found.guest, &volume).await,
    };
    let wanted = match (adds, now) {
        (true, now) => now.map(|n| n.saturating_add(amount)),
        (false, _) => Some(amount),
    };
    if let (Some(now), Some(wanted)) = (now, wanted) {
        if wanted < now {
            return Err(Error::new(
                Code::Conflict,
                format!(
                    "{} has {}, and cannot shrink to {}",
                    args.disk,
                    units::bytes(now),
                    units::bytes(wanted)
                ),
            )
            .hint("Proxmox cannot shrink disks: make a smaller one and copy what it should hold")
            .with("size_bytes", now)
            .with("wanted_bytes", wanted));
        }
        if wanted == now && args.asked.dry_run != Some(true) {
            return Ok(Answer::new(json!({
                "status": "no_change", "vmid": args.vmid, "disk": args.disk, "size_bytes": now,
            })));
        }
    }
    let size = format!("{}{}", if adds { "+" } else { "" }, unit(amount));
    let params = Params::new()
        .with("disk", &args.disk)
        .with("size", size)
        .with_some("digest", found.digest(args.digest.as_ref())?);
    let call = on_guest(Method::Put, &found.guest, &["resize"], params)?;
    let before = json!({"disk": args.disk, "volume": volume, "size_bytes": now});
    let done = ctx.run(call, &args.asked).await?;
    let after = async {
        ctx.app.pve.forget();
        match Attached::find(ctx, args.vmid, &args.disk).await {
            Ok(now) => json!({"disk": args.disk, "size_bytes": now.disk.size}),
            Err(_) => Value::Null,
        }
    };
    let heading = format!("resized {} of {}", args.disk, title(&found.guest));
    Ok(told(done, before, after, heading).await)
}

/// A number of bytes in the largest unit that leaves no fraction.
fn unit(bytes: u64) -> String {
    for (shift, name) in [(40, "T"), (30, "G"), (20, "M"), (10, "K")] {
        if bytes.is_multiple_of(1 << shift) {
            return format!("{}{name}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// The size of a volume, by its storage.
async fn size_of(ctx: Ctx<'_>, guest: &Guest, volume: &str) -> Option<u64> {
    let storage = volume.split_once(':')?.0;
    let path = ["nodes", &*guest.node, "storage", storage, "content"];
    let rows = ctx.get(&path).await.ok()?;
    let row = loose::rows(&rows).iter().find(|r| loose::str(r, "volid") == Some(volume))?;
    loose::uint(row, "size")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, want) in [
            ("32G", Some("s:32")),
            ("32", Some("s:32")),
            ("32 GiB", None),
            ("32GiB", Some("s:32")),
            ("512M", Some("s:0.5")),
            ("1T", Some("s:1024")),
            ("1.5G", Some("s:1.5")),
            ("0", None),
            ("", None),
            ("-1G", None),
            ("8,iothread=1", None),
            ("1e3G", None),
        ] {
            assert_eq!(new_volume("s", text).ok().as_deref(), want, "{text:?}");
        }
        assert_eq!(unit(64 << 30), "64G");
        assert_eq!(unit((1 << 30) + (1 << 29)), "1536M");
        assert_eq!(unit(3 << 40), "3T");
    }

    #[test]
    fn slots() {
        let config = json!({"scsi0": "a:b", "scsi2": "a:c", "mp0": "x"});
        let scsi = Bus::Scsi.slots();
        assert_eq!(slot(&config, None, scsi).unwrap(), "scsi1");
        assert_eq!(slot(&config, Some("scsi30"), scsi).unwrap(), "scsi30");
        assert_eq!(slot(&config, None, MOUNT_POINTS).unwrap(), "mp1");
        for (named, code) in [
            ("scsi0", Code::Conflict),
            ("scsi31", Code::InvalidArgument),
            ("scsi01", Code::InvalidArgument),
            ("scsi", Code::InvalidArgument),
            ("scsi-1", Code::InvalidArgument),
            ("scsi1,scsi2", Code::InvalidArgument),
            ("args", Code::InvalidArgument),
            ("unused0", Code::InvalidArgument),
        ] {
            assert_eq!(slot(&config, Some(named), scsi).unwrap_err().code, code, "{named}");
        }
        let full = json!({"ide0": "a", "ide1": "a", "ide2": "a", "ide3": "a"});
        assert_eq!(slot(&full, None, Bus::Ide.slots()).unwrap_err().code, Code::Conflict);
    }
}
