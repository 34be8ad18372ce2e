//! Sets of VMIDs, written `100-199,250`.

use crate::{Error, Result, pve::Vmid};

/// VMIDs as sorted, non-overlapping ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VmidSet(Vec<(u32, u32)>);

impl VmidSet {
    /// Reads ids and ranges parted by commas; blanks are ignored.
    ///
    /// # Errors
    /// `config` for anything else, also for an empty member or a range that runs backwards.
    pub fn parse(text: &str) -> Result<Self> {
        let mut ranges = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let bad = || {
                Error::new(crate::Code::Config, format!("{part:?} is not a VMID or range"))
                    .hint("ids and ranges look like 100-199,250")
            };
            let from = Vmid::parse(from.trim()).map_err(|_| bad())?.get();
            let to = Vmid::parse(to.trim()).map_err(|_| bad())?.get();
            if from > to {
                return Err(bad());
            }
            ranges.push((from, to));
        }
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::new();
        for (from, to) in ranges {
            match merged.last_mut() {
                Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        Ok(Self(merged))
    }

    /// Whether a VMID is in the set.
    #[must_use]
    pub fn contains(&self, vmid: Vmid) -> bool {
        self.0.iter().any(|(from, to)| (*from..=*to).contains(&vmid.get()))
    }

    /// The ids of the set from one on, in order.
    pub fn at_least(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(move |(low, high)| (*low).max(from)..=*high)
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Display for VmidSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, (from, to)) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            if from == to {
                write!(f, "{from}")?;
            } else {
                write!(f, "{from}-{to}")?;
            }
        }
        Ok(())
    }
}
