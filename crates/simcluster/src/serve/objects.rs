// SPDX-License-Identifier: Apache-2.0
//! Requests about objects: read, and written in the two halves that [`crate::write`] has.

use axum::body::Body;
use axum::http::{Request, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::answer::{self, Wanted};
use super::body::{self, Received};
use super::{ApiServer, review, text, watch};
use crate::admission::{Attempt, Phase};
use crate::convert;
use crate::failure::Failure;
use crate::request::{Form, Query, Url};
use crate::state::Ask;
use crate::table::Include;
use crate::write::{self, Deletion, Draft, Write, Written};

/// How often a write that is overtaken by another is drafted again (`GuaranteedUpdate`'s patience
/// with patches is 5 in the real server).
const ATTEMPTS: usize = 5;

impl ApiServer {
    /// Answers a request about objects.
    ///
    /// # Errors
    /// The refusal that the client gets.
    pub(super) async fn objects(
        &self,
        url: Url,
        form: Form,
        request: Request<Body>,
    ) -> Result<Response, Failure> {
        let kind = self.state().kind(&url)?;
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let mut ask = Ask {
            kind,
            namespace: url.namespace,
            name: url.name,
            subresource: url.subresource,
            method: request.method().to_string(),
            manager: manager(&query, &request),
            has_applied: text(&request, &header::CONTENT_TYPE).starts_with(body::APPLY_PATCH),
            query,
            now: (self.inner.clock)(),
        };
        ask.is_dry_run()?;
        let wanted = Wanted {
            form,
            include: Include::of(ask.query.get("includeObject")),
            now: ask.now,
        };
        if ask.method == "GET" {
            return self.read(ask, wanted);
        }
        if ask.kind.is_namespaced && ask.namespace.is_empty() {
            return Err(Failure::method_not_allowed());
        }
        let body = body::read(request).await?;
        ask.now = (self.inner.clock)();
        if ask.kind.is_review && ask.method == "POST" {
            let object = review::answer(&ask.kind, body.object()?);
            return Ok(answer::object(&ask.kind, wanted, 201, object));
        }
        if ask.method == "DELETE" && ask.name.is_empty() {
            if !ask.kind.deletes_many() {
                return Err(Failure::method_not_allowed());
            }
            let deletion = Deletion::of(&ask, &body.options()?)?;
            let objects = self.write(|state| state.delete_collection(&ask, &deletion))?;
            return Ok(answer::list(&ask.kind, wanted, objects, &json!({})));
        }
        let written = self.act(&ask, &body).await?;
        let mut response = answer::object(&ask.kind, wanted, written.code, written.object);
        answer::warn(&mut response, &written.warnings);
        Ok(response)
    }

    /// Does what the method asks for.
    async fn act(&self, ask: &Ask, body: &Received) -> Result<Written, Failure> {
        let (has_name, is_whole) = (!ask.name.is_empty(), ask.subresource.is_empty());
        match (ask.method.as_str(), has_name, is_whole) {
            ("POST", false, true) => self.change(ask, &Write::Create(body.object()?)).await,
            ("POST", true, false) => {
                if !matches!(ask.subresource.as_str(), "binding" | "eviction") {
                    return Err(not_simulated(ask));
                }
                let object = body.object()?;
                self.write(|state| match ask.subresource.as_str() {
                    "binding" => state.bind(ask, &object),
                    _ => state.evict(ask, &object),
                })
            }
            ("PUT", true, _) => self.change(ask, &Write::Update(body.object()?)).await,
            ("PATCH", true, _) => self.change(ask, &Write::Patch(body.patch()?)).await,
            ("DELETE", true, true) => {
                let deletion = Deletion::of(ask, &body.options()?)?;
                let warnings = self.admit_deletion(ask).await?;
                let mut written = self.write(|state| state.delete(ask, &deletion))?;
                written.warnings.extend(warnings);
                Ok(written)
            }
            _ => Err(Failure::method_not_allowed()),
        }
    }

    fn read(&self, ask: Ask, wanted: Wanted) -> Result<Response, Failure> {
        if ask.kind.is_review {
            return Err(Failure::method_not_allowed());
        }
        if ask.query.is("watch") {
            return watch::answer(self, ask, wanted);
        }
        if !matches!(ask.subresource.as_str(), "" | "status" | "scale") {
            return Err(not_simulated(&ask));
        }
        let state = self.state();
        if ask.name.is_empty() {
            let page = state.list(&ask)?;
            return Ok(answer::list(
                &ask.kind,
                wanted,
                page.objects,
                &page.metadata,
            ));
        }
        let object = write::shown(&ask, state.live(&ask)?);
        Ok(answer::object(&ask.kind, wanted, 200, object))
    }

    /// Drafts a write, has it admitted and keeps it; again, if another one came in between.
    async fn change(&self, ask: &Ask, write: &Write) -> Result<Written, Failure> {
        for _ in 0..ATTEMPTS {
            let draft = self.state().draft(ask, write.clone())?;
            let draft = self.admit(ask, draft).await?;
            let written = self.write(|state| state.commit(ask, draft))?;
            if let Some(written) = written {
                return Ok(written);
            }
        }
        Err(Failure::stale(&ask.kind, &ask.name))
    }

    /// A draft as the webhooks leave it.
    async fn admit(&self, ask: &Ask, mut draft: Draft) -> Result<Draft, Failure> {
        let shown = |object: &Value| convert::shown(&ask.kind, object);
        let mut attempt = Attempt {
            operation: if draft.before.is_some() {
                "UPDATE"
            } else {
                "CREATE"
            },
            object: shown(&draft.after),
            old: draft.before.as_deref().map(shown).unwrap_or_default(),
        };
        let (phase, warnings) = (Phase::Mutating, &mut draft.warnings);
        let changed = self
            .ask_webhooks(ask, phase, attempt.clone(), warnings)
            .await?;
        if changed != attempt.object {
            let before = (!attempt.old.is_null()).then_some(&attempt.old);
            attempt.object = write::settle(ask, before, changed, warnings)?;
            draft.after = convert::kept(&ask.kind, attempt.object.clone());
        }
        self.ask_webhooks(ask, Phase::Validating, attempt, warnings)
            .await?;
        Ok(draft)
    }

    /// Asks the webhooks about a deletion; their warnings.
    async fn admit_deletion(&self, ask: &Ask) -> Result<Vec<String>, Failure> {
        let old = convert::shown(&ask.kind, self.state().live(ask)?);
        let attempt = Attempt {
            operation: "DELETE",
            object: Value::Null,
            old,
        };
        let mut warnings = Vec::new();
        for phase in [Phase::Mutating, Phase::Validating] {
            self.ask_webhooks(ask, phase, attempt.clone(), &mut warnings)
                .await?;
        }
        Ok(warnings)
    }
}

/// A refusal of what a pod's node would do.
fn not_simulated(ask: &Ask) -> Failure {
    Failure::not_simulated(&format!("{}/{}", ask.kind.plural, ask.subresource))
}

/// Who writes: the parameter `fieldManager`, else the first word of the client's name.
fn manager(query: &Query, request: &Request<Body>) -> String {
    match query.get("fieldManager") {
        "" => match text(request, &header::USER_AGENT).split('/').next() {
            None | Some("") => "unknown".to_owned(),
            Some(agent) => agent.to_owned(),
        },
        manager => manager.to_owned(),
    }
}
