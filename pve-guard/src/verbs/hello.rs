//! `hello`: what this guard is and what its policy allows.

use std::fs::File;
use std::io;

use crate::policy::Policy;
use crate::protocol::{Code, Hello, Refused, VERSION, VerbName};
use crate::{debian, node};

pub(super) fn run(policy: &Policy) -> Result<Hello, Refused> {
    let internal = |error: io::Error| Refused::new(Code::Internal, error.to_string());
    let own_file = File::open("/proc/self/exe").map_err(internal)?;
    Ok(Hello {
        version: env!("CARGO_PKG_VERSION").into(),
        protocols: vec![VERSION],
        sha256: node::sha256_of(own_file).map_err(internal)?,
        node: node::name().map_err(internal)?,
        policy_sha256: policy.sha256.clone(),
        verbs: VerbName::ALL
            .into_iter()
            .filter(|verb| policy.allows(*verb))
            .map(|verb| verb.as_str().to_owned())
            .collect(),
        pve_manager: debian::installed_version("pve-manager").ok().flatten(),
        kernel: node::kernel().map_err(internal)?,
        test_programs: cfg!(feature = "test-programs"),
    })
}
