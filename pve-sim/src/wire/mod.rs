//! HTTP/1.1 and TLS by hand: the simulator must accept what pveproxy accepts,
//! refuse what it refuses, and break connections in the middle of a message,
//! which a server library would not let it do.

pub(crate) mod http;
pub(crate) mod tls;
