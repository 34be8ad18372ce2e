//! Cloud-init options of a VM.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    config::change,
    disk::word,
    nic::{is_address, is_cidr},
};
use crate::{
    Error, Result,
    insight::estate::GuestKind,
    pve::{
        GuestConfig, Params, Vmid,
        config_line::{DiskRole, Line},
        loose,
    },
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        change::{Asked, AskedTask, Submitted, on_guest},
        storage::place,
    },
};

/// The unreserved characters of RFC 3986; `sshkeys` is percent-encoded once
/// by itself, before the body is.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Addresses of one interface; what is not named stays as it is.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Addresses {
    #[schemars(range(min = 0, max = 31))]
    pub index: Option<u8>,
    /// address/prefix or dhcp; empty takes it away.
    pub ip: Option<String>,
    pub gw: Option<String>,
    /// address/prefix, dhcp or auto.
    pub ip6: Option<String>,
    pub gw6: Option<String>,
}

/// What the VM is told at its first boot.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Wanted {
    pub user: Option<String>,
    pub password: Option<String>,
    /// An empty list removes them.
    pub ssh_keys: Option<Vec<String>>,
    pub addresses: Option<Vec<Addresses>>,
    pub nameservers: Option<Vec<String>>,
    pub search_domain: Option<String>,
    pub upgrade: Option<bool>,
}

/// The kind of data drive.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DriveType {
    Nocloud,
    Configdrive2,
    Opennebula,
}

/// Arguments of `pve_cloudinit_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Set {
    vmid: Vmid,
    #[serde(flatten)]
    wanted: Wanted,
    r#type: Option<DriveType>,
    /// For a new drive, where the VM has none.
    drive_storage: Option<String>,
    /// Writes the drive at once.
    regenerate: Option<bool>,
    /// As ciuser, ipconfig1.
    delete: Option<Vec<String>>,
    digest: Option<String>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// Public keys as `sshkeys` takes them.
///
/// # Errors
/// `invalid_argument` for what is no public key.
pub fn encoded_keys(keys: &[String]) -> Result<String> {
    let mut lines: Vec<&str> = Vec::new();
    for line in keys.iter().flat_map(|key| key.lines()).map(str::trim).filter(|l| !l.is_empty()) {
        if line.contains("PRIVATE KEY") {
            return Err(Error::argument("`ssh_keys` holds a private key")
                .hint("give the public one, which ends in .pub")
                .with("argument", "ssh_keys"));
        }
        let body = |word: &str| {
            word.len() > 16
                && word
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='))
        };
        let words = line.split_whitespace();
        let known =
            |w: &str| w.starts_with("ssh-") || w.starts_with("ecdsa-") || w.starts_with("sk-");
        let mut rest = words.skip_while(|w| !known(w));
        if rest.next().is_none()
            || !rest.next().is_some_and(body)
            || line.chars().any(char::is_control)
        {
            return Err(Error::argument("`ssh_keys` holds something that is no public key")
                .hint("one line each, as `ssh-ed25519 AAAA… name`")
                .with("argument", "ssh_keys"));
        }
        lines.push(line);
    }
    Ok(utf8_percent_encode(&lines.join("\n"), UNRESERVED).to_string())
}

impl Addresses {
    fn slot(&self) -> String {
        format!("ipconfig{}", self.index.unwrap_or(0))
    }

    /// The option with what is named here changed; empty when nothing is left.
    fn apply(&self, now: &str) -> Result<Line> {
        let mut line = Line::parse(now, None);
        for (key, value, words, v6) in [
            ("ip", &self.ip, &["dhcp"][..], false),
            ("ip6", &self.ip6, &["dhcp", "auto"][..], true),
        ] {
            let Some(value) = value else { continue };
            let gateway = if v6 { "gw6" } else { "gw" };
            if value.is_empty() {
                line.remove(key);
                line.remove(gateway);
            } else if words.contains(&value.as_str()) {
                line.set(key, value)?;
                line.remove(gateway);
            } else if is_cidr(value, v6) {
                line.set(key, value)?;
            } else {
                return Err(Error::argument(format!("`{key}` cannot be {value:?}"))
                    .hint(format!("an address with its prefix, or {}", words.join(", ")))
                    .with("argument", key));
            }
        }
        for (key, value, ip, v6) in [("gw", &self.gw, "ip", false), ("gw6", &self.gw6, "ip6", true)]
        {
            let Some(value) = value else { continue };
            if value.is_empty() {
                line.remove(key);
            } else if !is_address(value, v6) {
                return Err(Error::argument(format!("`{key}` cannot be {value:?}"))
                    .hint("an address without a prefix")
                    .with("argument", key));
            } else if !line.get(ip).is_some_and(|ip| ip.contains('/')) {
                return Err(
                    Error::argument(format!("`{key}` needs a fixed `{ip}`")).with("argument", key)
                );
            } else {
                line.set(key, value)?;
            }
        }
        Ok(line)
    }
}

