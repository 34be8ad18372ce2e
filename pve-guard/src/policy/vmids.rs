//! A set of VMIDs, written `100-199,250`.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

use crate::protocol::{VMID_MAX, VMID_MIN};

/// Ranges of VMIDs, both ends included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Vmids(Vec<(i64, i64)>);

impl Vmids {
    pub(crate) fn contains(&self, vmid: i64) -> bool {
        self.0.iter().any(|(low, high)| (*low..=*high).contains(&vmid))
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        text.split(',').map(|part| range(part.trim())).collect::<Result<_, _>>().map(Self)
    }
}

fn range(text: &str) -> Result<(i64, i64), String> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let (low, high) = (vmid(low.trim())?, vmid(high.trim())?);
    if low > high {
        return Err(format!("{text:?}: {low} is greater than {high}"));
    }
    Ok((low, high))
}

fn vmid(text: &str) -> Result<i64, String> {
    text.parse()
        .ok()
        .filter(|id| text.bytes().all(|b| b.is_ascii_digit()) && (VMID_MIN..=VMID_MAX).contains(id))
        .ok_or_else(|| format!("{text:?} is no VMID ({VMID_MIN} to {VMID_MAX})"))
}

impl fmt::Display for Vmids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (index, (low, high)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            if low == high {
                write!(f, "{comma}{low}")?;
            } else {
                write!(f, "{comma}{low}-{high}")?;
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Vmids {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_strictly() {
        for (text, shown) in [
            ("", "none"),
            (" ", "none"),
            ("100", "100"),
            ("100-199, 250", "100-199, 250"),
            ("100 - 999999999", "100-999999999"),
        ] {
            assert_eq!(Vmids::parse(text).unwrap().to_string(), shown, "{text:?}");
        }
        for text in ["99", "1000000000", "100-", "-100", "200-100", "100,,200", "a", "+100", "0x64"]
        {
            assert!(Vmids::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn both_ends_belong_to_a_range() {
        let ids = Vmids::parse("100-199,250").unwrap();
        for (vmid, inside) in [(100, true), (199, true), (200, false), (250, true), (99, false)] {
            assert_eq!(ids.contains(vmid), inside, "{vmid}");
        }
    }
}
