//! URLs that let whoever has them read or write one object, until some time.
//!
//! Everything that such a URL allows stands in it, under an HMAC-SHA256 (RFC 2104) over all of it together, so that no
//! part can be changed alone. It is bound to the credential that it was made with, by name and by what makes that one
//! valid: who takes the credential back takes its URLs back. Whether the credential still holds is not judged here.

use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::Sha256;

/// The path below which signed URLs are; the primitive's id stands behind it.
pub const PATH: &str = "/s";
/// How long a URL may hold, in milliseconds: seven days.
pub const LONGEST: i64 = 7 * 86_400_000;
/// Who signs where nobody has a credential.
pub const ANYBODY: &str = "anybody";
/// Bytes of the secret.
pub const SECRET_BYTES: usize = 32;

/// What stays as it is in a query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// What may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET and HEAD.
    Get,
    /// PUT.
    Put,
}

impl Method {
    /// As HTTP has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
        }
    }
}

/// What a URL allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The primitive's id.
    pub primitive: String,
    /// The object.
    pub key: String,
    /// What may be done.
    pub method: Method,
    /// Seconds since 1970; from then on nothing.
    pub expires_at: i64,
    /// With PUT: the media type that must be sent.
    pub content_type: Option<String>,
    /// With PUT: the most bytes.
    pub max_size: Option<u64>,
    /// With PUT: nothing may stand at the key.
    pub if_none: bool,
    /// The credential that it was made with.
    pub by: String,
}

/// A grant as it came in a URL, and what it is said to be signed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Not to be believed before it was checked.
    pub grant: Grant,
    signature: Vec<u8>,
}

impl Grant {
    /// The path and the query of its URL.
    #[must_use]
    pub fn signed(&self, secret: &[u8; SECRET_BYTES], binding: &str) -> String {
        let signature = self.mac(secret, binding).map(|mac| mac.finalize().into_bytes());
        let encoded = |text: &str| utf8_percent_encode(text, PLAIN).to_string();
        let mut url = format!(
            "{PATH}/{}?key={}&method={}&expires={}&by={}",
            self.primitive,
            encoded(&self.key),
            self.method.name(),
            self.expires_at,
            encoded(&self.by),
        );
        if let Some(content_type) = &self.content_type {
            url.push_str(&format!("&content_type={}", encoded(content_type)));
        }
        if let Some(max_size) = self.max_size {
            url.push_str(&format!("&max_size={max_size}"));
        }
        if self.if_none {
            url.push_str("&if_none_match=*");
        }
        url.push_str(&format!(
            "&signature={}",
            signature.map(|bytes| crate::render::hex(&bytes)).unwrap_or_default()
        ));
        url
    }

    /// Over all fields, none of which can run into another, and over what the credential is bound to.
    fn mac(&self, secret: &[u8; SECRET_BYTES], binding: &str) -> Option<Hmac<Sha256>> {
        let fields = serde_json::json!([
            "indelible signed URL 1",
            self.primitive,
            self.key,
            self.method.name(),
            self.expires_at,
            self.content_type,
            self.max_size,
            self.if_none,
            self.by,
            binding,
        ]);
        let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
        mac.update(fields.to_string().as_bytes());
        Some(mac)
    }
}

impl Claimed {
    /// What a URL claims: the primitive from its path, the rest from its query. None where it is none of ours: something
    /// is missing, stands twice, is unknown, or is not written as it is written here.
    #[must_use]
    pub fn parse(primitive: &str, query: &str) -> Option<Self> {
        let mut grant = Grant {
            primitive: primitive.to_owned(),
            key: String::new(),
            method: Method::Get,
            expires_at: 0,
            content_type: None,
            max_size: None,
            if_none: false,
            by: String::new(),
        };
        let mut seen: Vec<String> = Vec::new();
        let mut signature = None;
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            if seen.iter().any(|one| *one == name) {
                return None;
            }
            match &*name {
                "key" => grant.key = value.into_owned(),
                "method" if value == "GET" => grant.method = Method::Get,
                "method" if value == "PUT" => grant.method = Method::Put,
                "expires" => grant.expires_at = value.parse().ok()?,
                "content_type" => grant.content_type = Some(value.into_owned()),
                "max_size" => grant.max_size = Some(value.parse().ok()?),
                "if_none_match" if value == "*" => grant.if_none = true,
                "by" => grant.by = value.into_owned(),
                "signature" => signature = Some(bytes(&value)?),
                _ => return None,
            }
            seen.push(name.into_owned());
        }
        let whole = ["key", "method", "expires", "by"].iter().all(|name| seen.iter().any(|one| one == name));
        Some(Self { grant, signature: signature.filter(|_| whole)? })
    }

    /// The grant, if it was signed with this secret for this binding. Compared in constant time.
    #[must_use]
    pub fn checked(self, secret: &[u8; SECRET_BYTES], binding: &str) -> Option<Grant> {
        self.grant.mac(secret, binding)?.verify_slice(&self.signature).ok()?;
        Some(self.grant)
    }
}

