//! The way through a shell text: every command in it, with what it reads and writes.

use std::collections::{BTreeMap, BTreeSet};

use brush_parser::{
    Parser, ParserOptions,
    ast::{
        AndOr, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem,
        CompoundCommand, CompoundList, ExtendedTestExpr, IoFileRedirectKind, IoFileRedirectTarget,
        IoRedirect, Pipeline, Program, RedirectList, SimpleCommand,
    },
};

use super::{Finding, paths, words::Arg};
use crate::safety::Flag;

/// Deepest nesting of texts, substitutions and wrappers that is followed.
const DEEPEST: usize = 24;
/// Most opening signs of a text that is given to the parser, and how deep they
/// may stand in each other: its time doubles with each level of some.
const MOST_OPENINGS: usize = 150;
const DEEPEST_OPENINGS: usize = 10;
/// Most `case` of a text, for the same reason.
const MOST_CASES: usize = 10;
/// Most rounds of loops that are walked one by one.
const MOST_ROUNDS: usize = 32;

/// What a command reads on its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Nothing.
    Nothing,
    /// This text.
    Text(String),
    /// Something that cannot be known.
    Unknown,
}

/// One walk: what is known on the way, and what was found.
pub struct Walk<'f> {
    pub(super) found: &'f mut Finding,
    pub(super) cwd: Option<String>,
    variables: BTreeMap<String, Option<String>>,
    functions: BTreeSet<String>,
    depth: usize,
    /// How many rounds of loops around this place are walked one by one.
    rounds: usize,
}

impl<'f> Walk<'f> {
    /// At the beginning.
    pub fn new(found: &'f mut Finding, cwd: Option<&str>) -> Self {
        Self {
            found,
            cwd: Some(cwd.unwrap_or("/").to_owned()),
            variables: BTreeMap::new(),
            functions: BTreeSet::new(),
            depth: 0,
            rounds: 1,
        }
    }

