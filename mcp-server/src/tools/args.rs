//! Arguments that many tools share.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    pve::{NodeName, Vmid},
    render::Page,
};

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct None {}

/// One guest.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct OneGuest {
    pub vmid: Vmid,
}

/// One node, which may be left out where there is only one.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct MaybeNode {
    pub node: Option<NodeName>,
}

/// Which part of a list.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Paged {
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: Option<usize>,
    #[schemars(range(min = 0))]
    pub offset: Option<usize>,
}

impl Paged {
    /// As a page of a table.
    pub fn page(&self) -> Page {
        Page::new(self.limit, self.offset)
    }
}

/// A span of time series.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Timeframe {
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl Timeframe {
    /// As Proxmox names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Timeframe::Hour => "hour",
            Timeframe::Day => "day",
            Timeframe::Week => "week",
            Timeframe::Month => "month",
            Timeframe::Year => "year",
        }
    }
}
