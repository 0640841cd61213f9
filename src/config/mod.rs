//! Settings: resolved once from flags, environment and the profile's defaults, in this order.
//!
//! # Layout
//!
//! - `raw`: the flags as given, strings that nobody has judged yet
//! - `resolve`: judges them; pure, so that a table of cases tests it
//! - `given`: the limits whose defaults are the profile's, also under other defaults
//! - `origin`: where each came from, and the flags that give them again
//! - `http`: what holds for serving over HTTP alone; `oauth`: whose tokens let clients in; `vault_key`: the key of the vaults
//!
//! It opens no file and creates no folder.

mod given;
mod http;
mod oauth;
mod origin;
mod primitives;
mod raw;
mod resolve;
mod value;
mod vault_key;

pub use given::GivenLimits;
pub use http::{HttpArgs, HttpSettings, Token, http};
pub use oauth::{OauthSettings, is_permitted_issuer};
pub use origin::{Origin, Resolved, Setting};
pub use primitives::{Primitives, named_group};
pub use raw::RawArgs;
pub use resolve::{
    Confirm, Profile, Settings, data_folder, database_flag, overlays, resolve, resolve_with_origins,
};
pub use vault_key::VaultKey;
