// SPDX-License-Identifier: Apache-2.0
//! The embedded API server on a port of this machine, for kubectl: `cargo run -p simcluster --example
//! serve -- 8001`. Without a port it takes a free one.

use simcluster::{ApiServer, Settings};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = match std::env::args().nth(1) {
        Some(port) => port.parse()?,
        None => 0,
    };
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    println!("A simulated Kubernetes API server, for tests and demonstrations.");
    println!(
        "NOT FOR PRODUCTION: it asks nobody who they are, and forgets everything when it ends."
    );
    println!("kubectl --server http://{address} get namespaces");
    ApiServer::new(&Settings::default()).serve(listener).await?;
    Ok(())
}
