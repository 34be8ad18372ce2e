//! A yes, and what it holds for: the digest of the request and of the object as
//! it was shown. Kept in small files of the owner in the state directory, so
//! that a yes given in another process, or already used there, is seen.

use std::{
    collections::VecDeque,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::files;
use crate::{Code, Error, Result};

/// How long a code, or a yes given outside the conversation, holds.
pub const HOLDS: Duration = Duration::from_secs(10 * 60);
/// How long a used approval is remembered: longer than anything that could be replayed.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);
/// Most forms, codes and requests in a minute.
const PER_MINUTE: usize = 6;

/// A request that waits for a person, as it is kept and shown by `approve`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// A short name, for the command line.
    pub id: String,
    /// The digest that a yes holds for.
    pub digest: String,
    /// When it was asked.
    #[serde(with = "instant")]
    pub asked: Timestamp,
    /// The whole form.
    pub text: String,
    /// The client that asked.
    pub client: String,
    /// Who said yes or no, and when.
    pub decision: Option<Decision>,
}

/// What a person said.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Decision {
    /// Yes or no.
    pub yes: bool,
    /// The account that said it.
    pub by: String,
    /// When.
    #[serde(with = "instant")]
    pub at: Timestamp,
}

/// The memory of approvals.
#[derive(Debug)]
pub struct Approvals {
    dir: PathBuf,
    recent: Mutex<VecDeque<Instant>>,
}

/// Whether a person outside the conversation has decided.
#[derive(Debug)]
pub enum Outside {
    /// Yes, to exactly this, not long ago.
    Yes(Decision),
    /// No.
    No,
    /// Not yet.
    Waiting(Request),
    /// Never asked, or the answer is too old.
    Unasked,
}

impl Approvals {
    /// In the state directory of the server.
    #[must_use]
    pub fn new(state: &Path) -> Self {
        Self { dir: state.join("approvals"), recent: Mutex::default() }
    }

    fn sub(&self, name: &str) -> Result<PathBuf> {
        let dir = self.dir.join(name);
        files::private_dir(&dir).map_err(|e| unusable(&dir, &e))?;
        Ok(dir)
    }

    /// The digest that the next yes to this request has to hold for: a used one
    /// never comes back.
    ///
    /// # Errors
    /// `internal` where the state directory cannot be used.
    pub fn fresh(&self, bound: &str) -> Result<String> {
        let used = self.sub("used")?;
        self.sweep(&used);
        let mut round = 0_u32;
        loop {
            let digest = files::sha256(&format!("{round}\n{bound}"));
            if !used.join(&digest).exists() {
                return Ok(digest);
            }
            round = round.checked_add(1).ok_or_else(|| Error::internal("too many approvals"))?;
        }
    }

