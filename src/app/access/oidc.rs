//! Login at another provider, by OpenID Connect: code flow with PKCE, state and nonce. The browser
//! holds a secret from which all three are derived; its digest is stored here, valid for one return
//! within ten minutes.

mod way;

use crate::app::access::login::{Entered, Stranger};
use crate::app::access::{Porter, find_user, grants_document, merge_grants, record, secret};
use crate::config::Oidc;
use crate::domain::access::Grant;
use crate::domain::access::user::UserName;
use crate::store::user::{GrantOrigin, NewUser, User};
use crate::store::{self, Tx};
use anyhow::{Context as _, Result, anyhow};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value, json};

/// Why a returning login is refused; the message is for the audit log and not for the client.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotProved(pub String);

/// A login that starts at the other provider.
pub struct Leaving {
    /// The secret for the browser's cookie.
    pub secret: SecretString,
    /// The URL to redirect to.
    pub to: String,
}

/// The parameters of a returning login.
pub struct Returning {
    /// The secret from the cookie.
    pub secret: Option<SecretString>,
    /// The state parameter that the provider returned.
    pub state: Option<String>,
    /// The authorization code.
    pub code: Option<SecretString>,
    /// The issuer, if the provider sent one.
    pub issuer: Option<String>,
    /// The error that the provider returned instead.
    pub error: Option<String>,
}

impl Porter {
    /// Starts a login at the other provider; `back` is the URL that it returns to.
    pub async fn oidc_leave(&self, oidc: &Oidc, back: &str) -> Result<Leaving> {
        let secret = secret::fresh()?;
        let mut tx = self.db.begin().await?;
        let digest = secret::digest(secret.expose_secret());
        let has_room = store::oidc_login::add_login(&mut tx, &digest, self.clock.now()).await?;
        tx.commit().await?;
        anyhow::ensure!(has_room, NotProved("too many are on their way".to_owned()));
        let to = way::leave(oidc, back, &secret).await?;
        Ok(Leaving { secret, to })
    }

    /// Completes a login that returns from the other provider; a refusal is recorded with its
    /// reason.
    pub async fn oidc_return(
        &self,
        oidc: &Oidc,
        back: &str,
        returning: Returning,
        from: &Stranger,
    ) -> Result<Entered> {
        let entered = self.oidc_enter(oidc, back, returning, from).await;
        if let Err(error) = &entered
            && let Some(NotProved(why)) = error.downcast_ref()
        {
            self.refuse("(unknown)", "oidc", why, from).await?;
        }
        entered
    }

    async fn oidc_enter(
        &self,
        oidc: &Oidc,
        back: &str,
        returning: Returning,
        from: &Stranger,
    ) -> Result<Entered> {
        let no = |why: &str| anyhow!(NotProved(why.to_owned()));
        let secret = returning.secret.ok_or_else(|| no("the browser kept nothing"))?;
        let mut tx = self.db.begin().await?;
        let digest = secret::digest(secret.expose_secret());
        let is_known = store::oidc_login::take_login(&mut tx, &digest, self.clock.now()).await?;
        tx.commit().await?;
        if !is_known {
            return Err(no("nobody left for there, or too long ago"));
        }
        let state = returning.state.unwrap_or_default();
        if !secret::are_equal(&state, &way::state(&secret)) {
            return Err(no("the state is another"));
        }
        if returning.issuer.is_some_and(|issuer| issuer != oidc.issuer) {
            return Err(no("the answer is another provider's"));
        }
        if let Some(error) = returning.error {
            let error: String = error.chars().filter(|c| !c.is_control()).take(100).collect();
            return Err(no(&format!("the provider says {error}")));
        }
        let code = returning.code.ok_or_else(|| no("the answer has no code"))?;
        let claims = way::claims(oidc, back, &secret, code, self.clock.now()).await?;
        self.oidc_admit(oidc, &claims, from).await
    }

    /// Logs in the user that the claims name.
    async fn oidc_admit(
        &self,
        oidc: &Oidc,
        claims: &Map<String, Value>,
        from: &Stranger,
    ) -> Result<Entered> {
        let text = |claim: &str| claims.get(claim).and_then(Value::as_str);
        let subject = text("sub").context("a verified token has a subject")?;
        let name = text(&oidc.user_claim)
            .ok_or_else(|| NotProved(format!("the token has no claim {}", oidc.user_claim)))?;
        let is_verified = claims.get("email_verified").and_then(Value::as_bool) == Some(true);
        if oidc.user_claim == "email" && !is_verified {
            return Err(NotProved("the provider has not verified the e-mail address".into()).into());
        }
        let name = UserName::parse(name).map_err(|e| NotProved(e.to_string()))?;
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        let user = match store::user::by_subject(&mut tx, &oidc.issuer, subject).await? {
            Some(user) => user,
            None => {
                let shown = text("name").unwrap_or(name.as_str());
                self.oidc_first(&mut tx, oidc, &name, shown, subject, from).await?
            }
        };
        if !user.is_active {
            return Err(NotProved(format!("user {} is disabled", user.name)).into());
        }
        let wanted = granted(oidc, claims)?;
        let before = store::user::claimed(&mut tx, user.id).await?;
        if wanted != before {
            store::user::set_grants(&mut tx, user.id, GrantOrigin::Claim, &wanted, now).await?;
            let detail = json!({
                "user": user.name, "by": "oidc",
                "before": grants_document(&before), "after": grants_document(&wanted),
            });
            let by = from.operator(user.name.as_str());
            record(&mut tx, &by, "user grant", detail, now).await?;
        }
        let entered = self.enter(&mut tx, user, "oidc", from).await?;
        tx.commit().await?;
        Ok(entered)
    }

    /// Creates the user of a first login through the provider. A user with a password is never
    /// taken over: whoever may choose a name there could become any user here.
    async fn oidc_first(
        &self,
        tx: &mut Tx,
        oidc: &Oidc,
        name: &UserName,
        shown: &str,
        subject: &str,
        from: &Stranger,
    ) -> Result<User> {
        let now = self.clock.now();
        if let Some(user) = store::user::by_name(tx, name).await? {
            if user.password.is_some() || user.oidc.is_some() {
                let why = format!("user {name} is somebody else here");
                return Err(NotProved(why).into());
            }
            store::user::set_subject(tx, user.id, &oidc.issuer, subject).await?;
            return Ok(user);
        }
        if !oidc.auto_create {
            return Err(NotProved("no such user, and http.oidc.auto_create is off".into()).into());
        }
        let shown: String = shown.chars().filter(|c| !c.is_control()).take(200).collect();
        let new = NewUser {
            name,
            display_name: &shown,
            lang: None,
            password: None,
            until: None,
            oidc: Some((&oidc.issuer, subject)),
        };
        store::user::add_user(tx, &new, now).await?;
        let by = from.operator(name.as_str());
        record(tx, &by, "user add", json!({ "user": name, "by": "oidc" }), now).await?;
        find_user(tx, name).await
    }
}

/// The grants from the claims, in the order of the mapping table.
fn granted(oidc: &Oidc, claims: &Map<String, Value>) -> Result<Vec<Grant>> {
    let claimed_groups: Vec<&str> = match claims.get(&oidc.groups_claim) {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => Vec::new(),
    };
    Ok(merge_grants(oidc.grants()?, |claim| claimed_groups.contains(&claim)))
}
