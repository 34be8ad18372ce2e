//! The group `access`: users, tokens, groups, roles, entries, and what they come to.

mod accounts;
mod changes;
mod permissions;
pub(super) mod secret;
mod tokens;

use super::{args, registry::*};

/// The tools of this group, in the order in which they are listed.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool!(Access Read accounts::users, accounts::Users, "pve_list_users", "List users",
            "Users with their groups and tokens."),
        tool!(Access Read accounts::tokens, accounts::Tokens, "pve_list_tokens", "List tokens",
            "API tokens of all users or one."),
        tool!(Access Read accounts::groups, args::None, "pve_list_groups", "List groups",
            "Groups with their members."),
        tool!(Access Read accounts::roles, accounts::Roles, "pve_list_roles", "List roles",
            "Roles, or the privileges of one."),
        tool!(Access Read accounts::acl, accounts::Acl, "pve_list_acl", "List ACL",
            "Access control entries by path, holder or role."),
        tool!(Access Read accounts::realms, args::None, "pve_list_realms", "List realms",
            "Realms by which users log in."),
        tool!(Access Read permissions::show, permissions::Permissions, "pve_permissions", "Permissions",
            "What a user or token may do; for `privileges` or a `call`, why not and which role would do."),
        tool!(Access Write changes::user_set, changes::UserSet, "pve_user_set", "Set user",
            "Makes or changes a user.", idempotent),
        tool!(Access Write changes::user_delete, changes::UserDelete, "pve_user_delete", "Delete user",
            "Deletes a user with its tokens and entries.", destructive),
        tool!(Access Write tokens::set, tokens::Set, "pve_token_set", "Set token",
            "Makes or changes an API token; a new secret goes into a file on the server's machine."),
        tool!(Access Write tokens::delete, tokens::Delete, "pve_token_delete", "Delete token",
            "Deletes an API token.", destructive),
        tool!(Access Write changes::group_set, changes::GroupSet, "pve_group_set", "Set group",
            "Makes or describes a group of users.", idempotent),
        tool!(Access Write changes::group_delete, changes::GroupDelete, "pve_group_delete", "Delete group",
            "Deletes a group of users with its entries.", destructive),
        tool!(Access Write changes::role_set, changes::RoleSet, "pve_role_set", "Set role",
            "Makes or changes a role.", idempotent),
        tool!(Access Write changes::role_delete, changes::RoleDelete, "pve_role_delete", "Delete role",
            "Deletes a role of your own.", destructive),
        tool!(Access Write changes::acl_set, changes::AclSet, "pve_acl_set", "Set ACL",
            "Grants or removes roles on a path.", destructive, idempotent),
    ]
}
