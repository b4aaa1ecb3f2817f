// SPDX-License-Identifier: Apache-2.0
//! The kubelet's protocols as Rust, generated from `proto/` by `cargo xtask codegen`.

#[rustfmt::skip]
#[allow(missing_docs, reason = "empty structs of services have no place for a comment")]
pub mod deviceplugin;
#[rustfmt::skip]
#[allow(missing_docs, reason = "as above")]
pub mod podresources;
