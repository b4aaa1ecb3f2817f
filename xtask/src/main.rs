// SPDX-License-Identifier: Apache-2.0
//! Tasks of this project. So far: `codegen`.

mod codegen;

fn main() -> Result<(), String> {
    match std::env::args().nth(1).as_deref() {
        Some("codegen") => codegen::run(),
        _ => Err("usage: cargo xtask codegen".to_owned()),
    }
}
