//! Programs that change the network.

use super::{walk::Walk, words::Arg, wrappers::after_options};
use crate::safety::Flag;

impl Walk<'_> {
    pub(super) fn ip(&mut self, args: &[Arg]) {
        let changes = [
            "add", "del", "delete", "set", "flush", "change", "replace", "append", "prepend",
            "restore", "up", "down", "a", "d",
        ];
        let valued = ["-n", "-netns", "-f", "-family", "-rc", "-rcvbuf", "-l", "-loops"];
        let mut from = 0;
        while let Some(option) = args.get(from).filter(|a| a.is_option()) {
            from += if valued.contains(&option.text.as_str()) { 2 } else { 1 };
        }
        let words: Vec<&str> = args
            .get(from..)
            .unwrap_or_default()
            .iter()
            .filter(|a| !a.is_option())
            .map(|a| a.text.as_str())
            .collect();
        // `ip xfrm state flush` has two words before its verb.
        if words.first() == Some(&"xfrm")
            && words
                .iter()
                .any(|w| ["add", "update", "delete", "flush", "set", "deleteall"].contains(w))
        {
            self.found.add(Flag::ExecNetwork, "ip xfrm");
        }
        // `ip a` is `ip addr`; a verb stands behind the object.
        let verb = words.get(1).copied().unwrap_or_default();
        let abbreviated = ["add", "delete", "set", "flush", "change", "replace", "append"]
            .iter()
            .any(|full| verb.len() >= 2 && full.starts_with(verb));
        let sets_link = verb == "s" && words.first().is_some_and(|object| object.starts_with('l'));
        if sets_link
            || changes.contains(&verb)
            || abbreviated
            || args.iter().any(|a| matches!(a.text.as_str(), "-b" | "-batch"))
        {
            self.found.add(Flag::ExecNetwork, &format!("ip {}", words.join(" ")));
        }
    }

    pub(super) fn nmcli(&mut self, args: &[Arg]) {
        let changes = [
            "up",
            "down",
            "add",
            "modify",
            "mod",
            "delete",
            "del",
            "edit",
            "clone",
            "import",
            "reload",
            "load",
            "off",
            "on",
            "connect",
            "disconnect",
            "disc",
            "reapply",
            "set",
            "hotspot",
            "hostname",
            "migrate",
        ];
        let from =
            after_options(args, "fgtmc", &["fields", "get-values", "mode", "colors", "wait"]);
        if args
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take(4)
            .any(|a| changes.contains(&a.text.as_str()))
        {
            self.found.add(Flag::ExecNetwork, "nmcli changes the network");
        }
    }

    pub(super) fn fail2ban(&mut self, args: &[Arg]) {
        let verb = args.iter().find(|a| !a.is_option()).map_or("", |a| a.text.as_str());
        match verb {
            "" | "status" | "get" | "ping" | "version" | "banned" | "statistics" | "echo" => {}
            "set" | "unban" => self.found.add(Flag::ExecNetwork, "changes who is locked out"),
            _ => self.found.add(Flag::ExecServices, &format!("fail2ban-client {verb}")),
        }
    }
}
