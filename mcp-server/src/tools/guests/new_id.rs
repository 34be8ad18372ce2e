//! A VMID for a new guest. Proxmox reserves none: whoever creates first has it.

use std::{
    collections::BTreeSet,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    Code, Error, Result,
    pve::{ApiPath, Params, Vmid, loose},
    tools::Ctx,
};

/// The VMIDs that calls of this process are about to use, by server.
static HELD: Mutex<BTreeSet<(usize, Vmid)>> = Mutex::new(BTreeSet::new());

/// How many VMIDs are tried before giving up.
const TRIES: usize = 200;

/// Which VMID a new guest gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewId {
    /// This one and no other.
    Exactly(Vmid),
    /// Any that is free.
    Next,
}

impl NewId {
    /// From an argument.
    pub fn of(vmid: Option<Vmid>) -> Self {
        vmid.map_or(Self::Next, Self::Exactly)
    }
}

/// A VMID that no other call of this process takes meanwhile.
struct Held(usize, Vmid);

impl Held {
    /// Holds a VMID, unless another call does.
    fn take(server: usize, vmid: Vmid) -> Option<Self> {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert((server, vmid)).then(|| Self(server, vmid))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.lock().unwrap_or_else(PoisonError::into_inner).remove(&(self.0, self.1));
    }
}

/// Asks Proxmox for a free VMID, or whether this one is.
async fn ask(ctx: Ctx<'_>, vmid: Option<Vmid>) -> Result<Option<Vmid>> {
    let path = ApiPath::of(&["cluster", "nextid"])?;
    let answer = ctx.app.pve.get_fresh(&path, &Params::new().with_some("vmid", vmid)).await;
    match answer {
        Ok(free) => {
            let number = loose::as_int(&free).and_then(|n| u64::try_from(n).ok());
            let number = number.and_then(|n| Vmid::new(n).ok());
            number
                .map(Some)
                .ok_or_else(|| Error::new(Code::BadAnswer, "the next free VMID is no number"))
        }
        Err(error) if vmid.is_some() && error.code != Code::Unreachable => {
            let text = error.to_json().to_string();
            if text.contains("already exists") { Ok(None) } else { Err(error) }
        }
        Err(error) => Err(error),
    }
}

/// Whether this server may change a guest of that number.
fn allowed(ctx: Ctx<'_>, vmid: Vmid) -> bool {
    let config = &ctx.app.config;
    config.allowed_vmids.as_ref().is_none_or(|set| set.contains(vmid))
        && !config.denied_vmids.contains(vmid)
}

/// The first of the VMIDs that may be used at or after one.
fn first_allowed(ctx: Ctx<'_>, from: u32) -> Option<Vmid> {
    let within = |n: &u32| Vmid::new(u64::from(*n)).is_ok_and(|vmid| allowed(ctx, vmid));
    let config = &ctx.app.config;
    let found = match &config.allowed_vmids {
        None => (from..=Vmid::MAX).find(within),
        Some(set) => set.at_least(from).find(within),
    };
    found.and_then(|n| Vmid::new(u64::from(n)).ok())
}

/// A free VMID that may be used and is not `not`.
async fn next(ctx: Ctx<'_>, not: Option<Vmid>) -> Result<Held> {
    let server = Arc::as_ptr(ctx.app) as usize;
    let proposed = ask(ctx, None).await?.map_or(Vmid::MIN, Vmid::get);
    // A list of allowed VMIDs may lie below what Proxmox proposes.
    let mut from = if ctx.app.config.allowed_vmids.is_some() { Vmid::MIN } else { proposed };
    for _ in 0..TRIES {
        let Some(candidate) = first_allowed(ctx, from) else { break };
        from = candidate.get().saturating_add(1);
        if Some(candidate) == not {
            continue;
        }
        let Some(held) = Held::take(server, candidate) else { continue };
        if candidate.get() == proposed || ask(ctx, Some(candidate)).await?.is_some() {
            return Ok(held);
        }
    }
    Err(Error::new(Code::Conflict, "no free VMID was found")
        .hint("give one with `vmid` or `newid`; PROXMOX_ALLOWED_VMIDS limits which may be used"))
}

/// Whether an error says that the VMID was taken meanwhile.
fn is_taken(error: &Error, vmid: Vmid) -> bool {
    let text = error.to_json().to_string();
    matches!(error.code, Code::Conflict | Code::ApiError | Code::TaskFailed)
        && text.contains("already exists")
        && [
            "config file already exists".to_owned(),
            format!("VM {vmid} already exists"),
            format!("CT {vmid} already exists"),
        ]
        .iter()
        .any(|phrase| text.contains(phrase))
}

/// Creates something under a VMID. Where the caller named none and somebody
/// else took the one that was free, another is tried, once.
///
/// # Errors
/// What `create` answers.
pub async fn with_new_id<T, F>(
    ctx: Ctx<'_>,
    id: NewId,
    create: impl Fn(Vmid) -> F,
) -> Result<(Vmid, T)>
where
    F: Future<Output = Result<T>>,
{
    if let NewId::Exactly(vmid) = id {
        return create(vmid).await.map(|made| (vmid, made));
    }
    let first = next(ctx, None).await?;
    match create(first.1).await {
        Ok(made) => Ok((first.1, made)),
        Err(error) if is_taken(&error, first.1) => {
            let second = next(ctx, Some(first.1)).await?;
            create(second.1).await.map(|made| (second.1, made))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_taken_vmid_is_taken() {
        let vmid = Vmid::new(110).unwrap();
        for (code, message, taken) in [
            (Code::Conflict, "unable to create VM 110 - VM 110 already exists on node 'pve'", true),
            (Code::Conflict, "unable to create VM 110: config file already exists", true),
            (Code::Conflict, "CT 110 already exists on node 'pve'", true),
            (Code::TaskFailed, "unable to create VM 110: config file already exists", true),
            (Code::Conflict, "VM 111 already exists on node 'pve'", false),
            (Code::TaskFailed, "volume 'vm-110-disk-0' already exists", false),
            (Code::OutcomeUnknown, "VM 110 already exists on node 'pve'", false),
            (Code::Forbidden, "Permission check failed", false),
        ] {
            assert_eq!(is_taken(&Error::new(code, message), vmid), taken, "{message}");
        }
    }

    #[test]
    fn a_vmid_is_held_once_and_let_go() {
        let vmid = Vmid::new(999).unwrap();
        let held = Held::take(1, vmid);
        assert!(held.is_some() && Held::take(1, vmid).is_none() && Held::take(2, vmid).is_some());
        drop(held);
        assert!(Held::take(1, vmid).is_some());
    }
}
