//! API tokens. A new secret goes into a file, never into an answer.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    accounts::{expiry, no_user},
    changes::{checked_user, entries_of, expires},
    secret::Waiting,
};
use crate::{
    Code, Error, Result,
    pve::{Params, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        across::{members, named, same, unchanged},
        change::{Asked, Submitted},
        outcome::{Did, operation, switch, told},
    },
};

/// Arguments of `pve_token_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Set {
    userid: String,
    /// As `ci` of anna@pve!ci.
    token: String,
    /// Only its own rights; on for a new one.
    privsep: Option<bool>,
    /// As 2027-01-31, or never.
    expires: Option<String>,
    comment: Option<String>,
    /// A new secret; the old one ends.
    regenerate: Option<bool>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

fn checked(token: &str) -> Result<&str> {
    let form = token.len() >= 2
        && token.starts_with(|c: char| c.is_ascii_alphabetic())
        && token.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    if form {
        return Ok(token);
    }
    Err(Error::argument(format!("argument `token` cannot be {token:?}"))
        .hint("the name after the `!`: letters, digits, `.`, `-` and `_`, a letter first")
        .with("argument", "token"))
}

fn shown(token: &Value) -> Value {
    let mut value = members(token, &["expire", "tokenid"]);
    if let Value::Object(map) = &mut value {
        map.insert(
            "privsep".into(),
            (token.get("privsep").is_none() || loose::flag(token, "privsep")).into(),
        );
        map.insert("expires".into(), expiry(token));
    }
    value
}

async fn token_now(ctx: Ctx<'_>, userid: &str, token: &str) -> Result<Option<Value>> {
    let all =
        ctx.fresh(&["access", "users", userid, "token"], Params::new()).await.map_err(|e| {
            if e.code == Code::NotFound || e.message.contains("no such user") {
                no_user(userid)
            } else {
                e
            }
        })?;
    Ok(named(&all, "tokenid", token).cloned())
}

/// `pve_token_set`
pub async fn set(ctx: Ctx<'_>, args: Set) -> Result<Answer> {
    let (userid, token) = (checked_user(&args.userid)?, checked(&args.token)?);
    let now = token_now(ctx, userid, token).await?;
    let id = format!("{userid}!{token}");
    let what = format!("token {id}");
    let did = Did::of(now.is_some(), args.must_exist, args.must_not_exist, &what)?;
    let expire = args.expires.as_deref().map(expires).transpose()?;
    let params =
        Params::new().with_some("expire", expire).with_some("comment", args.comment.as_deref());
    let params = switch(params, "privsep", args.privsep);
    let before = now.as_ref().map_or(Value::Null, shown);
    let regenerate = args.regenerate == Some(true);
    let (method, params) = match &now {
        None if regenerate => {
            return Err(Error::new(
                Code::NotFound,
                format!("there is no {what} to give a new secret to"),
            ));
        }
        None => (Method::Post, params),
        Some(now) => {
            let on = now.get("privsep").is_none() || loose::flag(now, "privsep");
            let idle = !regenerate
                && args.privsep.is_none_or(|p| p == on)
                && expire.is_none_or(|e| e == loose::int(now, "expire").unwrap_or(0))
                && args.comment.as_deref().is_none_or(|c| same(now.get("comment"), c));
            if idle {
                return Ok(unchanged(before));
            }
            (Method::Put, switch(params, "regenerate", args.regenerate.filter(|r| *r)))
        }
    };
    let secret = now.is_none() || regenerate;
    let path = ["access", "users", userid, "token", token];
    let operation = operation(method, &path, params)?;
    let dir = &ctx.app.config.dirs.config;
    let waiting = match secret && args.asked.dry_run != Some(true) {
        true => Some(Waiting::new(dir, &id)?),
        false => None,
    };
    let sent = match (ctx.submit(operation, &args.asked).await, waiting) {
        (Ok(Submitted::Sent(mut sent)), Some(waiting)) => {
            let data = std::mem::take(&mut sent.data);
            let value = loose::text(&data, "value").ok_or_else(|| {
                Error::new(
                    Code::BadAnswer,
                    format!("{what} is made, but no secret came with the answer"),
                )
            });
            match value {
                Ok(value) => {
                    let file = waiting.fill(&id, &value)?;
                    Submitted::Sent(Box::new(sent.with("secret_file", file.display().to_string())))
                }
                Err(error) => {
                    waiting.drop_it();
                    return Err(error);
                }
            }
        }
        (other, waiting) => {
            if let Some(waiting) = waiting {
                waiting.drop_it();
            }
            other?
        }
    };
    let after = async {
        token_now(ctx, userid, token).await.ok().flatten().map_or(Value::Null, |t| shown(&t))
    };
    let answer = told(sent, before, after, what).await.with("did", did.as_str());
    let separate = args.privsep.unwrap_or_else(|| {
        now.as_ref().is_none_or(|n| n.get("privsep").is_none() || loose::flag(n, "privsep"))
    });
    Ok(if separate {
        let how = format!(
            "privilege separation: the token may do nothing until pve_acl_set gives it a role (tokens={id}), and never more than {userid}"
        );
        answer.with("note", how)
    } else {
        answer.with(
            "note",
            format!("without privilege separation the token may do all that {userid} may"),
        )
    })
}

/// Arguments of `pve_token_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Delete {
    userid: String,
    token: String,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_token_delete`
pub async fn delete(ctx: Ctx<'_>, args: Delete) -> Result<Answer> {
    let (userid, token) = (checked_user(&args.userid)?, checked(&args.token)?);
    let id = format!("{userid}!{token}");
    let now = token_now(ctx, userid, token).await?.ok_or_else(|| {
        Error::new(Code::NotFound, format!("there is no token {id:?}"))
            .hint("pve_list_tokens lists them")
    })?;
    let mut before = shown(&now);
    if let Value::Object(map) = &mut before {
        map.insert("entries_lost".into(), json!(entries_of(ctx, "token", &id).await));
    }
    let path = ["access", "users", userid, "token", token];
    let done = ctx.submit(operation(Method::Delete, &path, Params::new())?, &args.asked).await?;
    Ok(told(done, before, async { Value::Null }, format!("token {id}")).await)
}
