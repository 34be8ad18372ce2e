//! The whole estate at once.

use crate::{
    Error, Result,
    render::Answer,
    tools::{Ctx, args::None as NoArgs},
};

/// `pve_overview`
pub async fn overview(_ctx: Ctx<'_>, _: NoArgs) -> Result<Answer> {
    Err(Error::internal("not connected yet"))
}

/// `pve_needs_attention`
pub async fn needs_attention(_ctx: Ctx<'_>, _: NoArgs) -> Result<Answer> {
    Err(Error::internal("not connected yet"))
}
