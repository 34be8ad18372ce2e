//! The one table of variables. `.env` of `init`, `config`, `docs/configuration.md`,
//! the loader and its suggestions are all made from it.

use std::time::Duration;

use secrecy::SecretString;

use super::{
    Approval, Mode, Pin, VmidSet, parse,
    vars::{Section, Variable},
};
use crate::{Result, safety::Class};

const SWITCH: &str = "`on`, `off` (also 1, 0, true, false, yes, no)";

/// Every variable, in the order of `.env`. A later one may rely on an earlier one.
pub static VARIABLES: &[Variable] = &[
    Variable {
        name: "PROXMOX_HOST",
        section: Section::Connection,
        default: "",
        secret: false,
        about: "The node to talk to. Several, of one cluster, are tried in this order.",
        allowed: "host, host:port, [IPv6]:port or https://host:port, parted by commas; the port is 8006 unless said",
        example: "pve1.example.com",
        apply: |d, v| parse::hosts(v).map(|x| d.config.hosts = x),
    },
    Variable {
        name: "PROXMOX_TOKEN_ID",
        section: Section::Connection,
        default: "",
        secret: false,
        about: "The API token. The whole header, `PVEAPIToken=id=secret`, is taken apart.",
        allowed: "user@realm!name",
        example: "mcp@pve!full",
        apply: |d, v| {
            d.token.id = Some(SecretString::from(v));
            Ok(())
        },
    },
    Variable {
        name: "PROXMOX_TOKEN_SECRET",
        section: Section::Connection,
        default: "",
        secret: true,
        about: "The token's secret, as Proxmox showed it once.",
        allowed: "a UUID of 36 characters",
        example: "",
        apply: |d, v| {
            d.token.secret = Some(SecretString::from(v));
            Ok(())
        },
    },
    Variable {
        name: "PROXMOX_TOKEN_SECRET_FILE",
        section: Section::Connection,
        default: "",
        secret: false,
        about: "A file that holds the secret, instead of PROXMOX_TOKEN_SECRET.",
        allowed: "a file of one line that only you can read",
        example: "/run/secrets/proxmox-token",
        apply: |d, v| {
            d.secret_file = Some((d.resolve)(v));
            Ok(())
        },
    },
    Variable {
        name: "PROXMOX_TLS_FINGERPRINT",
        section: Section::Connection,
        default: "",
        secret: false,
        about: "The certificate to trust, whoever signed it. Without this and the next two, the system's store decides. `proxmox-mcp fingerprint` shows the node's.",
        allowed: "SHA-256 fingerprints parted by commas; `host=fingerprint` binds one to a host",
        example: "pve1.example.com=AB:CD:…",
        apply: |d, v| {
            let pins = parse::members(v)?.into_iter().map(Pin::parse).collect::<Result<_>>()?;
            d.config.tls.fingerprints = pins;
            Ok(())
        },
    },
    Variable {
        name: "PROXMOX_TLS_CA_FILE",
        section: Section::Connection,
        default: "",
        secret: false,
        about: "The authority to trust; Proxmox's own is /etc/pve/pve-root-ca.pem on a node.",
        allowed: "a PEM file",
        example: "pve-root-ca.pem",
        apply: |d, v| {
            d.config.tls.ca_file = Some((d.resolve)(v));
            Ok(())
        },
    },
    Variable {
        name: "PROXMOX_TLS_INSECURE",
        section: Section::Connection,
        default: "off",
        secret: false,
        about: "Trust whatever answers, and send it the token. Only for a first try.",
        allowed: SWITCH,
        example: "",
        apply: |d, v| parse::switch(v).map(|x| d.config.tls.insecure = x),
    },
    Variable {
        name: "PROXMOX_MODE",
        section: Section::Limits,
        default: "read-only",
        secret: false,
        about: "Whether anything may be changed at all.",
        allowed: "`read-only`, `write`",
        example: "",
        apply: |d, v| {
            let words = [("read-only", Mode::ReadOnly), ("write", Mode::Write)];
            parse::word(v, &words).map(|x| d.config.mode = x)
        },
    },
    Variable {
        name: "PROXMOX_TOOLSETS",
        section: Section::Limits,
        default: "all",
        secret: false,
        about: "The tool groups that are offered; `core` always is.",
        allowed: "`all`, or some of core, guests, backup, storage, network, node, access, exec, parted by commas",
        example: "",
        apply: |d, v| parse::toolsets(v).map(|x| d.config.toolsets = x),
    },
    Variable {
        name: "PROXMOX_DEFERRED_TOOLS",
        section: Section::Limits,
        default: "off",
        secret: false,
        about: "Start with three tools, one of which finds the others.",
        allowed: SWITCH,
        example: "",
        apply: |d, v| parse::switch(v).map(|x| d.config.deferred_tools = x),
    },
    Variable {
        name: "PROXMOX_ALLOWED_VMIDS",
        section: Section::Limits,
        default: "",
        secret: false,
        about: "The only guests that may be changed. Nothing set: all.",
        allowed: "VMIDs and ranges parted by commas",
        example: "100-199,250",
        apply: |d, v| VmidSet::parse(v).map(|x| d.config.allowed_vmids = Some(x)),
    },
    Variable {
        name: "PROXMOX_DENIED_VMIDS",
        section: Section::Limits,
        default: "",
        secret: false,
        about: "Guests that are never changed, whatever else is set.",
        allowed: "VMIDs and ranges parted by commas",
        example: "900-999",
        apply: |d, v| VmidSet::parse(v).map(|x| d.config.denied_vmids = x),
    },
    Variable {
        name: "PROXMOX_READ_VMIDS",
        section: Section::Limits,
        default: "all",
        secret: false,
        about: "`allowed` hides guests outside PROXMOX_ALLOWED_VMIDS from reads too. What a change touches is named in its plan all the same.",
        allowed: "`all`, `allowed`",
        example: "",
        apply: |d, v| {
            let words = [("all", false), ("allowed", true)];
            parse::word(v, &words).map(|x| d.config.read_allowed_only = x)
        },
    },
    Variable {
        name: "PROXMOX_SELF_VMIDS",
        section: Section::Limits,
        default: "",
        secret: false,
        about: "The guest in which this server runs, where it is not found out by itself.",
        allowed: "VMIDs and ranges parted by commas",
        example: "105",
        apply: |d, v| VmidSet::parse(v).map(|x| d.config.self_vmids = x),
    },
    Variable {
        name: "PROXMOX_ALLOWED_NODES",
        section: Section::Limits,
        default: "",
        secret: false,
        about: "The only nodes that may be changed. Nothing set: all.",
        allowed: "node names parted by commas",
        example: "pve1,pve2",
        apply: |d, v| parse::nodes(v).map(|x| d.config.allowed_nodes = Some(x)),
    },
    Variable {
        name: "PROXMOX_EXTRA_PROTECTED_PATHS",
        section: Section::Limits,
        default: "",
        secret: false,
        about: "API paths whose changes are CRITICAL in addition to what they are.",
        allowed: "patterns parted by commas; `*` is one segment, `**` at the end the rest",
        example: "/nodes/*/qemu/100/**,/pools/prod",
        apply: |d, v| parse::path_patterns(v).map(|x| d.config.extra_protected = x),
    },
    Variable {
        name: "PROXMOX_CRITICAL_FILE",
        section: Section::Limits,
        default: "critical.env",
        secret: false,
        about: "The file of the flags that let CRITICAL changes through.",
        allowed: "a file",
        example: "",
        apply: |d, v| {
            d.config.critical_file = (d.resolve)(v);
            Ok(())
        },
    },
    Variable {
        name: "PROXMOX_APPROVAL",
        section: Section::Approval,
        default: "auto",
        secret: false,
        about: "Who says yes: `auto` a person where the client can ask one, else `confirm` alone; `human` a person always; `code` a one-time code; `confirm` the confirm text alone.",
        allowed: "`auto`, `human`, `code`, `confirm`",
        example: "",
        apply: |d, v| {
            let words = [
                ("auto", Approval::Auto),
                ("human", Approval::Human),
                ("code", Approval::Code),
                ("confirm", Approval::Confirm),
            ];
            parse::word(v, &words).map(|x| d.config.approval = x)
        },
    },
    Variable {
        name: "PROXMOX_APPROVAL_SCOPE",
        section: Section::Approval,
        default: "critical",
        secret: false,
        about: "The lowest class of change that needs it.",
        allowed: "`critical`, `destructive`, `write`",
        example: "",
        apply: |d, v| {
            let words = [
                ("critical", Class::Critical),
                ("destructive", Class::Destructive),
                ("write", Class::Write),
            ];
            parse::word(v, &words).map(|x| d.config.approval_scope = x)
        },
    },
    Variable {
        name: "PROXMOX_EXEC",
        section: Section::Exec,
        default: "disabled",
        secret: false,
        about: "Whether commands may run inside guests, and their files be read and written.",
        allowed: "`enabled`, `disabled`",
        example: "",
        apply: |d, v| parse::switch(v).map(|x| d.config.exec = x),
    },
    Variable {
        name: "PROXMOX_EXEC_TIMEOUT",
        section: Section::Exec,
        default: "60s",
        secret: false,
        about: "The longest a command may run unless the call asks otherwise.",
        allowed: "1 s to 1 h, such as 60, 60s or 5m",
        example: "",
        apply: |d, v| {
            let (from, to) = (Duration::from_secs(1), Duration::from_secs(3600));
            parse::duration(v, from, to).map(|x| d.config.exec_timeout = x)
        },
    },
    Variable {
        name: "PROXMOX_EXEC_MAX_OUTPUT",
        section: Section::Exec,
        default: "64KiB",
        secret: false,
        about: "The most output of a command that is kept.",
        allowed: "1 KiB to 16 MiB, such as 65536, 64KiB or 1MiB",
        example: "",
        apply: |d, v| parse::bytes(v, 1024, 16 << 20).map(|x| d.config.exec_max_output = x),
    },
    Variable {
        name: "PROXMOX_SSH_USER",
        section: Section::Ssh,
        default: "proxmox-mcp",
        secret: false,
        about: "The account on the nodes.",
        allowed: "the name of a Unix account",
        example: "",
        apply: |d, v| parse::account(v).map(|x| d.config.ssh.user = x),
    },
    Variable {
        name: "PROXMOX_SSH_PORT",
        section: Section::Ssh,
        default: "22",
        secret: false,
        about: "The port of sshd on the nodes.",
        allowed: "1 to 65535",
        example: "",
        apply: |d, v| parse::number(v, 1, u16::MAX).map(|x| d.config.ssh.port = x),
    },
    Variable {
        name: "PROXMOX_SSH_KEY",
        section: Section::Ssh,
        default: "ssh/id_ed25519",
        secret: false,
        about: "The private key; `proxmox-mcp ssh-setup` makes it.",
        allowed: "a file that only you can read",
        example: "",
        apply: |d, v| {
            d.config.ssh.key = (d.resolve)(v);
            Ok(())
        },
    },
    Variable {
        name: "PROXMOX_SSH_HOST_KEY",
        section: Section::Ssh,
        default: "",
        secret: false,
        about: "The first host's key, pinned.",
        allowed: "type and base64, as in /etc/ssh/ssh_host_ed25519_key.pub",
        example: "ssh-ed25519 AAAA…",
        apply: |d, v| parse::host_key(v).map(|x| d.config.ssh.host_key = Some(x)),
    },
    Variable {
        name: "PROXMOX_SSH_ALLOWED_IP",
        section: Section::Ssh,
        default: "",
        secret: false,
        about: "The only address from which the nodes take this key.",
        allowed: "an IP address or network",
        example: "192.0.2.10",
        apply: |d, v| parse::source_address(v).map(|x| d.config.ssh.allowed_ip = Some(x)),
    },
    Variable {
        name: "PROXMOX_SSH_NODES",
        section: Section::Ssh,
        default: "",
        secret: false,
        about: "Addresses of nodes whose SSH is elsewhere than their API.",
        allowed: "node=address or node=address:port, parted by commas",
        example: "pve1=192.0.2.11,pve2=192.0.2.12:2222",
        apply: |d, v| parse::node_addresses(v, d.config.ssh.port).map(|x| d.config.ssh.nodes = x),
    },
    Variable {
        name: "PROXMOX_AUDIT_ENABLED",
        section: Section::Audit,
        default: "on",
        secret: false,
        about: "Whether changes, refusals and errors are recorded.",
        allowed: SWITCH,
        example: "",
        apply: |d, v| parse::switch(v).map(|x| d.config.audit.enabled = x),
    },
    Variable {
        name: "PROXMOX_AUDIT_LOG",
        section: Section::Audit,
        default: "",
        secret: false,
        about: "Where. Nothing set: audit.jsonl in the state directory.",
        allowed: "a file",
        example: "/var/log/proxmox-mcp/audit.jsonl",
        apply: |d, v| {
            d.config.audit.path = (d.resolve)(v);
            Ok(())
        },
    },
    Variable {
        name: "PROXMOX_AUDIT_READS",
        section: Section::Audit,
        default: "off",
        secret: false,
        about: "Whether reads that succeed are recorded too.",
        allowed: SWITCH,
        example: "",
        apply: |d, v| parse::switch(v).map(|x| d.config.audit.reads = x),
    },
    Variable {
        name: "LOG_LEVEL",
        section: Section::Audit,
        default: "info",
        secret: false,
        about: "How much is said on standard error.",
        allowed: "`error`, `warn`, `info`, `debug`, `trace`",
        example: "",
        apply: |d, v| {
            let words = [
                ("error", tracing::Level::ERROR),
                ("warn", tracing::Level::WARN),
                ("warning", tracing::Level::WARN),
                ("info", tracing::Level::INFO),
                ("debug", tracing::Level::DEBUG),
                ("trace", tracing::Level::TRACE),
            ];
            parse::word(v, &words).map(|x| d.config.log_level = x)
        },
    },
    Variable {
        name: "PROXMOX_TIMEOUT",
        section: Section::Tuning,
        default: "15s",
        secret: false,
        about: "The longest an attempt of an API call may take; listing a storage has 40 s, writing a guest's configuration 60 s at least.",
        allowed: "0.1 s to 10 min, such as 15, 15s or 1m30s",
        example: "",
        apply: |d, v| {
            let (from, to) = (Duration::from_millis(100), Duration::from_secs(600));
            parse::duration(v, from, to).map(|x| d.config.timeout = x)
        },
    },
    Variable {
        name: "PROXMOX_MAX_RETRIES",
        section: Section::Tuning,
        default: "2",
        secret: false,
        about: "Further attempts of a read; a change is sent once.",
        allowed: "0 to 10",
        example: "",
        apply: |d, v| parse::number(v, 0, 10).map(|x| d.config.max_retries = x),
    },
    Variable {
        name: "PROXMOX_CACHE_TTL",
        section: Section::Tuning,
        default: "5s",
        secret: false,
        about: "How long lists of the estate are kept; 0 asks each time.",
        allowed: "0 to 10 min, such as 5, 5s or 500ms",
        example: "",
        apply: |d, v| {
            let (from, to) = (Duration::ZERO, Duration::from_secs(600));
            parse::duration(v, from, to).map(|x| d.config.cache_ttl = x)
        },
    },
    Variable {
        name: "PROXMOX_UPLOAD_DIR",
        section: Section::Tuning,
        default: "",
        secret: false,
        about: "The only directory from which files may be uploaded.",
        allowed: "a directory",
        example: "~/proxmox-uploads",
        apply: |d, v| {
            d.config.upload_dir = Some((d.resolve)(v));
            Ok(())
        },
    },
    Variable {
        name: "PROXMOX_HTTP_TOKEN",
        section: Section::Http,
        default: "",
        secret: true,
        about: "The bearer token of the HTTP service; not one of Proxmox's.",
        allowed: "at least 32 letters, digits and signs without blanks",
        example: "",
        apply: |d, v| {
            if v.len() < 32 || !v.bytes().all(|b| b.is_ascii_graphic()) {
                return Err(parse::bad("the bearer token is too short, or has blanks or umlauts"));
            }
            d.config.http.token = Some(SecretString::from(v));
            Ok(())
        },
    },
    Variable {
        name: "PROXMOX_HTTP_CLIENTS",
        section: Section::Http,
        default: "",
        secret: false,
        about: "A file that names several clients, each with its own limits.",
        allowed: "a file that only you can read",
        example: "http-clients",
        apply: |d, v| {
            d.config.http.clients = Some((d.resolve)(v));
            Ok(())
        },
    },
    Variable {
        name: "PROXMOX_HTTP_ALLOWED_HOSTS",
        section: Section::Http,
        default: "",
        secret: false,
        about: "Host headers that are answered beside those of loopback.",
        allowed: "names or addresses, with a port where one is used, parted by commas",
        example: "mcp.example.com",
        apply: |d, v| parse::host_headers(v).map(|x| d.config.http.allowed_hosts = x),
    },
    Variable {
        name: "PROXMOX_HTTP_ALLOWED_ORIGINS",
        section: Section::Http,
        default: "",
        secret: false,
        about: "Origin headers that are answered.",
        allowed: "scheme and host such as https://chat.example.com, parted by commas",
        example: "https://chat.example.com",
        apply: |d, v| parse::origins(v).map(|x| d.config.http.allowed_origins = x),
    },
];