    /// The value of a variable, where it is known.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        if let Some(value) = self.variables.get(name) {
            return value.clone();
        }
        match name {
            "HOME" => Some("/root".to_owned()),
            "PWD" => self.cwd.clone(),
            "IFS" => Some(" ".to_owned()),
            "USER" | "LOGNAME" => Some("root".to_owned()),
            _ => None,
        }
    }

    /// A text that a shell runs.
    pub fn text(&mut self, text: &str, input: &Input) {
        if !self.enter("text within text within text") {
            return;
        }
        if is_tangled(text) {
            self.found.add(Flag::ExecShell, "a text that is nested too deep");
            self.depth -= 1;
            return;
        }
        let mut parser = Parser::new(text.as_bytes(), &ParserOptions::default());
        match parser.parse_program() {
            Ok(program) => self.program(&program, input),
            Err(_) => self.found.add(Flag::ExecShell, "a text that is no whole shell command"),
        }
        self.depth -= 1;
    }

    /// The text of a substitution: its directory and variables are its own.
    pub(super) fn inner(&mut self, text: &str) {
        self.apart(|walk| walk.text(text, &Input::Nothing));
    }

    /// Goes somewhere and comes back with the former directory and variables.
    pub(super) fn apart(&mut self, go: impl FnOnce(&mut Self)) {
        let kept = (self.cwd.clone(), self.variables.clone());
        go(self);
        (self.cwd, self.variables) = kept;
    }

    fn enter(&mut self, what: &str) -> bool {
        if self.depth >= DEEPEST {
            self.found.add(Flag::ExecShell, what);
            return false;
        }
        self.depth += 1;
        true
    }

    fn program(&mut self, program: &Program, input: &Input) {
        for list in &program.complete_commands {
            self.list(list, input);
        }
    }

    fn list(&mut self, list: &CompoundList, input: &Input) {
        for item in &list.0 {
            self.pipeline(&item.0.first, input);
            for next in &item.0.additional {
                let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = next;
                self.pipeline(pipeline, input);
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, input: &Input) {
        let mut input = input.clone();
        let many = pipeline.seq.len() > 1;
        for command in &pipeline.seq {
            let mut output = Input::Unknown;
            if many {
                // Each part of a pipe is a shell of its own.
                self.apart(|walk| output = walk.command(command, &input));
            } else {
                output = self.command(command, &input);
            }
            input = output;
        }
    }

    /// Walks a command; answers what it prints, where that can be known.
    fn command(&mut self, command: &Command, input: &Input) -> Input {
        if !self.enter("a command within many others") {
            return Input::Unknown;
        }
        let output = match command {
            Command::Simple(simple) => self.simple(simple, input),
            Command::Compound(compound, redirects) => {
                let input = self.redirects(redirects.as_ref(), input);
                self.compound(compound, &input);
                Input::Unknown
            }
            Command::Function(function) => {
                self.functions.insert(function.fname.value.clone());
                let input = self.redirects(function.body.1.as_ref(), &Input::Unknown);
                self.apart(|walk| walk.compound(&function.body.0, &input));
                Input::Nothing
            }
            Command::ExtendedTest(test, redirects) => {
                self.test(&test.expr);
                self.redirects(redirects.as_ref(), input);
                Input::Nothing
            }
        };
        self.depth -= 1;
        output
    }

    fn compound(&mut self, compound: &CompoundCommand, input: &Input) {
        match compound {
            CompoundCommand::Arithmetic(a) => {
                self.arithmetic(&a.expr.value);
                // What is arithmetic to bash is a shell within a shell to others.
                self.inner(&a.expr.value);
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                let parts = [&clause.initializer, &clause.condition, &clause.updater];
                for part in parts.into_iter().flatten() {
                    self.arithmetic(&part.value);
                }
                self.list(&clause.body.list, input);
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list, input),
            CompoundCommand::Subshell(shell) => self.apart(|walk| walk.list(&shell.list, input)),
            CompoundCommand::ForClause(clause) => {
                let mut values = Vec::new();
                for word in clause.values.iter().flatten() {
                    values.extend(self.expand(&word.value));
                }
                // Each value in turn, as long as they are few.
                let known = !values.is_empty()
                    && self.rounds * values.len() <= MOST_ROUNDS
                    && values.iter().all(|v| !v.unknown && !v.text.contains(['*', '?', '[']));
                if known {
                    let outer = self.rounds;
                    self.rounds *= values.len();
                    for value in values {
                        self.variables.insert(clause.variable_name.clone(), Some(value.text));
                        self.list(&clause.body.list, input);
                    }
                    self.rounds = outer;
                } else {
                    self.variables.insert(clause.variable_name.clone(), None);
                    self.list(&clause.body.list, input);
                }
            }
            CompoundCommand::CaseClause(clause) => {
                self.expand(&clause.value.value);
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.expand(&pattern.value);
                    }
                    if let Some(list) = &case.cmd {
                        self.list(list, input);
                    }
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition, input);
                self.list(&clause.then, input);
                for other in clause.elses.iter().flatten() {
                    if let Some(condition) = &other.condition {
                        self.list(condition, input);
                    }
                    self.list(&other.body, input);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0, input);
                self.list(&clause.1.list, input);
            }
            CompoundCommand::Coprocess(process) => {
                self.apart(|walk| {
                    walk.command(&process.body, &Input::Unknown);
                });
            }
        }
    }

    fn arithmetic(&mut self, text: &str) {
        if text.contains("$(") || text.contains('`') {
            self.found.add(Flag::ExecShell, "a command inside arithmetic");
        }
    }

    fn test(&mut self, test: &ExtendedTestExpr) {
        match test {
            ExtendedTestExpr::And(a, b) | ExtendedTestExpr::Or(a, b) => {
                self.test(a);
                self.test(b);
            }
            ExtendedTestExpr::Not(a) | ExtendedTestExpr::Parenthesized(a) => self.test(a),
            ExtendedTestExpr::UnaryTest(_, word) => drop(self.expand(&word.value)),
            ExtendedTestExpr::BinaryTest(_, a, b) => {
                self.expand(&a.value);
                self.expand(&b.value);
            }
        }
    }

    fn redirects(&mut self, list: Option<&RedirectList>, input: &Input) -> Input {
        let mut input = input.clone();
        for redirect in list.into_iter().flat_map(|l| &l.0) {
            self.redirect(redirect, &mut input);
        }
        input
    }

    /// Follows one redirection; answers whether it empties or replaces a file.
    fn redirect(&mut self, redirect: &IoRedirect, input: &mut Input) -> bool {
        match redirect {
            IoRedirect::File(_, kind, target) => match target {
                IoFileRedirectTarget::Filename(word) => {
                    let path = self.expand_one(&word.value);
                    match kind {
                        IoFileRedirectKind::Read => {
                            self.reads(&path);
                            *input = Input::Unknown;
                        }
                        IoFileRedirectKind::DuplicateInput
                        | IoFileRedirectKind::DuplicateOutput => {}
                        _ => {
                            self.writes(&path);
                            return matches!(
                                kind,
                                IoFileRedirectKind::Write | IoFileRedirectKind::Clobber
                            ) && path.text != "/dev/null";
                        }
                    }
                }
                IoFileRedirectTarget::ProcessSubstitution(_, shell) => {
                    self.apart(|walk| walk.list(&shell.list, &Input::Unknown));
                    if matches!(kind, IoFileRedirectKind::Read) {
                        *input = Input::Unknown;
                    }
                }
                IoFileRedirectTarget::Duplicate(word) => {
                    // `>&name` writes a file unless the name is a number.
                    let target = self.expand_one(&word.value);
                    if !target.text.chars().all(|c| c.is_ascii_digit() || c == '-') {
                        self.writes(&target);
                    }
                }
                IoFileRedirectTarget::Fd(_) => {}
            },
            IoRedirect::HereDocument(_, document) => {
                *input = if document.requires_expansion {
                    let text = self.expand_document(&document.doc.value);
                    if text.unknown { Input::Unknown } else { Input::Text(text.text) }
                } else {
                    Input::Text(document.doc.value.clone())
                };
            }
            IoRedirect::HereString(_, word) => {
                let text = self.expand_one(&word.value);
                *input = if text.unknown { Input::Unknown } else { Input::Text(text.text) };
            }
            IoRedirect::OutputAndError(word, _) => {
                let path = self.expand_one(&word.value);
                self.writes(&path);
            }
        }
        false
    }

    fn simple(&mut self, simple: &SimpleCommand, input: &Input) -> Input {
        let mut input = input.clone();
        let mut words = Vec::new();
        let mut replaces = false;
        let prefix = simple.prefix.iter().flat_map(|p| &p.0);
        for item in prefix {
            self.item(item, simple.word_or_name.is_none(), &mut words, &mut input, &mut replaces);
        }
        if let Some(name) = &simple.word_or_name {
            words.extend(self.expand(&name.value));
        }
        for item in simple.suffix.iter().flat_map(|s| &s.0) {
            self.item(item, false, &mut words, &mut input, &mut replaces);
        }
        let name = words.first().map(|w| w.text.as_str());
        let prints_nothing = |w: &Arg| w.text.is_empty() || w.text == "-n";
        let empty = match words.as_slice() {
            [] => true,
            [only] => matches!(only.text.as_str(), ":" | "true"),
            [cat, null] if cat.text == "cat" => null.text == "/dev/null",
            [echo, rest @ ..] if matches!(echo.text.as_str(), "echo" | "printf") => {
                rest.iter().all(prints_nothing)
            }
            _ => false,
        };
        if replaces && empty {
            self.found.add(Flag::ExecDelete, "empties a file");
        }
        let output = match name {
            Some("echo") => printed(&words),
            Some("printf") if words.len() == 2 => printed(&words),
            Some("cat") if words.len() == 1 => input.clone(),
            _ => Input::Unknown,
        };
        if !words.is_empty() {
            self.run(&words, &input);
        }
        output
    }

    fn item(
        &mut self,
        item: &CommandPrefixOrSuffixItem,
        stays: bool,
        words: &mut Vec<Arg>,
        input: &mut Input,
        replaces: &mut bool,
    ) {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                *replaces |= self.redirect(redirect, input);
            }
            CommandPrefixOrSuffixItem::Word(word) => words.extend(self.expand(&word.value)),
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                let AssignmentName::VariableName(name) = &assignment.name else {
                    self.expand(&word.value);
                    return;
                };
                let value = match &assignment.value {
                    AssignmentValue::Scalar(value) => {
                        let value = self.expand_one(&value.value);
                        (!value.unknown && !assignment.append).then_some(value.text)
                    }
                    AssignmentValue::Array(items) => {
                        for (_, value) in items {
                            self.expand(&value.value);
                        }
                        None
                    }
                };
                let own_path = name == "PATH"
                    && value
                        .iter()
                        .flat_map(|v| v.split(':'))
                        .any(|dir| !super::run::is_standard(dir));
                // A program that is loaded before the one named, or in its place.
                let decides = [
                    "LD_PRELOAD",
                    "LD_LIBRARY_PATH",
                    "BASH_ENV",
                    "ENV",
                    "PROMPT_COMMAND",
                    "PYTHONPATH",
                    "PERL5OPT",
                    "NODE_OPTIONS",
                    "GIT_SSH_COMMAND",
                    "PAGER",
                    "EDITOR",
                ];
                if own_path || decides.contains(&name.as_str()) {
                    self.found.add(Flag::ExecShell, &format!("{name} decides what is run"));
                }
                if stays || words.is_empty() {
                    self.variables.insert(name.clone(), value);
                } else {
                    words.push(Arg::literal(&word.value));
                }
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, shell) => {
                self.apart(|walk| walk.list(&shell.list, &Input::Unknown));
                words.push(Arg::unknown());
            }
        }
    }

    /// Runs a program with its arguments.
    pub(super) fn run(&mut self, words: &[Arg], input: &Input) {
        if !self.enter("a wrapper around many wrappers") {
            return;
        }
        let is_function = words.first().is_some_and(|w| self.functions.contains(&w.text));
        // What a function does was found where it was made.
        if !is_function {
            self.program_run(words, input);
        }
        self.depth -= 1;
    }

    /// A path as the guest sees it, where it can be known.
    pub(super) fn resolved(&self, path: &Arg) -> Option<String> {
        if path.text.starts_with('/') {
            return Some(paths::folded(&path.text));
        }
        let cwd = self.cwd.as_deref()?;
        Some(paths::folded(&format!("{cwd}/{}", path.text)))
    }

    /// A file that is read.
    pub(super) fn reads(&mut self, path: &Arg) {
        if let Some(path) = self.resolved(path)
            && secret(&path)
            && self.found.secret.is_none()
        {
            self.found.secret = Some(path);
        }
    }

    /// A file that is written.
    pub(super) fn writes(&mut self, path: &Arg) {
        let Some(resolved) = self.resolved(path) else {
            if path.unknown {
                self.found.add(Flag::ExecSystemFiles, "writes where it cannot be known");
            }
            return;
        };
        for flag in paths::written(&resolved) {
            self.found.add(flag, &format!("writes {resolved}"));
        }
    }
}

