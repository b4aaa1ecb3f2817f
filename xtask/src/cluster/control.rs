// SPDX-License-Identifier: Apache-2.0
//! The control plane: certificates, tokens, etcd, the API server, the controllers, the scheduler.
//! They run in the machine's own namespaces, on the addresses of the cluster's slot. Permissions
//! are the real ones: RBAC, the node authorizer and NodeRestriction.

use std::path::Path;

use super::binaries::Binaries;
use super::shell::{log, run, start, until, write};
use super::slot::Slot;
use crate::error::Error;

/// The API server's port, on the machine's address in the cluster.
pub const PORT: u16 = 6443;
/// The API server's address for pods: the first of the service addresses.
pub const SERVICE: &str = "10.96.0.1";

const SERVICES: &str = "10.96.0.0/16";
const ADMIN: &str = "admin-token";

/// The token that a node's kubelet shows.
pub fn node_token(node: &str) -> String {
    format!("{node}-token")
}

/// Starts everything that the API server needs, and the API server; waits for none of it.
///
/// # Errors
/// If a certificate cannot be made or a program not be started.
pub fn start_api(
    folder: &Path,
    slot: Slot,
    nodes: &[String],
    binaries: &Binaries,
) -> Result<(), Error> {
    certificates(folder, slot)?;
    let mut tokens = format!("{ADMIN},admin,admin,system:masters\n");
    for node in nodes {
        let token = node_token(node);
        tokens += &format!("{token},system:node:{node},{node},system:nodes\n");
    }
    write(&folder.join("tokens.csv"), &tokens)?;
    let admin = kubeconfig(slot, &authority(folder)?, ADMIN);
    write(&folder.join("admin.kubeconfig"), &admin)?;
    let store = slot.store();
    let etcd = binaries.etcd.join("etcd").display().to_string();
    let words = [
        etcd.as_str(),
        "--data-dir=etcd",
        &format!("--listen-client-urls=http://{store}:2379"),
        &format!("--advertise-client-urls=http://{store}:2379"),
        &format!("--listen-peer-urls=http://{store}:2380"),
        // Nothing in it outlives the cluster.
        "--unsafe-no-fsync",
    ];
    start(folder, "etcd", &words)?;
    start_server(folder, slot, binaries)
}

/// Starts the API server on the store that is there; it is not waited for.
///
/// # Errors
/// If it cannot be started.
pub fn start_server(folder: &Path, slot: Slot, binaries: &Binaries) -> Result<(), Error> {
    let (store, address) = (slot.store(), slot.address());
    let server = binaries.kubernetes("kube-apiserver");
    let words = [
        server.as_str(),
        &format!("--etcd-servers=http://{store}:2379"),
        &format!("--bind-address={address}"),
        &format!("--advertise-address={address}"),
        &format!("--secure-port={PORT}"),
        "--tls-cert-file=pki/server.crt",
        "--tls-private-key-file=pki/server.key",
        "--service-account-key-file=pki/accounts.pub",
        "--service-account-signing-key-file=pki/accounts.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        &format!("--service-cluster-ip-range={SERVICES}"),
        "--token-auth-file=tokens.csv",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        // Pods that look after devices need it.
        "--allow-privileged",
        // The nodes' names mean nothing to the machine's resolver.
        "--kubelet-preferred-address-types=InternalIP",
    ];
    start(folder, "kube-apiserver", &words)
}

/// Runs a program again when it ends, as a kubelet does with a control plane's pods: a scheduler ends
/// itself when it finds its cache wrong, which happens after an API server was away.
const AGAIN: [&str; 4] = ["sh", "-c", "while :; do \"$@\"; sleep 1; done", "sh"];