impl Wanted {
    /// Whether anything is asked for.
    pub fn is_empty(&self) -> bool {
        self.user.is_none()
            && self.password.is_none()
            && self.ssh_keys.is_none()
            && self.addresses.is_none()
            && self.nameservers.is_none()
            && self.search_domain.is_none()
            && self.upgrade.is_none()
    }

    /// The options to send, the present ones kept where they are not named, and
    /// the names of those to delete.
    ///
    /// # Errors
    /// `invalid_argument` for values that are none.
    pub fn params(&self, config: &Value) -> Result<(Params, Vec<String>)> {
        let mut params = Params::new();
        let mut gone: Vec<String> = Vec::new();
        for (name, value) in [
            ("ciuser", &self.user),
            ("cipassword", &self.password),
            ("searchdomain", &self.search_domain),
        ] {
            match value.as_deref() {
                Some("") => gone.push(name.to_owned()),
                Some(text) if text.chars().any(char::is_control) => {
                    return Err(Error::argument(format!("`{name}` holds a control character")));
                }
                Some(text) => params = params.with(name, text),
                None => {}
            }
        }
        match self.ssh_keys.as_deref() {
            Some([]) => gone.push("sshkeys".to_owned()),
            Some(keys) => params = params.with("sshkeys", encoded_keys(keys)?),
            None => {}
        }
        match self.nameservers.as_deref() {
            Some([]) => gone.push("nameserver".to_owned()),
            Some(servers) => {
                if let Some(odd) = servers.iter().find(|s| s.parse::<std::net::IpAddr>().is_err()) {
                    return Err(Error::argument(format!("{odd:?} is no address of a name server"))
                        .with("argument", "nameservers"));
                }
                params = params.with("nameserver", servers.join(" "));
            }
            None => {}
        }
        let mut lines: Vec<(String, Line)> = Vec::new();
        for addresses in self.addresses.iter().flatten() {
            let slot = addresses.slot();
            let now = match lines.iter().find(|(s, _)| *s == slot) {
                Some((_, line)) => line.to_string(),
                None => loose::text(config, &slot).unwrap_or_default(),
            };
            let line = addresses.apply(&now)?;
            lines.retain(|(s, _)| *s != slot);
            lines.push((slot, line));
        }
        for (slot, line) in lines {
            let text = line.to_string();
            if text.is_empty() { gone.push(slot) } else { params = params.with(&slot, text) }
        }
        if let Some(upgrade) = self.upgrade {
            params = params.with_bool("ciupgrade", upgrade);
        }
        Ok((params, gone))
    }
}

/// The slot of a VM's cloud-init drive.
pub fn drive(config: &Value) -> Option<String> {
    let disks = GuestConfig::new(GuestKind::Qemu, config).disks();
    disks.into_iter().find(|d| d.role == DiskRole::CloudInit).map(|d| d.slot)
}

/// A free slot for the drive: `ide2` where it can be.
pub fn drive_slot(config: &Value) -> Result<String> {
    let slots = ["ide2", "ide0", "ide3", "ide1", "scsi30", "scsi29"];
    let free = slots.into_iter().find(|slot| loose::some(config, slot).is_none());
    free.map(str::to_owned)
        .ok_or_else(|| Error::argument("no slot is free for the cloud-init drive"))
}

