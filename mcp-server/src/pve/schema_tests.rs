use std::io::Read as _;

use super::*;

const SMALL: &str = r#"const apiSchema = [
   {
      "children": [
         {"path": "/nodes/{node}", "text": "{node}", "leaf": 0, "children": [
            {"path": "/nodes/{node}/qemu", "text": "qemu", "leaf": 0, "info": {
               "GET": {"method": "GET", "name": "vmlist", "description": "List.", "allowtoken": 1,
                  "parameters": {"additionalProperties": 0},
                  "permissions": {"user": "all", "description": "Only guests\n  with VM.Audit."},
                  "returns": {"type": "array", "items": {"type": "object", "properties": {"vmid": {}, "name": {}}}}},
               "POST": {"method": "POST", "name": "create", "description": "Create.", "allowtoken": "0",
                  "parameters": {"properties": {
                     "vmid": {"type": "integer", "minimum": 100, "maximum": "999999999"},
                     "bios": {"type": "string", "enum": ["seabios", "ovmf"], "default": "seabios", "optional": "1", "typetext": "<enum>"},
                     "cpulimit": {"type": "number", "default": 0.5, "minimum": 0.1, "optional": 1},
                     "net[n]": {"type": "string", "optional": 1, "typetext": "[model=]<enum> [,bridge=<bridge>]", "format": {"model": {}}}}},
                  "permissions": {"check": ["or", ["perm", "/vms/{vmid}", ["VM.Allocate"]], ["perm", "/pool/{pool}", ["A", "B"], "any", 1]]},
                  "returns": {"type": "string"}}},
             "children": [{"path": "/nodes/{node}/qemu/{vmid}", "text": "{vmid}", "leaf": 1, "info": {
               "DELETE": {"method": "DELETE", "returns": {"type": "null"}}}}]},
            {"path": "/nodes/{node}/storage", "text": "storage", "children": [
               {"path": "/nodes/{node}/storage/{volume}", "text": "{volume}", "leaf": 1, "info": {"GET": {}}}]}
         ]}],
      "path": "/nodes", "text": "nodes", "leaf": 0,
      "info": {"GET": {"method": "GET"}}
   }
]
;

let more = [1, 2];
"#;

#[test]
fn finds_paths_with_variables_or_values() {
    let schema = Schema::parse(SMALL).unwrap();
    let cases = [
        ("/nodes", Some("/nodes")),
        ("nodes/", Some("/nodes")),
        ("/nodes/pve1/qemu/100", Some("/nodes/{node}/qemu/{vmid}")),
        ("/nodes/{node}/qemu/{vmid}", Some("/nodes/{node}/qemu/{vmid}")),
        ("/nodes/pve1/storage/local:iso/a.iso", Some("/nodes/{node}/storage/{volume}")),
        ("/nodes/pve1/qemu/100/config", None),
        ("/cluster", None),
        ("/", None),
    ];
    for (path, found) in cases {
        assert_eq!(schema.find(path).map(Node::path), found, "{path}");
    }
}

#[test]
fn lists_to_a_depth() {
    let schema = Schema::parse(SMALL).unwrap();
    let paths = |path: &str, depth| -> Vec<String> {
        schema.list(path, depth).unwrap().iter().map(|l| l.path.to_string()).collect()
    };
    assert_eq!(paths("/", 1), ["/nodes"]);
    assert_eq!(paths("/", 2), ["/nodes", "/nodes/{node}"]);
    assert_eq!(paths("/nodes/pve1", 1), ["/nodes/{node}/qemu", "/nodes/{node}/storage"]);
    let qemu = &schema.list("/nodes/pve1", 1).unwrap()[0];
    assert_eq!((qemu.methods.as_slice(), qemu.children), (&[Method::Get, Method::Post][..], 1));
    assert_eq!(schema.list("/nope", 1).unwrap_err().code, Code::NotFound);
}

#[test]
fn tells_a_method_compactly() {
    let schema = Schema::parse(SMALL).unwrap();
    let (node, post) = schema.method("/nodes/pve1/qemu", Method::Post).unwrap();
    assert_eq!(node.path(), "/nodes/{node}/qemu");
    assert_eq!(
        post.to_json(),
        json!({
            "description": "Create.",
            "parameters": {
                "bios": {"type": "string", "optional": true, "enum": ["seabios", "ovmf"], "default": "seabios"},
                "cpulimit": {"type": "number", "optional": true, "default": "0.5", "minimum": 0.1},
                "net[n]": {"type": "string", "optional": true, "typetext": "[model=]<enum> [,bridge=<bridge>]"},
                "vmid": {"type": "integer", "minimum": 100, "maximum": 999_999_999},
            },
            "permissions": "(VM.Allocate on /vms/{vmid} or A or B on /pool/{pool})",
            "returns": "string",
            "allowtoken": false,
        })
    );
    let (_, get) = schema.method("/nodes/pve1/qemu", Method::Get).unwrap();
    assert_eq!(&*get.permissions, "any user; Only guests with VM.Audit.");
    assert_eq!(&*get.returns, "array of {name, vmid}");
    let (_, delete) = schema.method("/nodes/pve1/qemu/100", Method::Delete).unwrap();
    assert_eq!(&*delete.permissions, "root@pam only");
    let error = schema.method("/nodes/pve1/qemu", Method::Put).unwrap_err();
    assert_eq!((error.code, error.hint.contains("GET, POST")), (Code::NotFound, true));
}

#[test]
fn refuses_what_is_not_the_file() {
    let cases = [
        "",
        "<html><body>login</body></html>",
        "[]",
        "const apiSchema = ",
        "const apiSchema = {\"path\": 1};",
        "const apiSchema = [{\"path\": \"/nodes\"}",
        "const apiSchema = [{\"path\": \"/nodes\"}] + [];",
        "const apiSchema = [{\"text\": \"nodes\"}];",
        "const apiSchema = [{path: '/nodes'}];",
    ];
    for text in cases {
        assert_eq!(Schema::parse(text).unwrap_err().code, Code::BadAnswer, "{text}");
    }
    assert!(Schema::parse("\u{feff}const apiSchema = [];").is_ok());
}

/// The whole tree of a real node, where the reference material is at hand.
#[test]
fn reads_the_tree_of_a_real_node() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/recordings");
    let folder = std::env::var("PVE_RECORDINGS").unwrap_or_else(|_| folder.to_owned());
    let file = std::path::Path::new(&folder).join("../api/apidoc-shape.js.gz");
    let Ok(packed) = std::fs::read(&file) else {
        println!("skipped: no {}", file.display());
        return;
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
    let schema = Schema::parse(&text).unwrap();
    let all = schema.list("/", 99).unwrap();
    assert_eq!(all.len(), 443);
    assert_eq!(all.iter().map(|l| l.methods.len()).sum::<usize>(), 661);
    let (node, put) = schema.method("/nodes/pve/qemu/100/config", Method::Put).unwrap();
    assert_eq!(node.path(), "/nodes/{node}/qemu/{vmid}/config");
    assert!(put.parameters.contains_key("net[n]") && put.parameters.contains_key("digest"));
    let (_, content) =
        schema.method("/nodes/pve/storage/local/content/local:iso/a.iso", Method::Get).unwrap();
    assert!(content.parameters.contains_key("volume"));
}
