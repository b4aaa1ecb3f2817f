// SPDX-License-Identifier: Apache-2.0
//! Answers to questions about the one who asks. Everybody may do everything here.

use serde_json::{Value, json};

use crate::kind::Kind;

/// The review with its answer.
pub fn answer(kind: &Kind, mut review: Value) -> Value {
    if !review.is_object() {
        review = json!({});
    }
    review["kind"] = json!(kind.kind);
    review["apiVersion"] = json!(kind.api_version());
    review["status"] = match kind.kind.as_str() {
        "SelfSubjectAccessReview" => json!({
            "allowed": true,
            "reason": "this simulated API server lets everybody do everything",
        }),
        _ => json!({"userInfo": {"username": "simulated", "groups": ["system:masters"]}}),
    };
    review
}
