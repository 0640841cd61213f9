//! The tools, their arguments and the policies, as build.rs makes them from tools.yaml and policy.yaml.
//!
//! Nothing here is written by hand; tests/goldens/generated.rs shows the text.

include!(concat!(env!("OUT_DIR"), "/generated.rs"));
