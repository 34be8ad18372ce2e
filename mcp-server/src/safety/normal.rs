//! Parameters as Proxmox will understand them, before anything looks at them.

use super::api::{API, Action, Endpoint, Kind};
use super::propstring::PropString;
use crate::{
    Error, Result,
    pve::{ApiPath, ParamValue, Params, params::boolean},
};

/// Evens out the parameters of a call: booleans become 1 and 0, a list of one
/// becomes that one, lists with NUL or in several parts are joined by commas,
/// and what repeats a variable of the path is left out.
///
/// # Errors
/// `invalid_argument` for what Proxmox could read in two ways, or not at all: a
/// parameter that contradicts the path, a bad boolean, several values where one
/// stands, a property string with a key twice, an empty list of guests.
pub fn normalise(
    path: &ApiPath,
    endpoint: &Endpoint,
    action: &Action,
    given: &Params,
) -> Result<Params> {
    let mut params = Params::new();
    for (name, value) in given.iter() {
        if let Some(in_path) = endpoint.variable(name, path) {
            if value.values().iter().any(|v| v != in_path) {
                return Err(Error::argument(format!(
                    "the parameter {name} contradicts the path, which says {in_path:?}"
                ))
                .hint("leave the parameter out: the path decides"));
            }
            continue;
        }
        let value = match action.kind(name) {
            Some(kind) => one(name, value, kind)?,
            None => value.clone(),
        };
        if name == "vms" && value.members().next().is_none() {
            return Err(Error::argument("the list vms is empty")
                .hint("an empty list would mean every guest; name the guests, or leave vms out to mean all"));
        }
        params.set(name, value);
    }
    Ok(params)
}

/// One parameter of a known kind.
fn one(name: &str, value: &ParamValue, kind: Kind) -> Result<ParamValue> {
    match kind {
        Kind::Array(format) => {
            for item in value.values() {
                clean(name, item)?;
                check_property(name, item, format)?;
            }
            Ok(ParamValue::Many(value.values().to_vec()))
        }
        Kind::List => {
            let joined = match value {
                ParamValue::One(text) if !text.contains('\0') => text.clone(),
                _ => value.members().collect::<Vec<_>>().join(","),
            };
            clean(name, &joined)?;
            Ok(ParamValue::One(joined))
        }
        Kind::Boolean => {
            let text = single(name, value)?;
            match boolean(text) {
                Some(on) => Ok(ParamValue::One(u8::from(on).to_string())),
                None => {
                    Err(Error::argument(format!("the parameter {name} is not a boolean: {text:?}"))
                        .hint("1, on, yes, true and 0, off, no, false are, in any case"))
                }
            }
        }
        Kind::Integer | Kind::Number | Kind::Text => {
            let text = single(name, value)?;
            clean(name, text)?;
            Ok(ParamValue::One(text.to_owned()))
        }
        Kind::Property(format) => {
            let text = single(name, value)?;
            check_property(name, text, Some(format))?;
            Ok(ParamValue::One(text.to_owned()))
        }
    }
}

/// The value of a parameter that takes one; an array of one is that.
fn single<'a>(name: &str, value: &'a ParamValue) -> Result<&'a str> {
    match value.values() {
        [text] => Ok(text),
        values => Err(Error::argument(format!(
            "the parameter {name} takes one value, not {}",
            values.len()
        ))),
    }
}

/// Text without control characters, but for line ends and tabs.
fn clean(name: &str, text: &str) -> Result<()> {
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err(Error::argument(format!("the parameter {name} has a control character")));
    }
    Ok(())
}

fn check_property(name: &str, text: &str, format: Option<usize>) -> Result<()> {
    let Some(format) = format.and_then(|number| API.format(number)) else { return Ok(()) };
    PropString::parse(format, text).map(|_| ()).map_err(|why| {
        Error::argument(format!("the parameter {name} cannot be read: {why}"))
            .hint("options of this kind look like local-lvm:8,iothread=1: keys and values parted by commas, each key once")
    })
}
