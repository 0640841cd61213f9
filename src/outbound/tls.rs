//! TLS for requests to the outside: one provider of cryptography, named here and nowhere else, and the certificates
//! that the system trusts.

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use std::sync::{Arc, OnceLock};

/// Read once: it takes some milliseconds.
static TRUSTING: OnceLock<ClientConfig> = OnceLock::new();

fn provider() -> Arc<CryptoProvider> {
    Arc::new(default_provider())
}

/// A configuration that trusts whom the system trusts.
///
/// # Errors
/// In words: the system's certificates cannot be read.
pub fn trusting_the_system() -> Result<ClientConfig, String> {
    if let Some(config) = TRUSTING.get() {
        return Ok(config.clone());
    }
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(|error| error.to_string())?
        .with_no_client_auth();
    Ok(TRUSTING.get_or_init(|| config).clone())
}

/// A configuration that trusts nobody, for clients that must have one and use none.
///
/// # Errors
/// In words, as above.
pub(super) fn trusting_nobody() -> Result<ClientConfig, String> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    Ok(config)
}
