// SPDX-License-Identifier: Apache-2.0
//! The plugins before a stand-in kubelet, over real sockets in virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod lists;
mod offers;
mod pods;
mod registration;
mod stand_in;
mod vectors;
