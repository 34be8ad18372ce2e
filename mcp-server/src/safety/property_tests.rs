//! Properties over generated input: no spelling lowers a class, the canonical
//! form is a fixed point, and what is sent is what was judged.

use proptest::{collection::vec, prelude::*, sample::subsequence};
use serde_json::Value;

use super::{
    Facts, Method, Operation,
    api::{API, Kind},
    class::classify,
    conditions::Call,
    normal::normalise,
    propstring::PropString,
};
use crate::pve::{ApiPath, ParamValue, Params, params::boolean};

/// A path with some of its characters percent-encoded, in both cases of the digits.
fn encoded(path: &str, picks: &[u8]) -> String {
    let mut out = String::new();
    for (place, byte) in path.bytes().enumerate() {
        match picks.get(place % picks.len().max(1)).copied().unwrap_or(0) % 4 {
            1 => out.push_str(&format!("%{byte:02x}")),
            2 => out.push_str(&format!("%{byte:02X}")),
            _ if byte.is_ascii() => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// A path of the API with values in place of its variables.
fn api_path() -> impl Strategy<Value = String> {
    let templates: Vec<&str> = API.endpoints().map(|e| e.template).collect();
    let value = prop_oneof![
        Just("pve1".to_owned()),
        Just("100".to_owned()),
        Just("local".to_owned()),
        Just("root@pam".to_owned()),
        Just("a-b_c.d".to_owned()),
        Just("UPID:pve1:1:2:3:x:100:a@pve!t:".to_owned()),
    ];
    (proptest::sample::select(templates), vec(value, 6)).prop_map(|(template, values)| {
        let mut values = values.into_iter().cycle();
        let filled: Vec<String> = template
            .split('/')
            .map(
                |part| if part.starts_with('{') { values.next().unwrap() } else { part.to_owned() },
            )
            .collect();
        filled.join("/")
    })
}

fn operation(method: Method, path: &str, params: Params) -> Operation {
    Operation { method, path: ApiPath::parse(path).unwrap(), params }
}

/// Class, categories and refusals of a call that nobody was asked about.
fn told(op: &Operation) -> String {
    let found = classify(op, &Facts::default());
    let categories: Vec<_> = found.categories.iter().map(|f| f.category()).collect();
    let refused = found.params.as_ref().err().map(|e| e.code.as_str());
    format!("{} {categories:?} {refused:?} {}", found.class_text(), found.may_cut_access)
}

fn any_case(text: &'static str) -> impl Strategy<Value = String> {
    vec(any::<bool>(), text.len()).prop_map(move |upper| {
        text.chars().zip(upper).map(|(c, up)| if up { c.to_ascii_uppercase() } else { c }).collect()
    })
}

fn truth(on: bool) -> impl Strategy<Value = String> {
    let words = if on { ["1", "on", "yes", "true"] } else { ["0", "off", "no", "false"] };
    proptest::sample::select(words.to_vec()).prop_flat_map(any_case)
}

/// Every method of the API with one of its boolean parameters.
fn switches() -> Vec<(Method, &'static str, &'static str)> {
    let mut out = Vec::new();
    let names = [
        "force",
        "skiplock",
        "purge",
        "delete",
        "template",
        "protection",
        "unprivileged",
        "restore",
        "stop",
        "remove",
        "all",
        "enabled",
        "disable",
        "enable",
        "restart",
        "nocheck",
        "stdout",
        "ha-managed",
        "ciupgrade",
        "allow-move",
        "protected",
        "verify-certificates",
        "macfilter",
        "ipfilter",
        "overrule-shutdown",
    ];
    for endpoint in API.endpoints() {
        for method in Method::ALL {
            let Some(action) = endpoint.action(method) else { continue };
            for name in names {
                if action.kind(name) == Some(Kind::Boolean) {
                    out.push((method, endpoint.template, name));
                }
            }
        }
    }
    out
}

/// Property strings: parameter, pairs; the first has the default key.
#[allow(clippy::type_complexity)]
const PROPERTIES: [(&str, &str, &[(&str, &str)]); 12] = [
    (
        "/nodes/n/qemu/100/config",
        "scsi0",
        &[("file", "/dev/sda"), ("iothread", "1"), ("size", "1G")],
    ),
    (
        "/nodes/n/qemu/100/config",
        "scsi0",
        &[("file", "a:vm-101-disk-0"), ("backup", "0"), ("snapshot", "1")],
    ),
    (
        "/nodes/n/qemu/100/config",
        "virtio3",
        &[("file", "a:0"), ("import-from", "a:vm-101-disk-0"), ("cache", "unsafe")],
    ),
    ("/nodes/n/qemu/100/config", "ide2", &[("file", "local:iso/x.iso"), ("media", "cdrom")]),
    ("/nodes/n/qemu/100/config", "cdrom", &[("file", "local:iso/x.iso"), ("media", "cdrom")]),
    ("/nodes/n/qemu/100/config", "usb0", &[("host", "1234:5678"), ("usb3", "1")]),
    ("/nodes/n/qemu/100/config", "rng0", &[("source", "/dev/hwrng"), ("period", "1000")]),
    ("/nodes/n/qemu/100/config", "agent", &[("enabled", "0"), ("fstrim_cloned_disks", "1")]),
    ("/nodes/n/qemu/100/config", "startup", &[("order", "1"), ("up", "4000"), ("down", "1")]),
    ("/nodes/n/lxc/200/config", "mp0", &[("volume", "/etc"), ("mp", "/x"), ("ro", "1")]),
    ("/nodes/n/lxc/200/config", "rootfs", &[("volume", "a:vm-201-disk-0"), ("replicate", "0")]),
    ("/nodes/n/lxc/200/config", "dev0", &[("path", "/dev/kvm"), ("uid", "0")]),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_path_is_canonical_or_refused(text in "\\PC{0,80}|[/.%2eEfF?#\\\\a-z0-9:@~ ]{0,60}") {
        if let Ok(path) = ApiPath::parse(&text) {
            prop_assert_eq!(&ApiPath::parse(path.as_str()).unwrap(), &path);
            prop_assert_eq!(&ApiPath::parse(&path.encoded()).unwrap(), &path);
            prop_assert!(path.as_str().starts_with('/') && !path.as_str().ends_with('/'));
            prop_assert!(path.as_str().split('/').skip(1).all(|s| !s.is_empty() && s != "." && s != ".."));
            // A URL library sends it as it stands.
            let wire = format!("/api2/json{}", path.encoded());
            let url = reqwest::Url::parse(&format!("https://pve1:8006{wire}")).unwrap();
            prop_assert_eq!(url.path(), wire);
            prop_assert_eq!((url.query(), url.fragment()), (None, None));
            let segments: Vec<&str> = path.segments().collect();
            prop_assert_eq!(&ApiPath::of(&segments).unwrap(), &path);
        }
    }

    #[test]
    fn no_encoding_of_a_path_changes_what_it_is(path in api_path(), picks in vec(any::<u8>(), 1..40), method in 0_usize..4) {
        let method = Method::ALL[method];
        let plain = operation(method, &path, Params::new());
        let other = operation(method, &encoded(&path, &picks), Params::new());
        prop_assert_eq!(&plain.path, &other.path);
        prop_assert_eq!(told(&plain), told(&other));
        let prefixed = operation(method, &format!("/api2/json{path}"), Params::new());
        prop_assert_eq!(&plain.path, &prefixed.path);
        let bare = operation(method, path.trim_start_matches('/'), Params::new());
        prop_assert_eq!(&plain.path, &bare.path);
    }

    #[test]
    fn a_refused_path_is_refused_in_every_encoding(
        path in api_path(),
        bad in proptest::sample::select(vec!["/..", "/.", "/", "/../access/users", "/a\\b", "/a?b=c", "/a#b", "/a\nb", "/a\u{0}", "//x"]),
        picks in vec(any::<u8>(), 1..40),
    ) {
        // What a volume swallows holds slashes, and nothing else of this.
        let text = format!("{path}{bad}");
        prop_assert!(ApiPath::parse(&text).is_err());
        prop_assert!(ApiPath::parse(&encoded(&text, &picks)).is_err());
    }

    #[test]
    fn no_spelling_of_a_boolean_changes_a_class(
        switch in proptest::sample::select(switches()),
        on in any::<bool>(),
        words in (truth(true), truth(false)),
        as_list in any::<bool>(),
    ) {
        let (method, template, name) = switch;
        let path = template.replace("{node}", "n").replace("{vmid}", "100").replace(['{', '}'], "");
        let word = if on { words.0 } else { words.1 };
        let plain = operation(method, &path, Params::new().with_bool(name, on));
        let mut params = Params::new();
        params.set(name, if as_list { ParamValue::Many(vec![word.clone()]) } else { ParamValue::One(word.clone()) });
        let other = operation(method, &path, params);
        prop_assert_eq!(told(&plain), told(&other), "{} {} {}={}", method.as_str(), template, name, word);
        prop_assert_eq!(classify(&plain, &Facts::default()).params, classify(&other, &Facts::default()).params);
        prop_assert_eq!(boolean(&word), Some(on));
    }

    #[test]
    fn no_spelling_of_a_list_changes_a_class(
        names in subsequence(vec!["net0", "scsi1", "unused0", "protection", "lock", "tags", "sshkeys", "boot"], 1..8).prop_shuffle(),
        parts in vec(proptest::sample::select(vec![",", ";", " ", "\t", "\u{0}", ", ", ",,"]), 8),
        path in proptest::sample::select(vec!["/nodes/n/qemu/100/config", "/nodes/n/lxc/200/config"]),
        option in proptest::sample::select(vec!["delete", "revert"]),
    ) {
        let plain = operation(Method::Put, path, Params::new().with(option, names.join(",")));
        let text: String = names.iter().zip(&parts).map(|(n, p)| format!("{n}{p}")).collect();
        let other = operation(Method::Put, path, Params::new().with(option, text));
        let array = operation(Method::Put, path, Params::new().with_many(option, &names));
        let mut sorted = names.clone();
        sorted.sort_unstable();
        let sorted = operation(Method::Put, path, Params::new().with(option, sorted.join(";")));
        prop_assert_eq!(told(&plain), told(&other));
        prop_assert_eq!(told(&plain), told(&array));
        prop_assert_eq!(told(&plain), told(&sorted));
    }

    #[test]
    fn no_spelling_of_a_property_string_changes_a_class(
        which in 0..PROPERTIES.len(),
        order in Just(vec![0_usize, 1, 2]).prop_shuffle(),
        default_key in any::<bool>(),
        alias in any::<bool>(),
        empty in any::<bool>(),
        words in (truth(true), truth(false)),
    ) {
        let (path, name, pairs) = PROPERTIES[which];
        let plain: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let mut parts = Vec::new();
        for place in order.into_iter().filter(|p| *p < pairs.len()) {
            let (key, value) = pairs[place];
            let value = match (key, value) {
                ("size" | "period" | "order" | "up" | "down" | "uid", value) => value.to_owned(),
                (_, "1") => words.0.clone(),
                (_, "0") => words.1.clone(),
                (_, value) => value.to_owned(),
            };
            let key = if alias && key == "file" { "volume" } else { key };
            parts.push(if place == 0 && default_key { value } else { format!("{key}={value}") });
            if empty {
                parts.push(String::new());
            }
        }
        let plain = operation(Method::Put, path, Params::new().with(name, plain.join(",")));
        let other = operation(Method::Put, path, Params::new().with(name, parts.join(",")));
        prop_assert_eq!(told(&plain), told(&other), "{} {:?}", name, parts);
    }

    #[test]
    fn what_is_sent_is_what_was_judged(
        path in api_path(),
        method in 0_usize..4,
        given in vec(("[a-z-]{1,12}[0-9]{0,2}", "\\PC{0,30}|[a-z0-9:=,/ ;]{0,40}"), 0..5),
    ) {
        let params = given.into_iter().fold(Params::new(), |p, (k, v)| p.with(&k, v));
        let op = operation(Method::ALL[method], &path, params);
        let found = classify(&op, &Facts::default());
        if let Ok(sent) = found.params.clone() {
            let again = Operation { params: sent.clone(), ..op.clone() };
            prop_assert_eq!(told(&op), told(&again), "the normal form is judged the same");
            let second = classify(&again, &Facts::default()).params.unwrap();
            prop_assert_eq!(sent, second, "the normal form is a fixed point");
        }
    }

    #[test]
    fn nothing_panics(text in "\\PC{0,200}", json in "\\PC{0,60}", format in 0_usize..60) {
        let _ = ApiPath::parse(&text);
        let _ = Params::from_json(&Value::String(json.clone()));
        let _ = serde_json::from_str::<Value>(&json).map(|v| Params::from_json(&v));
        if let Some(format) = API.format(format) {
            let _ = PropString::parse(format, &text);
        }
        let _ = super::volume::owners(&text);
        let _ = super::shown::quoted(&text);
    }

    #[test]
    fn every_address_of_this_machine_is_refused_in_every_spelling(
        octets in (1_u8..=255, 0_u8..=255, 0_u8..=255),
        bases in vec(0_u8..3, 4),
        parts in 1_usize..=4,
        scheme in proptest::sample::select(vec!["http://", "HTTPS://"]),
        port in proptest::option::of(1_u16..9999),
    ) {
        let all = [127, octets.0, octets.1, octets.2];
        let write = |n: u64, base: u8| match base % 3 { 0 => n.to_string(), 1 => format!("0x{n:x}"), _ => format!("0{n:o}") };
        let mut texts: Vec<String> = all[..parts - 1].iter().zip(&bases).map(|(n, b)| write(u64::from(*n), *b)).collect();
        let rest = all[parts - 1..].iter().fold(0_u64, |sum, n| sum << 8 | u64::from(*n));
        texts.push(write(rest, bases[3]));
        let port = port.map(|p| format!(":{p}")).unwrap_or_default();
        let url = format!("{scheme}{}{port}/x", texts.join("."));
        let op = operation(Method::Get, "/nodes/n/query-url-metadata", Params::new().with("url", &url));
        let never = classify(&op, &Facts::default()).never.map(|e| e.code);
        prop_assert_eq!(never, Some(crate::Code::TargetRefused), "{}", url);
    }
}

#[test]
fn normal_parameters_never_repeat_the_path() {
    let path = ApiPath::parse("/nodes/n/qemu/100/config").unwrap();
    let endpoint = API.find(&path).unwrap();
    let action = endpoint.action(Method::Put).unwrap();
    let params = Params::new().with("node", "n").with("vmid", 100).with("cores", 2);
    let sent = normalise(&path, endpoint, action, &params).unwrap();
    assert_eq!(sent.iter().map(|(n, _)| n).collect::<Vec<_>>(), ["cores"]);
    let facts = Facts::default();
    let call =
        Call { method: Method::Put, path: &path, endpoint, action, params: &sent, facts: &facts };
    assert_eq!(call.vmid().map(crate::pve::Vmid::get), Some(100));
}