    /// Uses a yes up, once among all processes.
    ///
    /// # Errors
    /// `approval_expired` when it was used before.
    pub fn claim(&self, digest: &str) -> Result<()> {
        let used = self.sub("used")?;
        match files::create_new(&used.join(digest), b"") {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::new(Code::ApprovalExpired, "this approval was used already")
                .hint("ask again; each change needs a yes of its own")),
            Err(error) => Err(unusable(&used, &error)),
        }
    }

    /// Counts a question, and refuses more than six a minute.
    ///
    /// # Errors
    /// `approval_required`.
    pub fn count(&self) -> Result<()> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        recent.retain(|at| now.duration_since(*at) < Duration::from_secs(60));
        if recent.len() >= PER_MINUTE {
            return Err(Error::new(
                Code::ApprovalRequired,
                format!("a person was asked {PER_MINUTE} times within a minute, and is not asked again yet"),
            )
            .hint("wait a minute, and ask for fewer changes at once"));
        }
        recent.push_back(now);
        Ok(())
    }

    /// A code for one request. Only its hash is kept.
    ///
    /// # Errors
    /// `internal` where the state directory cannot be used.
    pub fn issue(&self, digest: &str) -> Result<String> {
        self.count()?;
        let dir = self.sub("codes")?;
        self.sweep(&dir);
        let code = files::random_hex(6)?;
        let until = Timestamp::now() + SignedDuration::try_from(HOLDS).unwrap_or_default();
        let content = format!("{digest} {until}");
        files::create_new(&dir.join(files::sha256(&code)), content.as_bytes())
            .map_err(|e| unusable(&dir, &e))?;
        Ok(code)
    }

    /// Takes a code: it holds once, in time, and for its request alone.
    ///
    /// # Errors
    /// `approval_expired`.
    pub fn redeem(&self, code: &str, digest: &str) -> Result<()> {
        let path = self.sub("codes")?.join(files::sha256(code.trim()));
        let expired = |why: &str| {
            Error::new(Code::ApprovalExpired, format!("the approval code {why}"))
                .hint("call again without approval_code for a new one")
        };
        let Ok(content) = fs::read_to_string(&path) else {
            return Err(expired("is not known, or was used"));
        };
        let (of, until) = content.split_once(' ').unwrap_or_default();
        if until.parse::<Timestamp>().is_ok_and(|until| until < Timestamp::now()) {
            let _ = fs::remove_file(&path);
            return Err(expired("came too late"));
        }
        if of != digest {
            return Err(expired("was issued for another request, or the object has changed since"));
        }
        // Of two that come with the same code one removes it.
        fs::remove_file(&path).map_err(|_| expired("was used"))
    }

    /// What a person outside the conversation has said to a request.
    ///
    /// # Errors
    /// `internal` where the state directory cannot be used.
    pub fn outside(&self, digest: &str) -> Result<Outside> {
        let Some(request) = self.read_all()?.into_iter().find(|r| r.digest == digest) else {
            return Ok(Outside::Unasked);
        };
        Ok(match &request.decision {
            Some(decision) if decision.yes => Outside::Yes(decision.clone()),
            Some(_) => Outside::No,
            None => Outside::Waiting(request),
        })
    }

    /// Puts a request where `approve` finds it.
    ///
    /// # Errors
    /// `approval_required` for more than six a minute, `internal` where the
    /// state directory cannot be used.
    pub fn wait(&self, digest: &str, text: &str, client: &str) -> Result<Request> {
        self.count()?;
        let request = Request {
            id: files::random_hex(4)?,
            digest: digest.to_owned(),
            asked: Timestamp::now(),
            text: text.to_owned(),
            client: client.to_owned(),
            decision: None,
        };
        self.keep(&request)?;
        Ok(request)
    }

    /// Requests that wait for a person, oldest first.
    ///
    /// # Errors
    /// `internal` where the state directory cannot be used.
    pub fn waiting(&self) -> Result<Vec<Request>> {
        Ok(self.read_all()?.into_iter().filter(|r| r.decision.is_none()).collect())
    }

    /// Records what a person said to a request.
    ///
    /// # Errors
    /// `not_found` for an id that does not wait.
    pub fn decide(&self, id: &str, yes: bool, by: &str) -> Result<Request> {
        let mut request = self.waiting()?.into_iter().find(|r| r.id == id).ok_or_else(|| {
            Error::new(Code::NotFound, format!("no request {id:?} waits for approval"))
                .hint("proxmox-mcp approve lists those that do")
        })?;
        request.decision = Some(Decision { yes, by: by.to_owned(), at: Timestamp::now() });
        self.keep(&request)?;
        Ok(request)
    }

    /// Takes a request away once it was acted on.
    pub fn forget(&self, digest: &str) {
        if let (Ok(dir), Ok(all)) = (self.sub("pending"), self.read_all()) {
            for request in all.iter().filter(|r| r.digest == digest) {
                let _ = fs::remove_file(dir.join(format!("{}.json", request.id)));
            }
        }
    }

    fn keep(&self, request: &Request) -> Result<()> {
        let dir = self.sub("pending")?;
        let text = serde_json::to_string(request).map_err(|e| Error::internal(e.to_string()))?;
        files::replace(&dir.join(format!("{}.json", request.id)), text.as_bytes())
            .map_err(|e| unusable(&dir, &e))
    }

    /// Every request that still counts; those that are too old are taken away.
    fn read_all(&self) -> Result<Vec<Request>> {
        let dir = self.sub("pending")?;
        let entries = fs::read_dir(&dir).map_err(|e| unusable(&dir, &e))?;
        let mut requests = Vec::new();
        for path in entries.filter_map(|e| Some(e.ok()?.path())) {
            let request = fs::read_to_string(&path)
                .ok()
                .and_then(|t| serde_json::from_str::<Request>(&t).ok());
            let Some(request) = request else { continue };
            let from = request.decision.as_ref().map_or(request.asked, |d| d.at);
            if Timestamp::now().duration_since(from).unsigned_abs() > HOLDS {
                let _ = fs::remove_file(&path);
                continue;
            }
            requests.push(request);
        }
        requests.sort_by_key(|r| r.asked);
        Ok(requests)
    }

    /// Takes away what nothing can need any more.
    fn sweep(&self, dir: &Path) {
        let old = |path: &Path| {
            let modified = fs::metadata(path).and_then(|m| m.modified()).ok()?;
            modified.elapsed().ok().filter(|age| *age > REMEMBERED)
        };
        for path in fs::read_dir(dir).into_iter().flatten().filter_map(|e| Some(e.ok()?.path())) {
            if old(&path).is_some() {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Instants as text.
mod instant {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(at: &Timestamp, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(at)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Timestamp, D::Error> {
        String::deserialize(d)?.parse().map_err(D::Error::custom)
    }
}

fn unusable(dir: &Path, error: &io::Error) -> Error {
    Error::internal(format!("{} cannot be used: {error}", dir.display())).hint(
        "approvals are kept in the state directory; give this account the right to write there",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, Approvals) {
        let dir = tempfile::tempdir().unwrap();
        let approvals = Approvals::new(dir.path());
        (dir, approvals)
    }

    fn code(result: Result<()>) -> Option<Code> {
        result.err().map(|e| e.code)
    }

    #[test]
    fn a_yes_is_used_once_by_any_process() {
        let (dir, one) = place();
        let other = Approvals::new(dir.path());
        let digest = one.fresh("request").unwrap();
        assert_eq!(other.fresh("request").unwrap(), digest);
        one.claim(&digest).unwrap();
        assert_eq!(code(other.claim(&digest)), Some(Code::ApprovalExpired));
        assert_ne!(other.fresh("request").unwrap(), digest, "the next yes is for the next time");
        assert_ne!(one.fresh("other request").unwrap(), digest);
    }

    #[test]
    fn a_code_holds_once_and_for_its_request() {
        let (dir, approvals) = place();
        let secret = approvals.issue("a").unwrap();
        assert_eq!(code(approvals.redeem(&secret, "b")), Some(Code::ApprovalExpired));
        assert_eq!(code(approvals.redeem("000000000000", "a")), Some(Code::ApprovalExpired));
        assert_eq!(code(approvals.redeem("../../x", "a")), Some(Code::ApprovalExpired));
        approvals.redeem(&format!(" {secret} "), "a").unwrap();
        assert_eq!(code(approvals.redeem(&secret, "a")), Some(Code::ApprovalExpired));
        for entry in fs::read_dir(dir.path().join("approvals/codes")).unwrap() {
            assert!(!entry.unwrap().file_name().to_str().unwrap().contains(&secret));
        }
    }

    #[test]
    fn a_late_code_does_not_hold() {
        let (dir, approvals) = place();
        let secret = approvals.issue("a").unwrap();
        let file = dir.path().join("approvals/codes").join(files::sha256(&secret));
        fs::write(&file, format!("a {}", Timestamp::now() - SignedDuration::from_secs(1))).unwrap();
        assert_eq!(code(approvals.redeem(&secret, "a")), Some(Code::ApprovalExpired));
    }

    #[test]
    fn a_person_outside_decides() {
        let (dir, server) = place();
        let person = Approvals::new(dir.path());
        let request = server.wait("d1", "text", "client").unwrap();
        assert!(matches!(server.outside("d1").unwrap(), Outside::Waiting(_)));
        assert_eq!(person.waiting().unwrap().len(), 1);
        assert_eq!(person.decide("nope", true, "me").unwrap_err().code, Code::NotFound);
        person.decide(&request.id, true, "me").unwrap();
        assert!(matches!(server.outside("d1").unwrap(), Outside::Yes(d) if d.by == "me"));
        assert!(
            matches!(server.outside("d2").unwrap(), Outside::Unasked),
            "a yes holds for its request alone"
        );
        assert_eq!(
            person.decide(&request.id, false, "me").unwrap_err().code,
            Code::NotFound,
            "decided once"
        );
        server.forget("d1");
        assert!(matches!(server.outside("d1").unwrap(), Outside::Unasked));
        let request = server.wait("d3", "text", "client").unwrap();
        person.decide(&request.id, false, "me").unwrap();
        assert!(matches!(server.outside("d3").unwrap(), Outside::No));
    }

    #[test]
    fn a_late_yes_does_not_hold() {
        let (dir, approvals) = place();
        let mut request = approvals.wait("d", "text", "client").unwrap();
        let long_ago = Timestamp::now() - SignedDuration::from_secs(601);
        request.decision = Some(Decision { yes: true, by: "me".into(), at: long_ago });
        approvals.keep(&request).unwrap();
        assert!(matches!(approvals.outside("d").unwrap(), Outside::Unasked));
        assert_eq!(fs::read_dir(dir.path().join("approvals/pending")).unwrap().count(), 0);
    }

    #[test]
    fn at_most_six_questions_a_minute() {
        let (_dir, approvals) = place();
        for n in 0..PER_MINUTE {
            approvals.wait(&n.to_string(), "text", "client").unwrap();
        }
        assert_eq!(approvals.wait("7", "text", "client").unwrap_err().code, Code::ApprovalRequired);
        assert_eq!(approvals.issue("8").unwrap_err().code, Code::ApprovalRequired);
    }
}
