//! The estates: a made-up company, the one of the recordings, and large ones.

mod build;
mod guests;
mod history;
mod large;
mod nodes;
mod recorded;
mod storages;

use crate::state::State;

/// Which estate a simulator holds. All its times are relative to its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estate(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Sample,
    Recorded,
    Large { guests: usize, nodes: usize },
}

impl Estate {
    /// A made-up company: three nodes `pve1` to `pve3`, about 40 guests, with history.
    pub fn sample() -> Self {
        Self(Kind::Sample)
    }

    /// One node `pve` with VMs 100 to 104 and containers 200 and 201, as in the recordings.
    pub fn recorded() -> Self {
        Self(Kind::Recorded)
    }

    /// Many guests, for measuring: numbers from 100 on, spread over the nodes.
    pub fn large(guests: usize, nodes: usize) -> Self {
        Self(Kind::Large { guests, nodes: nodes.max(1) })
    }

    pub(crate) fn build(&self, now_ms: i64) -> State {
        match self.0 {
            Kind::Sample => {
                let mut state = State::new(now_ms, "pve1");
                nodes::fill(&mut state);
                storages::fill(&mut state);
                guests::fill(&mut state);
                history::fill(&mut state);
                state
            }
            Kind::Recorded => recorded::build(now_ms),
            Kind::Large { guests, nodes } => large::build(now_ms, guests, nodes),
        }
    }
}
