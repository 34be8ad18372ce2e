//! The whole estate at once.

use crate::{
    Result,
    insight::{attention::attention, overview::overview as look},
    render::Answer,
    tools::{
        Ctx,
        args::None as NoArgs,
        gather::{Depth, estate},
    },
};

/// Findings that are shown; the others are counted.
const SHOWN: usize = 15;

/// `pve_overview`
pub async fn overview(ctx: Ctx<'_>, _: NoArgs) -> Result<Answer> {
    let estate = estate(ctx, Depth::Overview).await?;
    Ok(Answer::new(look(&estate)))
}

/// `pve_needs_attention`
pub async fn needs_attention(ctx: Ctx<'_>, _: NoArgs) -> Result<Answer> {
    let estate = estate(ctx, Depth::Everything).await?;
    let found = attention(&estate, SHOWN);
    let counts = found.counts;
    let all = counts.critical + counts.warning + counts.info;
    let heading = if all == 0 && found.unknown.is_empty() {
        "nothing needs attention".to_owned()
    } else if all == 0 {
        "nothing was found, but not everything could be seen".to_owned()
    } else {
        format!("{} critical, {} warnings, {} notes", counts.critical, counts.warning, counts.info)
    };
    Ok(Answer::new(found).heading(heading))
}
