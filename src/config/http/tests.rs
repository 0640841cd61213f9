//! What is resolved to what, and what is refused in which words.

use super::*;
use clap::Parser;

#[derive(Parser)]
#[command(no_binary_name = true)]
struct Line {
    #[command(flatten)]
    raw: HttpArgs,
}

fn resolved(flags: &str, env: &str) -> Result<Option<HttpSettings>, StartError> {
    let raw = Line::try_parse_from(flags.split_whitespace()).unwrap().raw;
    let variables: Vec<(&str, &str)> =
        env.split_whitespace().map(|pair| pair.split_once('=').unwrap()).collect();
    let lookup = |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| OsString::from(value))
    };
    http(&raw, lookup, false)
}

#[test]
fn it_is_served_where_and_for_whom_it_was_asked_for() {
    let token = "INDELIBLE_HTTP_TOKEN=secret-secret-16";
    // flags, environment, address, hosts, origins, token
    let rows = [
        ("--http 127.0.0.1:7777", token, "127.0.0.1:7777", "", "", "secret-secret-16"),
        ("--http localhost:0", token, "127.0.0.1:0", "", "", "secret-secret-16"),
        ("--http [::1]:7 --no-auth", "", "[::1]:7", "", "", ""),
        ("--no-auth", "INDELIBLE_HTTP=127.0.0.2:7", "127.0.0.2:7", "", "", ""),
        ("--http 127.0.0.1:7", "INDELIBLE_NO_AUTH=1 INDELIBLE_HTTP=127.0.0.1:8", "127.0.0.1:7", "", "", ""),
        (
            "--http 0.0.0.0:7 --http-allow-host A.example",
            token,
            "0.0.0.0:7",
            "a.example",
            "",
            "secret-secret-16",
        ),
        (
            "--http 127.0.0.1:7 --http-allow-host a:80 --http-allow-host [fd00::1]:7",
            "INDELIBLE_HTTP_TOKEN=secret-secret-16 INDELIBLE_HTTP_ALLOW_HOST=b",
            "127.0.0.1:7",
            "a:80 [fd00::1]:7",
            "",
            "secret-secret-16",
        ),
        (
            "--http 127.0.0.1:7",
            "INDELIBLE_HTTP_TOKEN=0123456789abcdef INDELIBLE_HTTP_ALLOW_HOST=a,,b:1, INDELIBLE_HTTP_ALLOW_ORIGIN=https://A/,http://b:8",
            "127.0.0.1:7",
            "a b:1",
            "https://a http://b:8",
            "0123456789abcdef",
        ),
        (
            "--http 127.0.0.1:7 --http-allow-host a --http-public-url https://B.example/",
            token,
            "127.0.0.1:7",
            "a b.example",
            "",
            "secret-secret-16",
        ),
        (
            "--http 127.0.0.1:7 --http-allow-origin https://a:443 --http-allow-origin http://b:80",
            token,
            "127.0.0.1:7",
            "",
            "https://a http://b",
            "secret-secret-16",
        ),
    ];
    for (flags, env, address, hosts, origins, token) in rows {
        let settings = resolved(flags, env).unwrap().expect(flags);
        let found = (settings.address.to_string(), settings.hosts.join(" "), settings.origins.join(" "));
        assert_eq!(found, (address.to_owned(), hosts.to_owned(), origins.to_owned()), "{flags} {env}");
        assert_eq!(settings.token.as_ref().map_or("", Token::reveal), token, "{flags} {env}");
        assert!(!format!("{settings:?}").contains("secret"), "a token is not shown");
    }
    assert_eq!(resolved("", token), Ok(None));
}

