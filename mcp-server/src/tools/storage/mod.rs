//! The group `storage`: storage definitions, volumes, downloads.

mod definition;
mod download;
pub(super) mod place;
mod upload;
mod volume;

use super::registry::*;

/// The tools of this group, in the order in which they are listed.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool!(Storage Write definition::set, definition::Set, "pve_storage_set", "Set storage",
            "Makes or updates a storage definition.", idempotent),
        tool!(Storage Write definition::delete, definition::Delete, "pve_storage_delete", "Delete storage",
            "Deletes a storage definition; what is on the storage stays.", destructive, idempotent),
        tool!(Storage Write download::url, download::Url, "pve_download_url", "Download by URL",
            "Lets a node download an ISO image, container template or disk image by URL."),
        tool!(Storage Write upload::upload, upload::Args, "pve_upload", "Upload file",
            "Uploads an ISO image, container template or disk image from PROXMOX_UPLOAD_DIR, with its checksum."),
        tool!(Storage Write download::appliance, download::Appliance, "pve_appliance_download", "Download template",
            "Downloads a container template from the Proxmox appliance list."),
        tool!(Storage Write volume::delete, volume::Delete, "pve_volume_delete", "Delete volume",
            "Deletes a volume that no guest uses; for backups take pve_backup_delete.", destructive, idempotent),
        tool!(Storage Write volume::update, volume::Update, "pve_volume_update", "Update volume",
            "Sets a backup's notes or protection.", idempotent),
    ]
}