/// Bytes of lower-case hex.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let good = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let pair = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    if good { (0..hex.len()).step_by(2).map(pair).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 32] = [7; 32];

    fn grant() -> Grant {
        Grant {
            primitive: "01kb9mxv7dz8kq3h5r2t4w6y8a".to_owned(),
            key: "a/../b c&d=ž%2F".to_owned(),
            method: Method::Put,
            expires_at: 1_800_000_000,
            content_type: Some("text/plain; charset=utf-8".to_owned()),
            max_size: Some(1000),
            if_none: true,
            by: "key".to_owned(),
        }
    }

    fn read(url: &str) -> Option<Claimed> {
        let (path, query) = url.split_once('?').unwrap();
        Claimed::parse(path.strip_prefix("/s/").unwrap(), query)
    }

    #[test]
    fn a_url_comes_back_as_it_was_signed() {
        let plain =
            Grant { content_type: None, max_size: None, if_none: false, method: Method::Get, ..grant() };
        for grant in [grant(), plain] {
            let url = grant.signed(&SECRET, "binding");
            assert!(url.bytes().all(|byte| byte.is_ascii_graphic()), "{url}");
            assert_eq!(read(&url).unwrap().checked(&SECRET, "binding"), Some(grant), "{url}");
            assert_eq!(read(&url).unwrap().checked(&SECRET, "another"), None);
            assert_eq!(read(&url).unwrap().checked(&[8; 32], "binding"), None);
        }
    }

    #[test]
    fn no_field_can_be_changed_added_left_out_or_doubled() {
        let url = grant().signed(&SECRET, "");
        let (path, query) = url.split_once('?').unwrap();
        let fields: Vec<&str> = query.split('&').collect();
        assert_eq!(fields.len(), 8, "{query}");
        let holds = |path: &str, query: &str| {
            Claimed::parse(path.strip_prefix("/s/").unwrap(), query).and_then(|one| one.checked(&SECRET, ""))
        };
        assert!(holds(path, query).is_some());
        assert!(holds(&path.replace("01kb", "01kc"), query).is_none());
        for at in 0..fields.len() {
            let (name, value) = fields[at].split_once('=').unwrap();
            for other in ["", "0", "GET", "1", "2000000000", "x", &format!("{value}0"), &value.to_uppercase()]
            {
                if other == value {
                    continue;
                }
                let mut changed = fields.clone();
                let field = format!("{name}={other}");
                changed[at] = &field;
                assert!(holds(path, &changed.join("&")).is_none(), "{field}");
            }
            let mut less = fields.clone();
            less.remove(at);
            assert!(holds(path, &less.join("&")).is_none(), "without {name}");
            assert!(holds(path, &format!("{query}&{}", fields[at])).is_none(), "{name} twice");
        }
        assert!(holds(path, &format!("{query}&x=1")).is_none());
        let get =
            Grant { method: Method::Get, content_type: None, max_size: None, if_none: false, ..grant() };
        let url = get.signed(&SECRET, "");
        let (path, query) = url.split_once('?').unwrap();
        for more in ["content_type=text%2Fhtml", "max_size=1", "if_none_match=*"] {
            assert!(holds(path, &format!("{query}&{more}")).is_none(), "{more}");
        }
    }

    #[test]
    fn the_signature_is_hmac_sha_256_over_the_fields_as_json() {
        let url = grant().signed(&SECRET, "b");
        // From Python: hmac.new(bytes([7] * 32), json.dumps([...], separators=(",", ":"), ensure_ascii=False).encode(),
        // "sha256").hexdigest()
        assert!(url.ends_with(SIGNATURE), "{url}");
    }

    const SIGNATURE: &str = "6137a62ceb731f15fa9a76af7ac4b31d09cbf7e3ec1da609d3dc7da9a77cf006";
}