#[test]
fn what_is_wrong_is_one_line_that_says_what_to_do() {
    let host = "must be a name as it stands in a URL, with or without a port, as in memory.example.com";
    let origin =
        "must be a scheme, a name and, if it is not the usual one, a port, as in https://app.example.com";
    let public = "must be http or https, a name and, if it is not the usual one, a port, as in https://state.example.com";
    let address = "must be an IP address and a port, as in 127.0.0.1:7777";
    let open = "--http 127.0.0.1:7 --no-auth";
    let rows = [
        (
            "--http 127.0.0.1:7".to_owned(),
            "",
            "no token: set INDELIBLE_HTTP_TOKEN to a secret, which clients send as `Authorization: Bearer SECRET`; \
             on a loopback address --no-auth lets everybody on this machine in"
                .to_owned(),
        ),
        (
            "--http 0.0.0.0:7 --no-auth".to_owned(),
            "",
            "--no-auth is for loopback addresses, and 0.0.0.0 is none: set INDELIBLE_HTTP_TOKEN, or listen on \
             127.0.0.1"
                .to_owned(),
        ),
        (
            open.to_owned(),
            "INDELIBLE_HTTP_TOKEN=secret-secret-16",
            "--no-auth asks for no token, and INDELIBLE_HTTP_TOKEN is set: give only one of them".to_owned(),
        ),
        (
            "--http 127.0.0.1:7".to_owned(),
            "INDELIBLE_HTTP_TOKEN=žluť",
            "INDELIBLE_HTTP_TOKEN: must be letters, digits and signs of ASCII, without spaces".to_owned(),
        ),
        (
            "--http 127.0.0.1:7".to_owned(),
            "INDELIBLE_HTTP_TOKEN=0123456789abcde",
            "INDELIBLE_HTTP_TOKEN: must have at least 16 characters, so that nobody guesses it; \
             `openssl rand -hex 32` makes one"
                .to_owned(),
        ),
        ("--no-auth".to_owned(), "", "--no-auth is for --http ADDRESS:PORT; give that too".to_owned()),
        (
            "--http-allow-host a".to_owned(),
            "",
            "--http-allow-host is for --http ADDRESS:PORT; give that too".to_owned(),
        ),
        ("--http 7777".to_owned(), "", format!("--http `7777`: {address}")),
        ("--http example.com:7".to_owned(), "", format!("--http `example.com:7`: {address}")),
        ("--http 127.0.0.1:70000".to_owned(), "", format!("--http `127.0.0.1:70000`: {address}")),
        ("".to_owned(), "INDELIBLE_HTTP=x", format!("INDELIBLE_HTTP `x`: {address}")),
        (format!("{open} --http-allow-host http://a"), "", format!("--http-allow-host `http://a`: {host}")),
        (format!("{open} --http-allow-host *"), "", format!("--http-allow-host `*`: {host}")),
        (format!("{open} --http-allow-host u@a"), "", format!("--http-allow-host `u@a`: {host}")),
        (format!("{open} --http-allow-host a:x"), "", format!("--http-allow-host `a:x`: {host}")),
        (
            format!("{open} --http-public-url https://a/b"),
            "",
            format!("--http-public-url `https://a/b`: {public}"),
        ),
        (
            format!("{open} --http-public-url ftp://a"),
            "",
            format!("--http-public-url `ftp://a`: {public}"),
        ),
        (
            format!("{open} --http-public-url javascript://a"),
            "",
            format!("--http-public-url `javascript://a`: {public}"),
        ),
        (
            format!("{open} --http-public-url https://:8"),
            "",
            format!("--http-public-url `https://:8`: {public}"),
        ),
        (format!("{open} --http-allow-origin a"), "", format!("--http-allow-origin `a`: {origin}")),
        (format!("{open} --http-allow-origin null"), "", format!("--http-allow-origin `null`: {origin}")),
        (
            format!("{open} --http-allow-origin https://a/b"),
            "",
            format!("--http-allow-origin `https://a/b`: {origin}"),
        ),
        (
            format!("{open} --http-allow-origin https://*"),
            "",
            format!("--http-allow-origin `https://*`: {origin}"),
        ),
    ];
    for (flags, env, expected) in rows {
        let error = resolved(&flags, env).expect_err(&flags);
        assert_eq!((error.message, error.exit), (expected, 2), "{flags} {env}");
    }
}
