//! Who calls: API tokens, tickets, or nobody.

use percent_encoding::percent_decode_str;

use crate::state::State;
use crate::wire::http::{Head, Response};

/// The identity of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Login {
    /// `user@realm`, empty for nobody.
    pub(crate) user: String,
    /// The token's name when a token was used.
    pub(crate) token: Option<String>,
}

impl Login {
    fn nobody() -> Self {
        Self { user: String::new(), token: None }
    }

    pub(crate) fn is_anonymous(&self) -> bool {
        self.user.is_empty()
    }

    /// root@pam itself, not one of its tokens.
    pub(crate) fn is_root_ticket(&self) -> bool {
        self.user == "root@pam" && self.token.is_none()
    }

    /// As tasks and logs name it: `user@realm` or `user@realm!token`.
    pub(crate) fn full(&self) -> String {
        match &self.token {
            Some(t) => format!("{}!{t}", self.user),
            None => self.user.clone(),
        }
    }
}

const NO_TICKET: &str = "No ticket";
const FAILED: &str = "Authentication failed!";

/// Finds the identity of a request.
///
/// # Errors
/// The 401 to answer, which has no body.
pub(crate) fn check(state: &State, head: &Head, path: &str, now: i64) -> Result<Login, Response> {
    let refuse = |reason: &str| Response::empty(401, reason);
    let path = path.trim_matches('/');
    let open = path == "access/domains" && head.method == "GET"
        || path == "access/ticket"
        || path.starts_with("access/openid/");
    // A cookie wins over a token, also a bad one.
    if let Some(ticket) = head.header("cookie").and_then(cookie) {
        let user = state.access.ticket_user(&ticket).ok_or_else(|| refuse(FAILED))?;
        if head.method != "GET" && !open {
            let good = head
                .header("csrfpreventiontoken")
                .is_some_and(|c| state.access.csrf_fits(&user, c));
            if !good {
                return Err(refuse("Permission denied - invalid csrf token"));
            }
        }
        return Ok(Login { user, token: None });
    }
    if let Some(value) = head.header("authorization").and_then(|v| v.strip_prefix("PVEAPIToken"))
        && let Some(token) = value.strip_prefix(['=', ' '])
    {
        let token = percent_decode_str(token).decode_utf8_lossy().into_owned();
        return state.access.token_login(&token, now).ok_or_else(|| refuse(FAILED));
    }
    if open { Ok(Login::nobody()) } else { Err(refuse(NO_TICKET)) }
}

fn cookie(header: &str) -> Option<String> {
    let value = header.split(';').find_map(|c| c.trim().strip_prefix("PVEAuthCookie="))?;
    Some(percent_decode_str(value).decode_utf8_lossy().into_owned())
}