/// `pve_cloudinit_set`
pub async fn set(ctx: Ctx<'_>, args: Set) -> Result<Answer> {
    let guest = ctx.guest_now(args.vmid).await?;
    if guest.kind == GuestKind::Lxc {
        return Err(Error::argument(format!("guest {} is a container: only VMs have cloud-init", guest.vmid))
            .hint("a container's addresses are set by pve_nic_set, its name servers by pve_guest_config_set"));
    }
    let config = ctx.get_below(&guest, &["config"], Params::new()).await?;
    let (mut params, mut gone) = args.wanted.params(&config)?;
    for name in args.delete.iter().flatten() {
        let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let known = [
            "ciuser",
            "cipassword",
            "sshkeys",
            "nameserver",
            "searchdomain",
            "citype",
            "ciupgrade",
            "cicustom",
        ];
        if !known.contains(&name.as_str()) && base != "ipconfig" {
            return Err(Error::argument(format!("{name:?} is no option of cloud-init"))
                .hint(format!("{}, ipconfigN", known.join(", ")))
                .with("argument", "delete"));
        }
        gone.push(name.clone());
    }
    params = params.with_some("citype", args.r#type.and_then(word));
    let has_drive = drive(&config);
    if let Some(storage) = &args.drive_storage {
        if let Some(slot) = &has_drive {
            return Err(Error::argument(format!("the VM has its cloud-init drive at {slot}"))
                .with("argument", "drive_storage"));
        }
        place::holding(ctx, &guest.node, storage, "images").await?;
        params = params.with(&drive_slot(&config)?, format!("{storage}:cloudinit"));
    }
    let mut keys: Vec<String> = params.iter().map(|(name, _)| name.to_owned()).collect();
    keys.extend(gone.iter().cloned());
    if !gone.is_empty() {
        params = params.with("delete", gone.join(","));
    }
    let without = has_drive.is_none() && args.drive_storage.is_none();
    if keys.is_empty() && args.regenerate != Some(true) {
        return Err(Error::argument("nothing to change"));
    }
    let mut answer = if keys.is_empty() {
        regenerated(ctx, &guest, &args.asked.asked()).await?
    } else {
        let mut answer = change(ctx, &guest, params, &keys, args.digest, &args.asked).await?;
        readable_keys(&mut answer.structured);
        if args.regenerate == Some(true) && args.asked.dry_run != Some(true) {
            let drive = regenerated(ctx, &guest, &args.asked.asked()).await;
            answer = match drive {
                Ok(done) => answer.with("regenerated", done.structured),
                Err(e) => answer.with("regenerated", e.to_json()),
            };
        }
        answer
    };
    if without {
        answer = answer.with("note", "the VM has no cloud-init drive: `drive_storage` makes one");
    }
    Ok(answer)
}

/// Has the drive written anew.
async fn regenerated(
    ctx: Ctx<'_>,
    guest: &crate::insight::estate::Guest,
    asked: &Asked,
) -> Result<Answer> {
    let call = on_guest(Method::Put, guest, &["cloudinit"], Params::new())?;
    Ok(match ctx.submit(call, asked).await? {
        Submitted::DryRun(answer) => answer,
        Submitted::Sent(sent) => {
            sent.into_answer(format!("cloud-init drive of guest {}", guest.vmid))
        }
    })
}

/// Keys stand in the configuration percent-encoded; people read lines.
fn readable_keys(answer: &mut Value) {
    for member in ["before", "after"] {
        if let Some(keys) = answer.get_mut(member).and_then(|m| m.get_mut("sshkeys"))
            && let Some(text) = keys.as_str()
        {
            let text = percent_decode_str(text).decode_utf8_lossy().into_owned();
            *keys = json!(text.lines().collect::<Vec<_>>());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ+a/b=";

    #[test]
    fn keys_are_encoded_once_by_themselves() {
        let keys = [format!("{KEY} eva@home"), format!("{KEY} two+words")];
        let want = "ssh-ed25519%20AAAAC3NzaC1lZDI1NTE5AAAAIJ%2Ba%2Fb%3D%20eva%40home%0Assh-ed25519%20AAAAC3NzaC1lZDI1NTE5AAAAIJ%2Ba%2Fb%3D%20two%2Bwords";
        assert_eq!(encoded_keys(&keys).unwrap(), want);
        assert_eq!(encoded_keys(&[keys.join("\n")]).unwrap(), want, "several in one text");
        let mut answer = json!({"after": {"sshkeys": want}});
        readable_keys(&mut answer);
        assert_eq!(answer["after"]["sshkeys"], json!(keys));
        for bad in ["", "hello", "-----BEGIN OPENSSH PRIVATE KEY-----", "ssh-ed25519", "ssh-rsa x"]
        {
            let got = encoded_keys(&[bad.to_owned()]);
            assert!(got.is_err() || got.unwrap().is_empty(), "{bad}");
        }
    }

    #[test]
    fn addresses_change_in_part() {
        for (now, change, after) in [
            (
                "",
                json!({"ip": "10.0.0.5/24", "gw": "10.0.0.1"}),
                Some("ip=10.0.0.5/24,gw=10.0.0.1"),
            ),
            (
                "ip=10.0.0.5/24,gw=10.0.0.1",
                json!({"ip6": "auto"}),
                Some("ip=10.0.0.5/24,gw=10.0.0.1,ip6=auto"),
            ),
            ("ip=10.0.0.5/24,gw=10.0.0.1", json!({"ip": "dhcp"}), Some("ip=dhcp")),
            ("ip=10.0.0.5/24,gw=10.0.0.1", json!({"gw": ""}), Some("ip=10.0.0.5/24")),
            ("ip=dhcp", json!({"ip": ""}), Some("")),
            ("ip=dhcp", json!({"gw": "10.0.0.1"}), None),
            ("", json!({"ip": "10.0.0.5"}), None),
            ("", json!({"ip": "10.0.0.5/24,gw=10.0.0.9"}), None),
            ("", json!({"ip6": "10.0.0.5/24"}), None),
        ] {
            let wanted: Addresses = serde_json::from_value(change.clone()).unwrap();
            let got = wanted.apply(now).ok().map(|l| l.to_string());
            assert_eq!(got.as_deref(), after, "{now} {change}");
        }
    }
}
