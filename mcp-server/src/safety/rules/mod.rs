//! The shape of the rule table, and how a call finds its rows.

mod table;

use super::{
    Class, Flag, Method,
    conditions::{Call, Param},
};

/// A row of `PATHS`: what a method does on a path, whatever its parameters.
#[derive(Debug)]
pub struct PathRule {
    /// HTTP method.
    pub method: Method,
    /// Path template.
    pub path: &'static str,
    /// What follows.
    pub effect: Effect,
    /// Why; empty where the path says it.
    pub why: &'static str,
}

/// A row of `PARAMS`: a parameter that raises the class.
#[derive(Debug)]
pub struct ParamRule {
    methods: &'static [Method],
    paths: &'static str,
    params: &'static str,
    /// When it speaks.
    pub when: When,
    /// What follows.
    pub effect: Effect,
    /// Why.
    pub why: &'static str,
}

/// When a row speaks.
#[derive(Debug, Clone, Copy)]
pub enum When {
    /// The parameter is given, whatever its value.
    Given,
    /// It is true in any spelling.
    True,
    /// It is false in any spelling.
    False,
    /// The condition holds for a given parameter.
    Each(fn(&Call<'_>, &Param<'_>) -> bool),
    /// The condition holds for the call, also where the parameter is absent.
    Once(fn(&Call<'_>) -> bool),
}

/// What a row makes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// At least this class.
    Class(Class),
    /// CRITICAL, with this category.
    Critical(Flag),
    /// Not sent at all: `endpoint_refused`.
    Never,
    /// Not sent at all: `target_refused`.
    NeverTarget,
    /// What the path is already; the reason is told.
    OfPath,
}

impl ParamRule {
    /// Whether a row looks at a parameter of this name.
    #[must_use]
    pub fn names(&self, name: &str) -> bool {
        self.params.split(' ').any(|pattern| {
            if let Some(base) = pattern.strip_suffix("[n]") {
                super::api::indexed(name) == Some(base)
            } else if let Some(start) = pattern.strip_suffix('*') {
                name.starts_with(start)
            } else {
                pattern == name
            }
        })
    }

    /// The first parameter that the row is about, for a reason without a given one.
    #[must_use]
    pub fn about(&self) -> &'static str {
        self.params.split(' ').next().unwrap_or_default()
    }

    fn applies(&self, method: Method, template: &str) -> bool {
        self.methods.contains(&method) && self.paths.split(' ').any(|path| fits(path, template))
    }
}

/// Whether a template of a row, with `*` for one segment, is a template of the API.
fn fits(pattern: &str, template: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let (mut a, mut b) = (pattern.split('/'), template.split('/'));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(x), Some(y)) if x == y || x == "*" => {}
            _ => return false,
        }
    }
}

/// The rows of one method of one endpoint.
pub(super) fn of(
    method: Method,
    template: &str,
) -> (Option<&'static PathRule>, Vec<&'static ParamRule>) {
    let path = table::PATHS.iter().find(|row| row.method == method && row.path == template);
    let params = table::PARAMS.iter().filter(|row| row.applies(method, template)).collect();
    (path, params)
}

/// Every row of `PATHS`.
#[must_use]
pub fn paths() -> &'static [PathRule] {
    table::PATHS
}

/// Every row of `PARAMS`.
#[must_use]
pub fn params() -> &'static [ParamRule] {
    table::PARAMS
}

const fn path(method: Method, path: &'static str, effect: Effect, why: &'static str) -> PathRule {
    PathRule { method, path, effect, why }
}

const fn write(method: Method, template: &'static str, why: &'static str) -> PathRule {
    path(method, template, Effect::Class(Class::Write), why)
}

const fn destructive(method: Method, template: &'static str, why: &'static str) -> PathRule {
    path(method, template, Effect::Class(Class::Destructive), why)
}

const fn critical(
    method: Method,
    template: &'static str,
    flag: Flag,
    why: &'static str,
) -> PathRule {
    path(method, template, Effect::Critical(flag), why)
}

const fn never(method: Method, template: &'static str, why: &'static str) -> PathRule {
    path(method, template, Effect::Never, why)
}

const fn param(
    methods: &'static [Method],
    paths: &'static str,
    params: &'static str,
    when: When,
    effect: Effect,
    why: &'static str,
) -> ParamRule {
    ParamRule { methods, paths, params, when, effect, why }
}
