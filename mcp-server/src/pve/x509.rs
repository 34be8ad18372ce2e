//! The few facts of a certificate that a person compares: who, by whom, until when.
//!
//! Trust never rests on what is read here; that is rustls's business.

use jiff::{Timestamp, civil};

/// Names and dates of a certificate; what cannot be read is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Subject, for example `OU=PVE Cluster Node, CN=pve1.example.org`.
    pub subject: Option<String>,
    /// Issuer, in the same form.
    pub issuer: Option<String>,
    /// First instant of validity.
    pub not_before: Option<Timestamp>,
    /// Last instant of validity.
    pub not_after: Option<Timestamp>,
}

/// Reads the facts of a DER certificate.
#[must_use]
pub fn facts(der: &[u8]) -> Facts {
    read(der).unwrap_or_default()
}

const SEQUENCE: u8 = 0x30;
const EXPLICIT_VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const BMP_STRING: u8 = 0x1e;

fn read(der: &[u8]) -> Option<Facts> {
    let certificate = Der(der).content_of(SEQUENCE)?;
    let mut tbs = Der(Der(certificate).content_of(SEQUENCE)?);
    if tbs.0.first() == Some(&EXPLICIT_VERSION) {
        tbs.next()?;
    }
    tbs.next()?; // serial number
    tbs.next()?; // signature algorithm
    let issuer = tbs.content_of(SEQUENCE)?;
    let mut validity = Der(tbs.content_of(SEQUENCE)?);
    let subject = tbs.content_of(SEQUENCE)?;
    Some(Facts {
        subject: name(subject),
        issuer: name(issuer),
        not_before: validity.next().and_then(time),
        not_after: validity.next().and_then(time),
    })
}

/// Tag-length-value records, one after the other.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let mut length = usize::from(first);
        if first & 0x80 != 0 {
            let octets = usize::from(first & 0x7f);
            if octets == 0 || octets > 4 {
                return None;
            }
            let (digits, behind) = rest.split_at_checked(octets)?;
            length = digits.iter().fold(0, |n, d| n << 8 | usize::from(*d));
            rest = behind;
        }
        let (content, behind) = rest.split_at_checked(length)?;
        self.0 = behind;
        Some((tag, content))
    }

    fn content_of(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }
}

/// A distinguished name as `KEY=value, …` in the order of the certificate.
fn name(der: &[u8]) -> Option<String> {
    let mut parts = Vec::new();
    let mut sets = Der(der);
    while let Some((_, set)) = sets.next() {
        let mut attributes = Der(set);
        while let Some((_, attribute)) = attributes.next() {
            let mut attribute = Der(attribute);
            let (_, oid) = attribute.next()?;
            let (tag, value) = attribute.next()?;
            parts.push(format!("{}={}", attribute_name(oid), text(tag, value)));
        }
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn attribute_name(oid: &[u8]) -> &'static str {
    match oid {
        [0x55, 0x04, 0x03] => "CN",
        [0x55, 0x04, 0x06] => "C",
        [0x55, 0x04, 0x07] => "L",
        [0x55, 0x04, 0x08] => "ST",
        [0x55, 0x04, 0x0a] => "O",
        [0x55, 0x04, 0x0b] => "OU",
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x01] => "emailAddress",
        _ => "other",
    }
}

/// Text without control characters, so that a certificate cannot write to a terminal.
fn text(tag: u8, value: &[u8]) -> String {
    let text = if tag == BMP_STRING {
        let units = value.chunks_exact(2).map(|p| match p {
            [high, low] => u16::from_be_bytes([*high, *low]),
            _ => 0,
        });
        char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect()
    } else {
        String::from_utf8_lossy(value).into_owned()
    };
    text.chars().filter(|c| !c.is_control()).take(128).collect()
}

/// UTCTime (`YYMMDDHHMMSSZ`, 1950 to 2049) and GeneralizedTime (`YYYYMMDDHHMMSSZ`).
fn time((tag, value): (u8, &[u8])) -> Option<Timestamp> {
    let text = std::str::from_utf8(value).ok()?.strip_suffix('Z')?;
    let full = match tag {
        UTC_TIME if text.get(..1)? < "5" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        _ => text.to_owned(),
    };
    let parsed = civil::DateTime::strptime("%Y%m%d%H%M%S", full).ok()?;
    jiff::tz::TimeZone::UTC.to_timestamp(parsed).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate() -> Vec<u8> {
        let mut params = rcgen::CertificateParams::new(vec!["pve1.example.org".into()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "Proxmox \u{1b}[31mVE");
        params.distinguished_name.push(rcgen::DnType::CommonName, "pve1.example.org");
        params.not_before = rcgen::date_time_ymd(2024, 2, 29);
        params.not_after = rcgen::date_time_ymd(2051, 12, 31);
        let key = rcgen::KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn reads_names_and_both_forms_of_time() {
        let facts = facts(&certificate());
        assert_eq!(facts.subject.as_deref(), Some("O=Proxmox [31mVE, CN=pve1.example.org"));
        assert_eq!(facts.issuer, facts.subject);
        assert_eq!(facts.not_before.unwrap().to_string(), "2024-02-29T00:00:00Z");
        assert_eq!(facts.not_after.unwrap().to_string(), "2051-12-31T00:00:00Z");
    }

    #[test]
    fn damaged_input_is_nothing_and_never_a_panic() {
        let whole = certificate();
        for cut in 0..whole.len() {
            let _ = facts(&whole[..cut]);
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            let _ = facts(&damaged);
        }
        assert_eq!(facts(b"\x30\x84\xff\xff\xff\xff"), Facts::default());
    }
}
