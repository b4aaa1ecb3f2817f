// SPDX-License-Identifier: Apache-2.0
//! Bodies of requests, by their media type.

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Request, header};
use serde_json::Value;

use super::protobuf;
use crate::failure::Failure;
use crate::write::Patch;

/// The real server's limit, in bytes.
const LIMIT: usize = 3 * 1024 * 1024;

const JSON: &str = "application/json";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// Server-side apply; JSON is YAML too.
pub const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// What came with a request.
pub struct Received {
    media: String,
    bytes: Bytes,
}

/// Reads the body of a request.
///
/// # Errors
/// 413 if it is longer than 3 MiB.
pub async fn read(request: Request<Body>) -> Result<Received, Failure> {
    let media = request.headers().get(header::CONTENT_TYPE);
    let media = media.and_then(|value| value.to_str().ok()).unwrap_or(JSON);
    let media = media
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned();
    let bytes = to_bytes(request.into_body(), LIMIT).await;
    let bytes = bytes.map_err(|_| Failure::too_large())?;
    Ok(Received { media, bytes })
}

impl Received {
    /// The object of a POST or PUT.
    ///
    /// # Errors
    /// 400 if it cannot be read, 415 for a format that is not read here.
    pub fn object(&self) -> Result<Value, Failure> {
        match self.media.as_str() {
            JSON | "" | "*/*" => self.json(),
            YAML => self.yaml(),
            PROTOBUF => protobuf::read(&self.bytes),
            _ => Err(Failure::unsupported_media_type()),
        }
    }

    /// The options of a DELETE; null for none.
    ///
    /// # Errors
    /// As [`Self::object`].
    pub fn options(&self) -> Result<Value, Failure> {
        match self.bytes.is_empty() {
            true => Ok(Value::Null),
            false => self.object(),
        }
    }

    /// The body of a PATCH.
    ///
    /// # Errors
    /// As [`Self::object`].
    pub fn patch(&self) -> Result<Patch, Failure> {
        match self.media.as_str() {
            JSON_PATCH => Ok(Patch::Json(self.json()?)),
            MERGE_PATCH => Ok(Patch::Merge(self.json()?)),
            STRATEGIC_PATCH => Ok(Patch::Strategic(self.json()?)),
            APPLY_PATCH => Ok(Patch::Apply(self.yaml()?)),
            _ => Err(Failure::unsupported_media_type()),
        }
    }

    fn yaml(&self) -> Result<Value, Failure> {
        if let Ok(value) = serde_json::from_slice(&self.bytes) {
            return Ok(value);
        }
        serde_saphyr::from_slice(&self.bytes)
            .map_err(|error| Failure::bad_request(format!("error decoding YAML: {error}")))
    }

    fn json(&self) -> Result<Value, Failure> {
        serde_json::from_slice(&self.bytes)
            .map_err(|error| Failure::bad_request(format!("the body is no JSON: {error}")))
    }
}
