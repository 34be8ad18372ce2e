//! The flags of `critical.env`: one for each category of CRITICAL changes.

use std::collections::BTreeSet;

macro_rules! flags {
    ($($name:ident = $text:literal, $why:literal;)*) => {
        /// A category of CRITICAL changes; its flag is `PROXMOX_ALLOW_<NAME>`.
        /// The order is that of precedence when several apply.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Flag { $(#[doc = $why] $name,)* }

        impl Flag {
            /// Every flag, in order of precedence.
            pub const ALL: &'static [Flag] = &[$(Flag::$name,)*];

            /// The category, for example `NODE_POWER`.
            #[must_use]
            pub const fn category(self) -> &'static str {
                match self { $(Flag::$name => $text,)* }
            }

            /// The variable, for example `PROXMOX_ALLOW_NODE_POWER`.
            #[must_use]
            pub const fn variable(self) -> &'static str {
                match self { $(Flag::$name => concat!("PROXMOX_ALLOW_", $text),)* }
            }

            /// One line that says what the flag lets through.
            #[must_use]
            pub const fn explanation(self) -> &'static str {
                match self { $(Flag::$name => $why,)* }
            }
        }
    };
}

flags! {
    NodePower = "NODE_POWER", "Reboot or shut down a node.";
    NodeStopall = "NODE_STOPALL", "Stop all or many guests of a node.";
    NodeSuspendall = "NODE_SUSPENDALL", "Suspend all or many guests of a node.";
    NodeMigrateall = "NODE_MIGRATEALL", "Migrate all or many guests of a node.";
    ClusterBulkActions = "CLUSTER_BULK_ACTIONS", "Start, shut down, suspend or migrate many guests at once.";
    ClusterConfig = "CLUSTER_CONFIG", "Make or join a cluster, add or remove its nodes.";
    ClusterOptions = "CLUSTER_OPTIONS", "Datacenter options and custom CPU models.";
    NodeConfig = "NODE_CONFIG", "A node's options, time zone and subscription.";
    CriticalServices = "CRITICAL_SERVICES", "Stop or restart services that are the way in or that every guest needs.";
    Ha = "HA", "High availability: resources, groups, rules, arming.";
    NodeDisks = "NODE_DISKS", "Wipe, partition or make storage on a node's disks.";
    NodeNetwork = "NODE_NETWORK", "A node's network interfaces and applying them.";
    NodeHosts = "NODE_HOSTS", "A node's /etc/hosts.";
    NodeDns = "NODE_DNS", "A node's DNS servers.";
    NodeCertificates = "NODE_CERTIFICATES", "A node's certificates and ACME domains.";
    AptRepositories = "APT_REPOSITORIES", "A node's package repositories.";
    SdnApply = "SDN_APPLY", "Apply pending SDN changes, break SDN locks, contact SDN services.";
    ClusterFirewall = "CLUSTER_FIREWALL", "The datacenter's and virtual networks' firewall.";
    NodeFirewall = "NODE_FIREWALL", "A node's firewall.";
    Ceph = "CEPH", "Everything of Ceph.";
    StorageDefinitions = "STORAGE_DEFINITIONS", "Add, change or remove storages.";
    VolumeDelete = "VOLUME_DELETE", "Destroy disks, backups and other volumes, or let a job prune them.";
    AccessControl = "ACCESS_CONTROL", "Users, tokens, groups, roles, permissions, realms.";
    GuestDelete = "GUEST_DELETE", "Destroy a guest with its disks.";
    PrivilegedContainer = "PRIVILEGED_CONTAINER", "Make a container whose root is root on the node.";
    GuestTemplate = "GUEST_TEMPLATE", "Turn a guest into a template, which cannot be undone.";
    GuestRestoreOverwrite = "GUEST_RESTORE_OVERWRITE", "Restore a backup over an existing guest.";
    GuestCredentials = "GUEST_CREDENTIALS", "Logins or code inside a guest at its next boot, or another guest's disk.";
    GuestHostAccess = "GUEST_HOST_ACCESS", "Raw QEMU arguments, hook scripts, host devices, host paths, lxc. keys.";
    CustomProtected = "CUSTOM_PROTECTED", "Paths named in PROXMOX_EXTRA_PROTECTED_PATHS.";
    JobsAndNotifications = "JOBS_AND_NOTIFICATIONS", "Realm-sync jobs, running backups of others, notification and metric targets, ACME.";
    ClusterMapping = "CLUSTER_MAPPING", "Hardware and directory mappings.";
    ReplicationDelete = "REPLICATION_DELETE", "Remove a replication job and its replica.";
    ExecPower = "EXEC_POWER", "Guest commands that shut down or reboot.";
    ExecPackages = "EXEC_PACKAGES", "Guest commands that install or remove packages.";
    ExecDelete = "EXEC_DELETE", "Guest commands that delete files or data.";
    ExecServices = "EXEC_SERVICES", "Guest commands that start, stop or change services.";
    ExecDisks = "EXEC_DISKS", "Guest commands on disks, partitions and file systems.";
    ExecSystemFiles = "EXEC_SYSTEM_FILES", "Guest commands that write system files.";
    ExecShell = "EXEC_SHELL", "Guest commands that run code which cannot be looked into.";
    ExecNetwork = "EXEC_NETWORK", "Guest commands that change the network or firewall.";
    ExecUsers = "EXEC_USERS", "Guest commands that change users, groups and passwords.";
    NodeUpgrade = "NODE_UPGRADE", "Upgrade a node's packages.";
    NodeBootConfig = "NODE_BOOT_CONFIG", "Pin or unpin a node's kernel.";
    Unknown = "UNKNOWN", "Endpoints that this version does not know.";
}

impl Flag {
    /// The flag of a category name.
    #[must_use]
    pub fn of_category(name: &str) -> Option<Flag> {
        Flag::ALL.iter().copied().find(|f| f.category() == name)
    }

    /// The flag of a variable name.
    #[must_use]
    pub fn of_variable(name: &str) -> Option<Flag> {
        Flag::ALL.iter().copied().find(|f| f.variable() == name)
    }
}

/// The flags that are on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags(BTreeSet<Flag>);

impl Flags {
    /// Whether a value turns a flag on: `enabled 1 true yes on` in any case, with blanks
    /// around; a quoted word or one with more after it does not.
    #[must_use]
    pub fn means_on(value: &str) -> bool {
        matches!(
            value.trim_matches([' ', '\t']).to_ascii_lowercase().as_str(),
            "enabled" | "1" | "true" | "yes" | "on"
        )
    }

    /// Sets a flag from the text of its variable.
    pub fn set(&mut self, flag: Flag, value: &str) {
        if Self::means_on(value) {
            self.0.insert(flag);
        } else {
            self.0.remove(&flag);
        }
    }

    /// Whether a flag is on.
    #[must_use]
    pub fn is_on(&self, flag: Flag) -> bool {
        self.0.contains(&flag)
    }

    /// The flags that are on, in order.
    pub fn iter(&self) -> impl Iterator<Item = Flag> {
        self.0.iter().copied()
    }
}
