//! Parameters of a shell text: what `$x` and `${x…}` become, as far as that can be known.

use brush_parser::word::{Parameter, ParameterExpr, SpecialParameter, SubstringMatchKind};

use super::{
    paths::matches,
    walk::Walk,
    words::{Arg, Fields},
};
use crate::safety::Flag;

/// Longest value and pattern that are held against each other.
const LONGEST_VALUE: usize = 256;
const LONGEST_PATTERN: usize = 32;

/// What is known of a parameter.
enum Value {
    Known(String),
    /// Nothing in the text sets it.
    Unset,
    Unknown,
}

impl Walk<'_> {
    /// Adds what a parameter becomes; `raw` is how it is written.
    pub(super) fn parameter(
        &mut self,
        expr: &ParameterExpr,
        raw: &str,
        quoted: bool,
        into: &mut Fields,
    ) {
        if let ParameterExpr::Parameter {
            parameter: Parameter::Special(SpecialParameter::AllPositionalParameters { .. }),
            ..
        } = expr
            && let Some(all) = self.positional.clone()
        {
            for (place, arg) in all.iter().enumerate() {
                if place > 0 {
                    into.part();
                }
                into.push_arg(arg, true);
            }
            return;
        }
        if let ParameterExpr::Parameter {
            parameter: Parameter::NamedWithAllIndices { name, .. },
            indirect: false,
        } = expr
            && let Some(all) = self.members(name)
        {
            for (place, value) in all.iter().enumerate() {
                if place > 0 {
                    into.part();
                }
                into.push_arg(&Arg::literal(value), true);
            }
            return;
        }
        match self.changed(expr) {
            Some(arg) => into.push_arg(&arg, quoted),
            None => {
                if raw.contains("$(") || raw.contains('`') {
                    self.found.add(Flag::ExecShell, "a command inside a parameter");
                }
                into.push_unknown();
            }
        }
    }

    /// The members of an array, where all of them are known.
    fn members(&self, name: &str) -> Option<Vec<String>> {
        self.variable(&format!("{name}[@]"))?;
        let all: Vec<String> =
            (0..).map_while(|place| self.variable(&format!("{name}[{place}]"))).collect();
        (!all.is_empty()).then_some(all)
    }

    /// The value after what is done to it; `None` where it cannot be known.
    fn changed(&mut self, expr: &ParameterExpr) -> Option<Arg> {
        use ParameterExpr as E;
        match expr {
            E::Parameter { parameter, indirect } => self.known(parameter, *indirect).map(literal),
            E::UseDefaultValues { parameter, indirect, default_value, .. } => {
                self.or_default(parameter, *indirect, default_value.as_deref())
            }
            E::AssignDefaultValues { parameter, indirect, default_value, .. } => {
                let value = self.or_default(parameter, *indirect, default_value.as_deref())?;
                if let Parameter::Named(name) = parameter {
                    self.set(name, (!value.unknown).then(|| value.text.clone()));
                }
                Some(value)
            }
            E::UseAlternativeValue { parameter, indirect, alternative_value, .. } => {
                let other = self.expand_one(alternative_value.as_deref().unwrap_or_default());
                let known =
                    matches!(self.value(parameter, *indirect), Value::Known(v) if !v.is_empty());
                Some(Arg { unknown: other.unknown || !known, ..other })
            }
            E::IndicateErrorIfNullOrUnset { parameter, indirect, .. } => {
                self.known(parameter, *indirect).map(literal)
            }
            E::ParameterLength { parameter, indirect } => {
                self.known(parameter, *indirect).map(|v| literal(v.chars().count().to_string()))
            }
            E::RemoveSmallestSuffixPattern { parameter, indirect, pattern } => {
                self.without(parameter, *indirect, pattern.as_deref(), false, false)
            }
            E::RemoveLargestSuffixPattern { parameter, indirect, pattern } => {
                self.without(parameter, *indirect, pattern.as_deref(), false, true)
            }
            E::RemoveSmallestPrefixPattern { parameter, indirect, pattern } => {
                self.without(parameter, *indirect, pattern.as_deref(), true, false)
            }
            E::RemoveLargestPrefixPattern { parameter, indirect, pattern } => {
                self.without(parameter, *indirect, pattern.as_deref(), true, true)
            }
            E::Substring { parameter, indirect, offset, length } => {
                let value = self.known(parameter, *indirect)?;
                let offset: usize = offset.value.trim().parse().ok()?;
                let length = match length {
                    Some(length) => length.value.trim().parse().ok()?,
                    None => usize::MAX,
                };
                Some(literal(value.chars().skip(offset).take(length).collect()))
            }
            E::UppercasePattern { parameter, indirect, pattern } if is_empty(pattern) => {
                self.known(parameter, *indirect).map(|v| literal(v.to_uppercase()))
            }
            E::LowercasePattern { parameter, indirect, pattern } if is_empty(pattern) => {
                self.known(parameter, *indirect).map(|v| literal(v.to_lowercase()))
            }
            E::ReplaceSubstring { parameter, indirect, pattern, replacement, match_kind } => {
                let value = self.known(parameter, *indirect)?;
                let pattern = self.expand_one(pattern);
                let new = self.expand_one(replacement.as_deref().unwrap_or_default());
                let plain = |a: &Arg| !a.unknown && !a.text.contains(['*', '?', '[', '&']);
                if !plain(&pattern) || !plain(&new) || pattern.text.is_empty() {
                    return None;
                }
                Some(literal(match match_kind {
                    SubstringMatchKind::FirstOccurrence => {
                        value.replacen(&pattern.text, &new.text, 1)
                    }
                    SubstringMatchKind::Anywhere => value.replace(&pattern.text, &new.text),
                    SubstringMatchKind::Prefix => match value.strip_prefix(&pattern.text) {
                        Some(rest) => format!("{}{rest}", new.text),
                        None => value,
                    },
                    SubstringMatchKind::Suffix => match value.strip_suffix(&pattern.text) {
                        Some(rest) => format!("{rest}{}", new.text),
                        None => value,
                    },
                }))
            }
            _ => None,
        }
    }

    /// A value, or another where it has none: that one counts as well where the value is unknown.
    fn or_default(
        &mut self,
        parameter: &Parameter,
        indirect: bool,
        default: Option<&str>,
    ) -> Option<Arg> {
        let value = self.value(parameter, indirect);
        if let Value::Known(value) = &value
            && !value.is_empty()
        {
            return Some(literal(value.clone()));
        }
        let default = self.expand_one(default.unwrap_or_default());
        let unknown = default.unknown || matches!(value, Value::Unknown);
        Some(Arg { unknown, ..default })
    }

    /// A value without what a pattern fits at its beginning or end.
    fn without(
        &mut self,
        parameter: &Parameter,
        indirect: bool,
        pattern: Option<&str>,
        from_start: bool,
        most: bool,
    ) -> Option<Arg> {
        let value = self.known(parameter, indirect)?;
        let pattern = self.expand_one(pattern.unwrap_or_default());
        let usual = value.len() <= LONGEST_VALUE && pattern.text.len() <= LONGEST_PATTERN;
        if pattern.unknown || !usual || pattern.text.contains('[') {
            return None;
        }
        let chars: Vec<char> = value.chars().collect();
        let mut cuts: Vec<usize> = (0..=chars.len()).collect();
        if most == from_start {
            cuts.reverse();
        }
        for cut in cuts {
            let (head, tail) = chars.split_at(cut);
            let (gone, kept) = if from_start { (head, tail) } else { (tail, head) };
            if matches(&pattern.text, &gone.iter().collect::<String>()) {
                return Some(literal(kept.iter().collect()));
            }
        }
        Some(literal(value))
    }

    fn known(&self, parameter: &Parameter, indirect: bool) -> Option<String> {
        match self.value(parameter, indirect) {
            Value::Known(value) => Some(value),
            Value::Unset | Value::Unknown => None,
        }
    }

    fn value(&self, parameter: &Parameter, indirect: bool) -> Value {
        let value = match parameter {
            Parameter::Named(name) => self.named_value(name),
            Parameter::NamedWithIndex { name, index } => {
                self.named_value(&format!("{name}[{index}]"))
            }
            Parameter::NamedWithAllIndices { name, .. } => self.named_value(&format!("{name}[@]")),
            Parameter::Positional(0) | Parameter::Special(_) => Value::Unknown,
            Parameter::Positional(place) => match &self.positional {
                None => Value::Unknown,
                Some(all) => {
                    let place = usize::try_from(*place).unwrap_or(usize::MAX).saturating_sub(1);
                    match all.get(place) {
                        Some(arg) if !arg.unknown => Value::Known(arg.text.clone()),
                        Some(_) => Value::Unknown,
                        None => Value::Unset,
                    }
                }
            },
        };
        match value {
            Value::Known(name) if indirect => self.named_value(&name),
            value => value,
        }
    }

    fn named_value(&self, name: &str) -> Value {
        match self.variable(name) {
            Some(value) => Value::Known(value),
            None if self.is_set(name) => Value::Unknown,
            None => Value::Unset,
        }
    }
}

fn literal(text: String) -> Arg {
    Arg { text, unknown: false }
}

fn is_empty(pattern: &Option<String>) -> bool {
    pattern.as_ref().is_none_or(|p| matches!(p.as_str(), "" | "?"))
}