/// Waits for the API server, then starts the controllers and the scheduler.
///
/// # Errors
/// If the API server is not ready after a minute, or a program cannot be started.
pub fn start_controllers(folder: &Path, slot: Slot, binaries: &Binaries) -> Result<(), Error> {
    await_api(folder, binaries)?;
    let address = slot.address();
    let common = [
        "--kubeconfig=admin.kubeconfig",
        "--leader-elect=false",
        &format!("--bind-address={address}"),
    ];
    let controllers = binaries.kubernetes("kube-controller-manager");
    let mut words = AGAIN.to_vec();
    words.extend([
        controllers.as_str(),
        "--service-account-private-key-file=pki/accounts.key",
        "--root-ca-file=pki/ca.crt",
        "--use-service-account-credentials=false",
    ]);
    words.extend(common);
    start(folder, "kube-controller-manager", &words)?;
    let scheduler = binaries.kubernetes("kube-scheduler");
    let mut words = AGAIN.to_vec();
    words.push(&scheduler);
    words.extend(common);
    start(folder, "kube-scheduler", &words)
}

/// Waits until the API server is ready.
///
/// # Errors
/// If it is not after a minute.
pub fn await_api(folder: &Path, binaries: &Binaries) -> Result<(), Error> {
    let kubectl = binaries.kubernetes("kubectl");
    let access = folder.join("admin.kubeconfig");
    let ready = [
        kubectl.as_str(),
        &format!("--kubeconfig={}", access.display()),
        "--request-timeout=5s",
        "get",
        "--raw=/readyz",
    ];
    let log = log(folder, "kube-apiserver");
    until(&format!("kube-apiserver ({})", log.display()), 60, || {
        Ok(run(10, &ready).ok().map(|_| ()))
    })
}

/// The certificate by which clients know the API server.
///
/// # Errors
/// If it cannot be read.
pub fn authority(folder: &Path) -> Result<String, Error> {
    let path = folder.join("pki/ca.crt");
    std::fs::read_to_string(&path).map_err(|source| Error::Read { path, source })
}

/// A kubeconfig for a token, with the certificate inside. JSON is YAML too.
pub fn kubeconfig(slot: Slot, authority: &str, token: &str) -> String {
    let server = format!("https://{}:{PORT}", slot.address());
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "slicewright",
            "cluster": { "server": server, "certificate-authority-data": base64(authority) },
        }],
        "users": [{ "name": "slicewright", "user": { "token": token } }],
        "contexts": [{
            "name": "slicewright",
            "context": { "cluster": "slicewright", "user": "slicewright" },
        }],
        "current-context": "slicewright",
    });
    config.to_string()
}

/// An authority, the API server's certificate, and the key that signs service accounts' tokens.
fn certificates(folder: &Path, slot: Slot) -> Result<(), Error> {
    let pki = folder.join("pki");
    let names = format!(
        "subjectAltName=IP:{},IP:{SERVICE},DNS:kubernetes.default.svc\n",
        slot.address()
    );
    write(&pki.join("server.ext"), &names)?;
    // Elliptic keys: an RSA key takes a tenth of a second and more.
    let script = "cd \"$1\"
        new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
        openssl req -x509 $new -keyout ca.key -out ca.crt -days 30 -subj /CN=slicewright-test
        openssl req $new -keyout server.key -out server.csr -subj /CN=kube-apiserver
        openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial \\
            -out server.crt -days 30 -extfile server.ext
        openssl ecparam -name prime256v1 -genkey -noout -out accounts.key
        openssl ec -in accounts.key -pubout -out accounts.pub";
    run(30, &["sh", "-ec", script, "sh", &pki.to_string_lossy()]).map(|_| ())
}

/// Text in base64, as kubeconfigs hold certificates (RFC 4648, section 4).
fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit) & 63) as usize;
            let padded = digit > chunk.len();
            encoded.push(if padded {
                '='
            } else {
                char::from(DIGITS[index])
            });
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (text, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
            ("\u{fffd}>?", "77+9Pj8="),
        ] {
            assert_eq!(base64(text), encoded);
        }
    }
}
