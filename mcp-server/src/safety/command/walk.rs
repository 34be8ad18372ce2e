//! The way through a shell text: every command in it, with what it reads and writes.

use std::{collections::BTreeMap, rc::Rc};

use brush_parser::{
    Parser, ParserOptions,
    ast::{
        AndOr, Assignment, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem,
        CompoundCommand, CompoundList, ExtendedTestExpr, FunctionBody, IoRedirect, Pipeline,
        Program, SimpleCommand, Word,
    },
};

use super::{Finding, output, tangle::is_tangled, words::Arg};
use crate::safety::Flag;

/// Deepest nesting of texts, substitutions and wrappers that is followed.
const DEEPEST: usize = 24;
/// Most commands that are walked: functions and loops can multiply them.
const MOST_STEPS: usize = 20_000;
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
    /// The positional parameters, where they are known.
    pub(super) positional: Option<Vec<Arg>>,
    functions: BTreeMap<String, Rc<FunctionBody>>,
    depth: usize,
    steps: usize,
    /// How many rounds of loops around this place are walked one by one.
    rounds: usize,
    /// Directories whose files are what this pipe hands on, and whether all of them.
    pub(super) listed: Option<(Vec<Arg>, bool)>,
}

impl<'f> Walk<'f> {
    /// At the beginning.
    pub fn new(found: &'f mut Finding, cwd: Option<&str>) -> Self {
        Self {
            found,
            cwd: Some(cwd.unwrap_or("/").to_owned()),
            variables: BTreeMap::new(),
            // A text that stands by itself is given none.
            positional: Some(Vec::new()),
            functions: BTreeMap::new(),
            depth: 0,
            steps: 0,
            rounds: 1,
            listed: None,
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

    /// Whether the text has set a variable, be it to what cannot be known.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    /// Sets a variable; `None` is a value that cannot be known.
    pub(super) fn set(&mut self, name: &str, value: Option<String>) {
        self.variables.insert(name.to_owned(), value);
    }

    /// A text that a shell runs; answers what it prints.
    pub fn text(&mut self, text: &str, input: &Input) -> Input {
        if !self.enter("text within text within text") {
            return Input::Unknown;
        }
        let mut printed = Input::Unknown;
        if is_tangled(text) {
            self.found.add(
                Flag::ExecShell,
                "a text that is nested too deep, or has numbers that are too long",
            );
        } else {
            let mut parser = Parser::new(text.as_bytes(), &ParserOptions::default());
            match parser.parse_program() {
                Ok(program) => printed = self.program(&program, input),
                Err(_) => self.found.add(Flag::ExecShell, "a text that is no whole shell command"),
            }
        }
        self.depth -= 1;
        printed
    }

    /// The text of a substitution: its directory and variables are its own.
    pub(super) fn inner(&mut self, text: &str) -> Input {
        let mut printed = Input::Unknown;
        self.apart(|walk| printed = walk.text(text, &Input::Nothing));
        printed
    }

    /// Goes somewhere and comes back with the former directory and variables.
    pub(super) fn apart(&mut self, go: impl FnOnce(&mut Self)) {
        let kept = (self.cwd.clone(), self.variables.clone(), self.positional.clone());
        go(self);
        (self.cwd, self.variables, self.positional) = kept;
    }

    fn enter(&mut self, what: &str) -> bool {
        self.steps += 1;
        if self.depth >= DEEPEST || self.steps > MOST_STEPS {
            self.found.add(Flag::ExecShell, what);
            return false;
        }
        self.depth += 1;
        true
    }

    /// Walks the commands; what several print is not put together.
    fn program(&mut self, program: &Program, input: &Input) -> Input {
        let mut printed = Input::Nothing;
        for (place, list) in program.complete_commands.iter().enumerate() {
            let this = self.list(list, input);
            printed = if place == 0 { this } else { Input::Unknown };
        }
        printed
    }

    pub(super) fn list(&mut self, list: &CompoundList, input: &Input) -> Input {
        let mut printed = Input::Nothing;
        for (place, item) in list.0.iter().enumerate() {
            let this = self.pipeline(&item.0.first, input);
            let alone = place == 0 && item.0.additional.is_empty();
            printed = if alone { this } else { Input::Unknown };
            for next in &item.0.additional {
                let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = next;
                self.pipeline(pipeline, input);
            }
        }
        printed
    }

    fn pipeline(&mut self, pipeline: &Pipeline, input: &Input) -> Input {
        let mut input = input.clone();
        self.listed = None;
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
        input
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
                let body = Rc::new(function.body.clone());
                self.functions.insert(function.fname.value.clone(), body);
                let input = self.redirects(function.body.1.as_ref(), &Input::Unknown);
                self.apart(|walk| {
                    walk.positional = None;
                    walk.compound(&function.body.0, &input);
                });
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
            CompoundCommand::BraceGroup(group) => drop(self.list(&group.list, input)),
            CompoundCommand::Subshell(shell) => {
                self.apart(|walk| drop(walk.list(&shell.list, input)));
            }
            CompoundCommand::ForClause(clause) => {
                let mut values = Vec::new();
                for word in clause.values.iter().flatten() {
                    values.extend(self.expand(&word.value));
                }
                // Each value in turn, as long as they are few.
                let known = !values.is_empty()
                    && self.rounds * values.len() <= MOST_ROUNDS
                    && values.iter().all(|v| !v.unknown);
                if known {
                    let outer = self.rounds;
                    self.rounds *= values.len();
                    for value in values {
                        self.set(&clause.variable_name, Some(value.text));
                        self.list(&clause.body.list, input);
                    }
                    self.rounds = outer;
                } else {
                    self.set(&clause.variable_name, None);
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
                self.test_in_sh(b);
            }
            ExtendedTestExpr::Parenthesized(a) => {
                self.test(a);
                self.test_in_sh(a);
            }
            ExtendedTestExpr::Not(a) => self.test(a),
            ExtendedTestExpr::UnaryTest(_, word) => {
                let words = self.expand(&word.value);
                self.indexes(&words);
            }
            ExtendedTestExpr::BinaryTest(sign, a, b) => {
                // To a plain shell `>` and `<` are redirections here too.
                if format!("{sign:?}").contains("Sort") {
                    let path = self.expand_one(&b.value);
                    if path.text.starts_with('/') {
                        self.reads(&path);
                        self.writes(&path);
                    }
                }
                for side in [a, b] {
                    let words = self.expand(&side.value);
                    self.indexes(&words);
                }
            }
        }
    }

    /// To a plain shell `[[` is a program, and what stands behind `||` another.
    fn test_in_sh(&mut self, test: &ExtendedTestExpr) {
        let (ExtendedTestExpr::UnaryTest(_, word) | ExtendedTestExpr::BinaryTest(_, word, _)) =
            test
        else {
            return;
        };
        let words = self.expand(&word.value);
        if words.iter().all(|w| !w.unknown) {
            self.run(&words, &Input::Nothing);
        }
    }

    fn simple(&mut self, simple: &SimpleCommand, input: &Input) -> Input {
        let mut input = input.clone();
        let mut words = Vec::new();
        let mut replaces = false;
        let prefix = simple.prefix.iter().flat_map(|p| &p.0);
        for item in prefix {
            self.item(item, &mut words, &mut input, &mut replaces);
        }
        if let Some(name) = &simple.word_or_name {
            words.extend(self.expand(&name.value));
        }
        let mut parted = None;
        for item in simple.suffix.iter().flat_map(|s| &s.0) {
            self.item(item, &mut words, &mut input, &mut replaces);
            if let CommandPrefixOrSuffixItem::IoRedirect(IoRedirect::OutputAndError(..)) = item {
                parted = Some(words.len());
            }
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
            Some("find") => self.find_prints(&words),
            Some("grep" | "egrep" | "fgrep" | "rg") => {
                self.listed = super::leaks::lists(&words).map(|dirs| (dirs, true));
                Input::Unknown
            }
            _ => output::of(&words, &input),
        };
        if !words.is_empty() {
            self.run(&words, &input);
        }
        // To a plain shell `a &>f b` is `a` in the background and then `b`.
        if let Some(at) = parted
            && let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty())
        {
            self.run(rest, &Input::Nothing);
        }
        output
    }

    fn item(
        &mut self,
        item: &CommandPrefixOrSuffixItem,
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
                let scalar = matches!(assignment.value, AssignmentValue::Scalar(_));
                if !words.is_empty() && scalar {
                    // An argument that looks like one; `export` and its like read it themselves.
                    words.extend(self.expand(&word.value));
                    return;
                }
                self.assignment(assignment, word);
                if !words.is_empty() {
                    words.push(Arg::literal(&word.value));
                }
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, shell) => {
                self.apart(|walk| drop(walk.list(&shell.list, &Input::Unknown)));
                words.push(Arg::unknown());
            }
        }
    }

    fn assignment(&mut self, assignment: &Assignment, word: &Word) {
        let AssignmentName::VariableName(name) = &assignment.name else {
            self.expand(&word.value);
            return;
        };
        match &assignment.value {
            AssignmentValue::Scalar(value) => {
                let value = self.expand_one(&value.value);
                self.search_path(name, &value);
                let mut value = (!value.unknown).then_some(value.text);
                if assignment.append {
                    let former = self.variable(name);
                    value = former.zip(value).map(|(former, value)| former + &value);
                }
                self.assign(name, value);
            }
            AssignmentValue::Array(items) => {
                let mut values = Vec::new();
                for (_, value) in items {
                    values.extend(self.expand(&value.value));
                }
                let known = |a: &Arg| (!a.unknown).then(|| a.text.clone());
                let indexed = items.iter().any(|(index, _)| index.is_some()) || assignment.append;
                for (place, value) in values.iter().enumerate().take(MOST_ROUNDS) {
                    let value = known(value).filter(|_| !indexed);
                    self.set(&format!("{name}[{place}]"), value);
                }
                let first = values.first().and_then(known).filter(|_| !indexed);
                let all: Option<Vec<String>> = values.iter().map(known).collect();
                let all = all.filter(|_| !indexed).map(|all| all.join(" "));
                self.set(&format!("{name}[@]"), all);
                self.set(name, first);
            }
        }
    }

    /// Runs a program with its arguments.
    pub(super) fn run(&mut self, words: &[Arg], input: &Input) {
        if !self.enter("a wrapper around many wrappers") {
            return;
        }
        let function = words.first().and_then(|w| self.functions.get(&w.text)).cloned();
        match function {
            // What it does was found where it was made, but for what it does to its arguments.
            Some(body) => {
                let args = words.get(1..).unwrap_or_default().to_vec();
                let former = self.positional.replace(args);
                let input = self.redirects(body.1.as_ref(), input);
                self.compound(&body.0, &input);
                self.positional = former;
            }
            None => self.program_run(words, input),
        }
        self.depth -= 1;
    }

    /// Whether the text made a function of this name.
    pub(super) fn is_function(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }
}