fn secret(path: &str) -> bool {
    paths::secret_path(path, None).is_some()
}

/// What `echo` or `printf` prints.
fn printed(words: &[Arg]) -> Input {
    let rest = words.get(1..).unwrap_or_default();
    if rest.iter().any(|w| w.unknown) {
        return Input::Unknown;
    }
    let texts: Vec<&str> =
        rest.iter().filter(|w| !w.is_option()).map(|w| w.text.as_str()).collect();
    // Escapes of either stand for what they print.
    Input::Text(texts.join(" ").replace("\\n", "\n"))
}

/// Whether the parser would take too long for a text.
fn is_tangled(text: &str) -> bool {
    let (mut all, mut depth, mut before) = (0_usize, 0_usize, ' ');
    // Signs of an index inside `${` cost as much as several others.
    let mut inside_parameter = 0_usize;
    for c in text.chars() {
        match c {
            '(' | '{' | '`' | '<' => {
                all += 1;
                // A backquote closes what the one before opened.
                depth += usize::from(!matches!(c, '<' | '`'));
                inside_parameter += usize::from(c == '{' && before == '$');
            }
            '[' => {
                all += 1;
                depth += if inside_parameter > 0 { 3 } else { 1 };
            }
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if all > MOST_OPENINGS || depth > DEEPEST_OPENINGS {
            return true;
        }
        if c == '}' {
            inside_parameter = inside_parameter.saturating_sub(1);
        }
        before = c;
    }
    text.split_whitespace().filter(|word| word.ends_with("case")).count() > MOST_CASES
}
